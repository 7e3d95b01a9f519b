/* Which trainings an experiment consists of. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/error.h"
#include "../options/setup.h"
#include "paper.h"
#include "trainings.h"

void plan_free(Plan *plan) {
    free(plan->row);
    *plan = (Plan){0};
}

/* ---- one row --------------------------------------------------------------------------------- */

static int set_all(Options *options, const char *settings) {
    char name[64], value[64];
    int used;
    while (sscanf(settings, " %63[^= ]=%63[^ ]%n", name, value, &used) == 2) {
        if (options_set(options, name, value)) return -1;
        settings += used;
    }
    return 0;
}

/* What the command line gives goes over the preset; what makes the rows differ was used for that.
 */
static int set_given(Options *options, const Options *asked, bool full) {
    static const char *const apart[] = {"model", "data", "optimizer", "submodels", "out", "quiet"};
    char value[OPTION_TEXT];
    for (int row = 0; option_table[row].name; row++) {
        const Option *option = &option_table[row];
        bool skip = !asked->given[row] || !(option->commands & COMMAND_TRAIN) ||
                    (full && strcmp(option->name, "partition") == 0);
        for (size_t a = 0; a < sizeof apart / sizeof *apart; a++)
            skip = skip || strcmp(option->name, apart[a]) == 0;
        if (!skip && options_set(options, option->name, options_format(asked, row, value)))
            return -1;
    }
    return 0;
}

/* "gpt:layers=2 on text" -> "gpt-layers-2-text-sgd-bcd3": a directory, and an HDF5 group. */
static void name_row(PlanRow *row, int submodels, const Options *asked) {
    const Options *o = &row->options;
    const char *slash = strrchr(o->data, '/');
    char method[24] = "full", part[24] = "", seed[32] = "";
    if (submodels > 1) snprintf(method, sizeof method, "bcd%d", submodels);
    if (o->fraction < 1) snprintf(part, sizeof part, "-of%.4g", o->fraction);
    if (asked->seeds > 1) snprintf(seed, sizeof seed, "-seed%llu", (unsigned long long)o->seed);
    snprintf(row->name, sizeof row->name, "%.60s-%.20s-%s-%s%s%s", o->model,
             slash ? slash + 1 : o->data, optimizer_names[o->optimizer], method, part, seed);
    for (char *c = row->name; *c; c++)
        if (!isalnum((unsigned char)*c) && *c != '.') *c = '-';
}

/* A step's operations, forward 1 and each gradient 1; with BCD less, by the theory of contiguous
 * submodels. */
static double relative_work(const Options *o, int submodels) {
    bool bytes = !strcmp(o->data, "text") || !strcmp(o->data, "shakespeare");
    Model *model = setup_model(o->model, bytes ? 256 : 0, o->context);
    if (!model) return 0;
    double flops = 0;
    for (int i = 0; i < model->nodes; i++) flops += node_flops(&model->node[i], PHASE_FORWARD);
    model_free(model);
    double length = o->steps ? (double)o->steps * (o->batch ? o->batch : 1) : o->epochs * 1e4;
    return length * flops * (submodels > 1 ? 0.5 + 0.5 / submodels : 1);
}

static int count_parts(const char *partition) {
    int parts = 1;
    for (; *partition; partition++) parts += *partition == '/';
    return parts;
}

/* Submodels of a variant. */
static int count_submodels(const Options *asked, const Variant *variant) {
    if (variant->submodels) return variant->submodels;
    if (*asked->partition) return count_parts(asked->partition);
    return options_given(asked, "submodels") ? asked->submodels : 3;
}

static int set_row(Options *o, const TrainingEntry *entry, const char *optimizer, int submodels,
                   double fraction) {
    char parts[16], part[32];
    snprintf(parts, sizeof parts, "%d", submodels);
    snprintf(part, sizeof part, "%.17g", fraction);
    options_defaults(o, COMMAND_TRAIN);
    if (options_set(o, "model", entry->model) || options_set(o, "data", entry->data) ||
        options_set(o, "optimizer", optimizer) || options_set(o, "submodels", parts) ||
        set_all(o, entry->settings) ||
        set_all(o, o->optimizer == OPTIMIZER_SGD ? entry->sgd : entry->adam))
        return -1;
    return fraction < 1 ? options_set(o, "fraction", part) : 0;
}

static int add_row(Plan *plan, const Options *asked, const TrainingEntry *entry,
                   const char *optimizer, const Variant *variant, int seed) {
    PlanRow *grown = realloc(plan->row, (size_t)(plan->rows + 1) * sizeof *grown);
    if (!grown) return error_set("%s: out of memory", plan->kind->name);
    plan->row = grown;
    PlanRow *row = &grown[plan->rows];
    Options *o = &row->options;
    char number[32];
    int m = count_submodels(asked, variant);
    if (!variant->submodels && m < 2) return error_set("--submodels %d: BCD needs at least 2", m);
    if (set_row(o, entry, optimizer, m, variant->fraction) || set_given(o, asked, m == 1))
        return -1;
    snprintf(number, sizeof number, "%llu", (unsigned long long)o->seed + (unsigned)seed);
    if ((seed && options_set(o, "seed", number)) || setup_check(o)) return -1;
    name_row(row, m, asked);
    snprintf(o->out, sizeof o->out, "%.300s/rows/%s", plan->dir, row->name);
    o->quiet = asked->quiet;
    o->go_on = o->brief = true;
    row->work = relative_work(o, m);
    plan->rows++;
    return 0;
}

/* A network in every variant, with every seed. */
static int add_variants(Plan *plan, const Options *asked, const TrainingEntry *entry,
                        const char *optimizer) {
    for (const Variant *v = plan->kind->variant; v->fraction > 0; v++)
        for (int seed = 0; seed < asked->seeds; seed++)
            if (add_row(plan, asked, entry, optimizer, v, seed)) return -1;
    return 0;
}

/* ---- lists ----------------------------------------------------------------------------------- */

enum { LIST = 16 };

/* Cuts text at any of the separators, in place. */
static int cut_list(char *text, const char *separators, const char *item[LIST]) {
    int count = 0;
    for (char *word = strtok(text, separators); word; word = strtok(NULL, separators)) {
        if (count == LIST) return error_set("a list has more than %d items", LIST);
        item[count++] = word;
    }
    return count;
}

static bool listed(const char *name, const char *const *list, int count) {
    for (int i = 0; i < count; i++)
        if (strcmp(name, list[i]) == 0) return true;
    return count == 0;
}

/* The preset's entry for a model, or for one that reads the same kind of data, on the data asked
 * for. */
static int find_entry(TrainingEntry *entry, const TrainingEntry *known, const char *name,
                      const Options *asked) {
    Model *model = setup_model(name, 0, 0);
    if (!model) return -1;
    bool tokens = model->tokens;
    model_free(model);
    const TrainingEntry *found = NULL;
    for (const TrainingEntry *e = known; e->model; e++) {
        bool alike = (data_is_tokens(e->data) == 1) == tokens;
        if (strcmp(e->model, name) == 0 || (alike && !found)) found = e;
        if (strcmp(e->model, name) == 0) break;
    }
    if (!found) return error_set("--models %s: the preset has no setting for such a model", name);
    *entry = *found;
    entry->model = name;
    bool data = options_given(asked, "data") && (data_is_tokens(asked->data) == 1) == tokens;
    if (data) entry->data = asked->data;
    return 0;
}

/* The optimizers asked for, or else the entry's own. */
static int add_entry(Plan *plan, const Options *asked, const TrainingEntry *entry,
                     const char *const *optimizers, int optimizer_count) {
    char own[64];
    const char *list[LIST];
    snprintf(own, sizeof own, "%s", entry->optimizers);
    int count = optimizer_count ? optimizer_count : cut_list(own, ",", list);
    for (int o = 0; o < count; o++)
        if (add_variants(plan, asked, entry, optimizer_count ? optimizers[o] : list[o])) return -1;
    return 0;
}

static int add_preset(Plan *plan, const Options *asked, const char *const *models, int model_count,
                      const char *const *optimizers, int optimizer_count) {
    const TrainingEntry *known = plan->kind->preset[asked->preset];
    const char *all[TRAINING_ENTRIES];
    if (!model_count) {
        for (; known[model_count].model; model_count++) all[model_count] = known[model_count].model;
        models = all;
    }
    for (int m = 0; m < model_count; m++) {
        TrainingEntry entry;
        if (find_entry(&entry, known, models[m], asked) ||
            add_entry(plan, asked, &entry, optimizers, optimizer_count))
            return -1;
    }
    return 0;
}

/* ---- the paper's own trainings --------------------------------------------------------------- */

/* Epochs to convergence; where Table 2 counts iterations, those of Table 11. */
static double published_epochs(const PaperRow *row) {
    if (!row->iterations) return row->duration;
    for (size_t r = 0; r < paper_row_count; r++) {
        const PaperRow *p = &paper_rows[r];
        if (p->table == 11 && p->submodels == row->submodels && !strcmp(p->data, row->data) &&
            !strcmp(p->optimizer, row->optimizer))
            return p->duration;
    }
    return NAN;
}

static bool in_tables(const TrainingKind *kind, int table) {
    for (int i = 0; kind->tables[i]; i++)
        if (kind->tables[i] == table) return true;
    return false;
}

/* The published trainings, each as long as published.  WebText2 is left out: no such file is
 * published, and its epochs are not known. */
static int add_published(Plan *plan, const Options *asked, const char *const *models,
                         int model_count, const char *const *optimizers, int optimizer_count) {
    for (size_t r = 0; r < paper_row_count; r++) {
        const PaperRow *p = &paper_rows[r];
        double epochs = published_epochs(p);
        if (!in_tables(plan->kind, p->table) || isnan(epochs) ||
            !listed(p->model, models, model_count) ||
            !listed(p->optimizer, optimizers, optimizer_count))
            continue;
        char settings[64];
        snprintf(settings, sizeof settings, "epochs=%g batch=%d", epochs,
                 !strcmp(p->data, "wikitext2") ? 1 : 128);
        TrainingEntry entry = {p->model, p->data, p->optimizer, settings, "", ""};
        /* Table 2 is of thirds, which --submodels may change; the others say what they are of. */
        Variant variant = {p->table == 2 && p->submodels > 1 ? 0 : p->submodels, p->fraction};
        for (int seed = 0; seed < asked->seeds; seed++)
            if (add_row(plan, asked, &entry, p->optimizer, &variant, seed)) return -1;
    }
    return plan->rows
               ? 0
               : error_set("--models or --optimizers: none of those is in the paper's table");
}

int plan_make(Plan *plan, const TrainingKind *kind, const Options *asked) {
    *plan = (Plan){.kind = kind};
    if (*asked->out)
        snprintf(plan->dir, sizeof plan->dir, "%s", asked->out);
    else
        snprintf(plan->dir, sizeof plan->dir, "runs/%s-%.20s", kind->name,
                 preset_names[asked->preset]);
    if (strlen(plan->dir) > 300) return error_set("--out: the name is too long");
    plan->long_run = asked->preset == PRESET_GPU || asked->preset == PRESET_PAPER;
    char models[OPTION_TEXT], optimizers[OPTION_TEXT];
    const char *model[LIST], *optimizer[LIST];
    snprintf(models, sizeof models, "%s",
             *asked->models                  ? asked->models
             : options_given(asked, "model") ? asked->model
                                             : "");
    snprintf(optimizers, sizeof optimizers, "%s",
             *asked->optimizers                  ? asked->optimizers
             : options_given(asked, "optimizer") ? optimizer_names[asked->optimizer]
                                                 : "");
    int model_count = cut_list(models, " ", model);
    int optimizer_count = cut_list(optimizers, ", ", optimizer);
    if (model_count < 0 || optimizer_count < 0) return -1;
    if (asked->preset == PRESET_PAPER)
        return add_published(plan, asked, model, model_count, optimizer, optimizer_count);
    return add_preset(plan, asked, model, model_count, optimizer, optimizer_count);
}
