/* A row of a plan: its options of `bcd train`, its name, and how long it takes. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/error.h"
#include "../train/setup.h"
#include "trainings.h"

static int set_all(Options *options, const char *settings) {
    char name[64], value[64];
    int used;
    while (settings && sscanf(settings, " %63[^= ]=%63[^ ]%n", name, value, &used) == 2) {
        if (options_set(options, name, value)) return -1;
        settings += used;
    }
    return 0;
}

/* Applies the flags given on the command line, except those that the rows differ in. */
static int set_given(Options *options, const Options *asked, bool full) {
    const char *const apart[] = {
        "model", "data", "optimizer", "submodels", "out", "quiet", full ? "partition" : NULL, NULL};
    return options_take(options, asked, apart, false);
}

/* Names a row and its directory, e.g. "gpt-layers-2-text-sgd-bcd3".  A long name is cut before the
 * seed, so that each seed keeps its own directory. */
static void name_row(TrainingRow *row, int submodels, const char *settings) {
    const Options *o = &row->options;
    const char *slash = strrchr(o->data, '/');
    char method[16] = "full", part[16] = "", seed[32] = "";
    if (submodels > 1) snprintf(method, sizeof method, "bcd%d", submodels);
    if (o->fraction < 1) snprintf(part, sizeof part, "-of%.4g", o->fraction);
    if (o->seed != 1) snprintf(seed, sizeof seed, "-seed%llu", (unsigned long long)o->seed);
    snprintf(row->name, sizeof row->name - strlen(seed), "%.60s-%.20s-%s-%s%s%s%.46s", o->model,
             slash ? slash + 1 : o->data, optimizer_names[o->optimizer], method, part,
             settings ? "-" : "", settings ? settings : "");
    strcat(row->name, seed);
    for (char *c = row->name; *c; c++)
        if (!isalnum((unsigned char)*c) && *c != '.') *c = '-';
}

/* Returns the work of a training, up to a factor: its operations, with BCD fewer as contiguous
 * submodels of equal size have. */
static double relative_work(const Options *o, int submodels) {
    bool bytes = !strncmp(o->data, "text", 4) || !strcmp(o->data, "shakespeare");
    int known = data_vocabulary(o->data);
    Model *model = setup_model(o->model, bytes ? 256 : known > 0 ? known : 0, o->context);
    if (!model) return 0;
    double flops = 0;
    for (int i = 0; i < model->nodes; i++) flops += node_flops(&model->node[i], PASS_FORWARD);
    model_free(model);
    double length = o->steps ? (double)o->steps * (o->batch ? o->batch : 1) : o->epochs * 1e4;
    return length * flops * (submodels > 1 ? 0.5 + 0.5 / submodels : 1);
}

static int count_parts(const char *partition) {
    int parts = 1;
    for (; *partition; partition++) parts += *partition == '/';
    return parts;
}

/* Returns the number of submodels of a variant. */
static int count_submodels(const Options *asked, const TrainingVariant *variant) {
    if (variant->submodels) return variant->submodels;
    if (*asked->partition) return count_parts(asked->partition);
    return options_given(asked, "submodels") ? asked->submodels : 3;
}

static int set_row(Options *o, const TrainingEntry *entry, const char *optimizer, int submodels,
                   const TrainingVariant *variant) {
    char parts[16], part[32];
    snprintf(parts, sizeof parts, "%d", submodels);
    snprintf(part, sizeof part, "%.17g", variant->fraction);
    options_defaults(o, COMMAND_TRAIN);
    if (options_set(o, "model", entry->model) || options_set(o, "data", entry->data) ||
        options_set(o, "optimizer", optimizer) || setup_pin_optimizer(o) ||
        options_set(o, "submodels", parts) || set_all(o, entry->settings) ||
        set_all(o, o->optimizer == OPTIMIZER_SGD ? entry->sgd : entry->adam) ||
        set_all(o, variant->settings))
        return -1;
    return variant->fraction < 1 ? options_set(o, "fraction", part) : 0;
}

int trainings_add(TrainingPlan *plan, const Options *asked, const TrainingEntry *entry,
                  const char *optimizer, const TrainingVariant *variant, int seed) {
    TrainingRow *grown = realloc(plan->row, (size_t)(plan->rows + 1) * sizeof *grown);
    if (!grown) return error_set("%s: out of memory", plan->kind->name);
    plan->row = grown;
    TrainingRow *row = &grown[plan->rows];
    *row = (TrainingRow){0};
    Options *o = &row->options;
    char number[32];
    int m = count_submodels(asked, variant);
    if (!variant->submodels && m < 2) return error_set("--submodels %d: BCD needs at least 2", m);
    if (set_row(o, entry, optimizer, m, variant) || set_given(o, asked, m == 1)) return -1;
    snprintf(number, sizeof number, "%llu", (unsigned long long)o->seed + (unsigned)seed);
    if ((seed && options_set(o, "seed", number)) || setup_check(o)) return -1;
    name_row(row, m, variant->settings);
    snprintf(o->out, sizeof o->out, "%.300s/rows/%s", plan->dir, row->name);
    o->quiet = asked->quiet;
    o->go_on = o->brief = true;
    row->work = relative_work(o, m);
    plan->rows++;
    return 0;
}
