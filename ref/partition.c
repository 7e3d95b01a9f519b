#include "partition.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"

enum { UNASSIGNED = -2 };

static int partition_reserve(Partition *partition, const Model *model, int submodels) {
    *partition = (Partition){.submodels = submodels};
    partition->of_block = calloc((size_t)model->blocks, sizeof *partition->of_block);
    partition->params = calloc((size_t)submodels, sizeof *partition->params);
    partition->lr_factor = calloc((size_t)submodels, sizeof *partition->lr_factor);
    if (!partition->of_block || !partition->params || !partition->lr_factor) {
        partition_free(partition);
        return error_set("partition: out of memory");
    }
    for (int b = 0; b < model->blocks; b++) partition->of_block[b] = UNASSIGNED;
    for (int m = 0; m < submodels; m++) partition->lr_factor[m] = 1;
    return 0;
}

/* Computes the sizes, or if the blocks could not be assigned, frees the partition and returns -1.
 */
static int finish(Partition *partition, const Model *model, bool failed) {
    size_t largest = 0;
    if (failed) {
        partition_free(partition);
        return -1;
    }
    for (int b = 0; b < model->blocks; b++) {
        int submodel = partition->of_block[b];
        *(submodel == ALWAYS_ACTIVE ? &partition->always_params : &partition->params[submodel]) +=
            block_params(model, b);
    }
    for (int m = 0; m < partition->submodels; m++)
        largest = size_max(largest, partition->params[m]);
    double others = (double)(model->param_count - partition->always_params);
    partition->imbalance = (double)largest / (others / partition->submodels) - 1;
    return 0;
}

double partition_share(const Partition *partition, const Model *model) {
    double always = (double)partition->always_params / (double)model->param_count;
    return always + (1 - always) / partition->submodels;
}

/* ---- balanced ---- */

/* Dynamic programming: best[m][b] is the smallest sum of squares of the first b items in m parts,
 * cut[m][b] the item at which the last of these parts begins. */
static void cut_best(int *part, const double *prefix, int items, int parts, int min_items,
                     double *best, int *cut) {
    int row = items + 1;
    for (int b = 0; b <= items; b++) best[b] = b ? 1e300 : 0;
    for (int m = 1; m <= parts; m++)
        for (int b = 0; b <= items; b++) {
            best[m * row + b] = 1e300;
            for (int begin = (m - 1) * min_items; begin <= b - min_items; begin++) {
                double size = prefix[b] - prefix[begin];
                double total = best[(m - 1) * row + begin] + size * size;
                if (total < best[m * row + b]) {
                    best[m * row + b] = total;
                    cut[m * row + b] = begin;
                }
            }
        }
    for (int m = parts, end = items; m >= 1; m--) {
        int begin = cut[m * row + end];
        for (int b = begin; b < end; b++) part[b] = m - 1;
        end = begin;
    }
}

int cut_contiguous(int *part, const double *cost, int items, int parts, int min_items) {
    size_t cells = ((size_t)parts + 1) * ((size_t)items + 1);
    double *prefix = calloc((size_t)items + 1, sizeof *prefix);
    double *best = malloc(cells * sizeof *best);
    int *cut = calloc(cells, sizeof *cut);
    bool reserved = prefix && best && cut;
    for (int b = 0; reserved && b < items; b++) prefix[b + 1] = prefix[b] + cost[b];
    if (reserved) cut_best(part, prefix, items, parts, min_items, best, cut);
    free(prefix);
    free(best);
    free(cut);
    return reserved ? 0 : error_set("partition: out of memory");
}

/* ---- by hand ---- */

/* Returns the block with a name or number of `length` characters, or -1 and an error. */
static int find_block(const Model *model, const char *name, size_t length) {
    for (int b = 0; b < model->blocks; b++)
        if (strlen(model->block[b].name) == length &&
            strncmp(model->block[b].name, name, length) == 0)
            return b;
    char *end;
    long number = strtol(name, &end, 10);
    bool whole = name[0] >= '0' && name[0] <= '9' && end == name + length; /* no sign, no blank */
    if (whole && number < model->blocks) return (int)number;
    return error_set("partition: no block \"%.*s\" in %s; blocks are %s to %s, or 0 to %d",
                     (int)(length < 40 ? length : 40), name, model->name, model->block[0].name,
                     model->block[model->blocks - 1].name, model->blocks - 1);
}

/* Assigns the blocks of one item, "NAME" or "NAME-NAME" of `length` characters, to a submodel. */
static int assign_range(Partition *partition, const Model *model, const char *item, size_t length,
                        int submodel) {
    const char *dash = memchr(item, '-', length);
    size_t first_length = dash ? (size_t)(dash - item) : length;
    int first = find_block(model, item, first_length), last = first;
    if (first >= 0 && dash) last = find_block(model, dash + 1, length - first_length - 1);
    if (first < 0 || last < 0) return -1;
    if (last < first)
        return error_set("partition: %.*s runs backwards", (int)(length < 60 ? length : 60), item);
    for (int b = first; b <= last; b++) {
        if (partition->of_block[b] != UNASSIGNED && submodel != ALWAYS_ACTIVE)
            return error_set("partition: block %s is %s", model->block[b].name,
                             partition->of_block[b] == ALWAYS_ACTIVE
                                 ? "always active, so in no submodel"
                                 : "in two submodels");
        partition->of_block[b] = submodel;
    }
    return 0;
}

/* Marks the blocks that are always active.  Returns the number of other blocks, or -1 and an
 * error. */
static int assign_always(Partition *partition, const Model *model, const char *always) {
    int left = 0;
    for (const char *text = always ? always : ""; *text;) {
        size_t length = strcspn(text, ",");
        if (strcmp(always, "ends") == 0)
            partition->of_block[0] = partition->of_block[model->blocks - 1] = ALWAYS_ACTIVE;
        else if (assign_range(partition, model, text, length, ALWAYS_ACTIVE))
            return -1;
        text += length + (text[length] == ',');
    }
    for (int b = 0; b < model->blocks; b++) left += partition->of_block[b] == UNASSIGNED;
    return left;
}

static int assign_all(Partition *partition, const Model *model, const char *text) {
    for (int submodel = 0;; text++) {
        size_t length = strcspn(text, ",/");
        if (assign_range(partition, model, text, length, submodel)) return -1;
        text += length;
        if (!*text) break;
        if (*text == '/') submodel++;
    }
    for (int b = 0; b < model->blocks; b++)
        if (partition->of_block[b] == UNASSIGNED)
            return error_set("partition: block %s is in no submodel", model->block[b].name);
    return 0;
}

int partition_parse(Partition *partition, const Model *model, const char *text,
                    const char *always) {
    int submodels = 1;
    for (const char *c = text; *c; c++) submodels += *c == '/';
    if (submodels > model->blocks)
        return error_set("partition: %d submodels of %d blocks", submodels, model->blocks);
    if (partition_reserve(partition, model, submodels)) return -1;
    int failed = assign_always(partition, model, always) < 0 || assign_all(partition, model, text);
    return finish(partition, model, failed);
}

/* Assigns the `left` blocks that are not always active. */
static int assign_balanced(Partition *partition, const Model *model, int left) {
    double *share = malloc((size_t)left * sizeof *share);
    int *part = malloc((size_t)left * sizeof *part);
    bool reserved = share && part;
    for (int b = 0, i = 0; reserved && b < model->blocks; b++)
        if (partition->of_block[b] == UNASSIGNED)
            share[i++] = (double)block_params(model, b) / (double)model->param_count;
    int failed = reserved ? cut_contiguous(part, share, left, partition->submodels, 1)
                          : error_set("partition: out of memory");
    for (int b = 0, i = 0; !failed && b < model->blocks; b++)
        if (partition->of_block[b] == UNASSIGNED) partition->of_block[b] = part[i++];
    free(share);
    free(part);
    return failed;
}

static int check_submodels(int submodels, int blocks) {
    if (blocks == 0) return error_set("partition: every block is always active");
    if (submodels >= 1 && submodels <= blocks) return 0;
    return error_set("partition: %d submodels of %d blocks; use 1 to %d", submodels, blocks,
                     blocks);
}

int partition_balanced(Partition *partition, const Model *model, int submodels,
                       const char *always) {
    if (check_submodels(submodels, model->blocks) || partition_reserve(partition, model, submodels))
        return -1;
    int left = assign_always(partition, model, always);
    int failed =
        left < 0 || check_submodels(submodels, left) || assign_balanced(partition, model, left);
    return finish(partition, model, failed);
}

int partition_lr(Partition *partition, const char *text) {
    const char *rest = text;
    for (int m = 0; m < partition->submodels; m++) {
        char *end;
        double factor = strtod(rest, &end);
        bool last = m == partition->submodels - 1;
        if (end == rest || *end != (last ? 0 : ',') || !(factor > 0 && factor <= 1e6))
            return error_set(
                "partition: \"%.60s\" is not %d factors of the learning rate above 0, "
                "separated by commas",
                text, partition->submodels);
        partition->lr_factor[m] = factor;
        rest = end + 1;
    }
    return 0;
}

void partition_free(Partition *partition) {
    free(partition->of_block);
    free(partition->params);
    free(partition->lr_factor);
    *partition = (Partition){0};
}

void partition_active(const Partition *partition, const Model *model, int submodel, bool *active) {
    for (int b = 0; b < model->blocks; b++)
        active[b] = partition->of_block[b] == submodel || partition->of_block[b] == ALWAYS_ACTIVE;
}
