/* Which trainings an experiment consists of. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/base/error.h"
#include "../paper/trainings.h"
#include "../store/rundir.h"
#include "../train/setup.h"
#include "trainings.h"

void trainings_free(TrainingPlan *plan) {
    free(plan->row);
    *plan = (TrainingPlan){0};
}

/* ---- what is asked for ----------------------------------------------------------------------- */

static bool is_present(const char *data, const TrainingPlan *plan) {
    const char *dir = plan->asked.options.data_dir;
    return data_present(data, *dir ? dir : NULL);
}

static const TrainingEntry *entries(const TrainingPlan *plan) {
    return plan->kind->preset[plan->asked.experiment.preset];
}

/* Returns false for WebText2 unless there is a file of it, because nobody publishes one. */
static bool is_available(const char *data, const TrainingPlan *plan) {
    return strcmp(data, "webtext2") || is_present(data, plan);
}

static bool is_tokens(const char *data) { return data_is_tokens(data) == 1; }

/* Returns true when another entry stands in for this one's data. */
static bool has_stand_in(const TrainingPlan *plan, const TrainingEntry *entry) {
    for (const TrainingEntry *e = entries(plan); e->model; e++)
        if (e->instead_of && strcmp(e->instead_of, entry->data) == 0) return true;
    return false;
}

/* Returns true for an entry whose data are there, or a stand-in for data that are missing; with
 * --data, for all but the stand-ins. */
static bool is_usable(const TrainingPlan *plan, const TrainingEntry *e) {
    bool data_given = options_given(&plan->asked.options, "data");
    if (!is_available(e->data, plan)) return false;
    if (e->instead_of) return !data_given && !is_present(e->instead_of, plan);
    return data_given || !has_stand_in(plan, e) || is_present(e->data, plan);
}

/* Adds an entry with each of its seeds and optimizers. */
static int add_entry(TrainingPlan *plan, const TrainingEntry *entry) {
    static const int preset[PRESET_KINDS] = {1, 3, 3, 1};
    const ExperimentFlags *flags = &plan->asked.experiment;
    int seeds = entry->seeds ? entry->seeds : preset[flags->preset];
    if (options_given(&plan->asked.options, "seeds")) seeds = flags->seeds;
    for (int seed = 0; seed < seeds; seed++) {
        char *rest = NULL;
        Text text = text_of("%s", entry->optimizers);
        for (char *name = strtok_r(text.text, ", ", &rest); name;
             name = strtok_r(NULL, ", ", &rest))
            if (trainings_add(plan, entry, name, seed)) return -1;
    }
    return 0;
}

/* Adds an entry of the preset with --optimizers; for one of --models (NULL: its own) with --data,
 * too. */
static int add_asked(TrainingPlan *plan, TrainingEntry entry, const char *model) {
    const Options *o = &plan->asked.options;
    const char *optimizers = plan->asked.experiment.optimizers;
    if (*optimizers) entry.optimizers = optimizers;
    if (model && options_given(o, "data") && is_tokens(o->data) == is_tokens(entry.data))
        entry.data = o->data;
    if (model) entry.model = model;
    return add_entry(plan, &entry);
}

/* Adds the preset's entries for a model, or else the first for the same kind of data. */
static int add_model(TrainingPlan *plan, const char *name) {
    const TrainingEntry *similar = NULL;
    const int before = plan->rows;
    Model *model = setup_model(name, 0, 0);
    if (!model) return -1;
    bool tokens = model->tokens;
    model_free(model);
    for (const TrainingEntry *e = entries(plan); e->model; e++) {
        if (!is_usable(plan, e)) continue;
        if (!similar && is_tokens(e->data) == tokens) similar = e;
        if (!strcmp(e->model, name) && add_asked(plan, *e, name)) return -1;
    }
    if (plan->rows > before) return 0;
    if (similar) return add_asked(plan, *similar, name);
    return error_set("--models %s: the preset has no setting for such a model", name);
}

static int add_preset(TrainingPlan *plan) {
    char *rest = NULL;
    Text models = text_of("%s", plan->asked.experiment.models);
    for (const TrainingEntry *e = entries(plan); e->model; e++) {
        if (!is_usable(plan, e)) continue;
        if (e->instead_of)
            text_add(&plan->missing, "%s%s is missing, %s replaces it",
                     *plan->missing.text ? "; " : "", e->instead_of, e->data);
        if (!*models.text && add_asked(plan, *e, NULL)) return -1;
    }
    for (char *name = strtok_r(models.text, " ", &rest); name; name = strtok_r(NULL, " ", &rest))
        if (add_model(plan, name)) return -1;
    if (plan->rows) return 0;
    return error_set("%s: it has no trainings for --preset %s", plan->kind->name,
                     preset_names[plan->asked.experiment.preset]);
}

/* ---- the paper's own trainings --------------------------------------------------------------- */

/* The settings for the published length, "epochs=639 batch=128".  Where Table 2 has iterations, the
 * epochs are in Table 11, for WikiText-2 alone. */
static Text published_length(const PaperRow *row) {
    bool iterations = row->table == 2 && row->score_kind == SCORE_PERPLEXITY;
    const PaperRow *p =
        iterations ? paper_find(11, row->model, row->data, false, row->optimizer, row->submodels, 1)
                   : row;
    bool epochs = p && !strcmp(p->data, row->data);
    return text_of("%s=%.0f batch=%d", epochs ? "epochs" : "steps",
                   epochs ? p->duration : row->duration, is_tokens(row->data) ? 1 : 128);
}

static int add_published(TrainingPlan *plan, const PaperRow *p) {
    /* Table 2 is of thirds, which --submodels may change. */
    const Text settings = published_length(p);
    const Text ways = p->submodels == 1 ? text_of("full")
                      : p->table == 2   ? text_of("bcd")
                                        : text_of("bcd%d x%.17g", p->submodels, p->fraction);
    TrainingEntry entry = {.model = p->model,
                           .data = p->data,
                           .optimizers = p->optimizer,
                           .settings = settings.text,
                           .ways = ways.text};
    return add_entry(plan, &entry);
}

static bool is_listed(const char *name, const char *list, const char *separators) {
    char *rest = NULL;
    Text text = text_of("%s", list);
    const char *item = strtok_r(text.text, separators, &rest);
    while (item && strcmp(item, name)) item = strtok_r(NULL, separators, &rest);
    return item || !*list;
}

static int add_tables(TrainingPlan *plan) {
    const ExperimentFlags *flags = &plan->asked.experiment;
    for (const int *table = plan->kind->tables; *table; table++)
        for (const PaperRow *p = paper_rows(*table); p->table; p++)
            if (is_available(p->data, plan) && is_listed(p->model, flags->models, " ") &&
                is_listed(p->optimizer, flags->optimizers, ", ") && add_published(plan, p))
                return -1;
    if (plan->rows) return 0;
    return error_set("--models or --optimizers: none of those is in the paper's table");
}

/* ---- the plan -------------------------------------------------------------------------------- */

static int compare_seeds(const void *x, const void *y) {
    const TrainingRow *a = x, *b = y;
    int order = (a->options.seed > b->options.seed) - (a->options.seed < b->options.seed);
    return order ? order : a->number - b->number;
}

/* --model and --optimizer stand for --models and --optimizers. */
static void take_single(CommandLine *line) {
    ExperimentFlags *flags = &line->experiment;
    if (!*flags->models && options_given(&line->options, "model"))
        strcpy(flags->models, line->options.model);
    if (!*flags->optimizers && options_given(&line->options, "optimizer"))
        strcpy(flags->optimizers, optimizer_names[line->options.optimizer.kind]);
}

int trainings_plan(TrainingPlan *plan, const TrainingKind *kind, const CommandLine *asked) {
    const int preset = asked->experiment.preset;
    *plan = (TrainingPlan){.kind = kind,
                           .asked = *asked,
                           .dir = rundir_results(asked),
                           .long_run = preset == PRESET_GPU || preset == PRESET_PAPER ||
                                       (kind->takes_hours && preset != PRESET_SMOKE)};
    take_single(&plan->asked);
    if (strlen(plan->dir.text) > 300) return error_set("--out: the name is too long");
    if (preset == PRESET_PAPER && kind->tables[0] ? add_tables(plan) : add_preset(plan)) return -1;
    /* All rows of a seed come before the next seed, so that an experiment that is stopped early is
     * a whole table of fewer seeds.  When it takes hours, all seeds of an entry come before the
     * next entry, so that some rows are whole. */
    for (int r = 0; r < plan->rows; r++) plan->row[r].number = r;
    if (!kind->takes_hours) qsort(plan->row, (size_t)plan->rows, sizeof *plan->row, compare_seeds);
    return 0;
}
