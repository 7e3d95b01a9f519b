/* Fine-tuning (trainings with --init) by full update and by BCD, and what the second version of the
 * paper (arXiv 2506.12037v2, 26 September 2025) publishes about it. */
#include <math.h>

#include "../study/measures.h"
#include "trainings.h"

/* From its abstract: "we reduce the training cost of a 7B model to 33% on A100/A800 and only 2.6%
 * on RTX 4090".  NAN: a number in its tables, of which we have no copy. */
typedef enum { FULL, BCD, LORA, METHODS } FinetuneMethod;
static const struct {
    double accuracy;  /* per cent, after fine-tuning */
    double cost_a100; /* of training a 7B model on A100 or A800, over a full update's there */
    double cost_4090; /* the same on RTX 4090 */
} published[METHODS] = {
    [FULL] = {NAN, 1, 1},
    [BCD] = {NAN, 0.33, 0.026},
    [LORA] = {NAN, NAN, NAN},
};

enum { LOSS, PUBLISHED = 6, COLUMNS = 9 };

static const MeasureColumn columns[COLUMNS] = {
    {"validation_loss", "valid. loss", "", 4, SOURCE_MEASURED, measure_valid_loss, OVER_SEEDS},
    {"perplexity", "perplexity", "", 2, SOURCE_MEASURED, measure_perplexity, OVER_SEEDS},
    {"updates", "updates", "", 0, SOURCE_NONE, measure_steps, MEAN_ALONE},
    {"seconds", "training", "s", 1, SOURCE_MEASURED, measure_seconds, OVER_SEEDS},
    {"trained_memory", "P+G+S", "MiB", 2, SOURCE_MEASURED, measure_trained, OVER_SEEDS},
    {"memory", "memory", "MiB", 2, SOURCE_MEASURED, measure_peak, OVER_SEEDS},
    {"published_accuracy", "accuracy", "published", 1, SOURCE_PUBLISHED, NULL, MEAN_ALONE},
    {"published_cost_a100", "cost of 7B", "A100, A800", 1, SOURCE_PUBLISHED, NULL, MEAN_ALONE},
    {"published_cost_4090", "cost of 7B", "RTX 4090", 1, SOURCE_PUBLISHED, NULL, MEAN_ALONE},
};

static void put_published(Table *table, FinetuneMethod method) {
    table_put(table, PUBLISHED, published[method].accuracy);
    /* The costs of a full update are 1 by definition. */
    Source source = method == FULL ? SOURCE_NONE : SOURCE_PUBLISHED;
    table_number(table, PUBLISHED + 1, published[method].cost_a100, source);
    table_number(table, PUBLISHED + 2, published[method].cost_4090, source);
}

static void put_case(Table *table, const StudyCase *item) {
    char name[CASE_NAME], how[CASE_NAME];
    const StudyRow *first = item->method->row[0];
    case_name(first, name);
    table_row(table, "%s, before", name);
    /* All seeds and methods start from the same weights. */
    if (first->evaluation_rows && !first->evaluation[0].step)
        table_put(table, LOSS, first->evaluation[0].loss, first->evaluation[0].perplexity);
    for (int m = 0; m < item->methods; m++) {
        const CaseMethod *method = &item->method[m];
        table_row(table, "%s, %s", name, case_method(method, how));
        measure_put(table, 0, columns, PUBLISHED, method, false);
        put_published(table, method->row[0]->submodels == 1 ? FULL : BCD);
    }
}

void paper_add_finetuned(Tables *tables, const Cases *cases) {
    Table *table = NULL;
    for (int c = 0; c < cases->cases; c++) {
        const StudyCase *item = &cases->item[c];
        if (!*item->method->row[0]->settings.init) continue;
        if (!table)
            table = measure_table(tables, "finetune",
                                  "Fine-tuning by full update and by BCD; published: with LoRA",
                                  "training", columns, COLUMNS);
        put_case(table, item);
    }
    if (!table) return;
    table->column[PUBLISHED + 1].kind = table->column[PUBLISHED + 2].kind = COLUMN_PERCENT;
    table_row(table, "LoRA (published only)");
    put_published(table, LORA);
    table_note(table,
               "All trainings of a network start from the same weights.  Means over seeds; +-: the "
               "standard deviation of a single training.  Memory: the peak of all roles; P+G+S: "
               "parameters, gradients, optimizer state.");
    table_note(
        table,
        "The three columns on the right are published: the second version of the paper "
        "(arXiv 2506.12037v2).  Its abstract states the costs, of training a 7B model on the "
        "same GPUs, and that BCD is in most cases at least as accurate as the full update and "
        "other ways to fine-tune.  The accuracies are in tables that we do not have: those "
        "cells are empty, not zero.");
}
