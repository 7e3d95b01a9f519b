/* Which trainings an experiment consists of. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/error.h"
#include "../paper/trainings.h"
#include "../store/rundir.h"
#include "../train/setup.h"
#include "trainings.h"

void trainings_free(TrainingPlan *plan) {
    free(plan->row);
    *plan = (TrainingPlan){0};
}

/* ---- what is asked for ----------------------------------------------------------------------- */

static bool listed(const char *name, const char *list, const char *separators) {
    char *rest = NULL;
    Text text = text_of("%s", list);
    const char *item = strtok_r(text.text, separators, &rest);
    while (item && strcmp(item, name)) item = strtok_r(NULL, separators, &rest);
    return item || !*list;
}

/* Returns false for WebText2 unless there is a file of it, because nobody publishes one. */
static bool is_available(const char *data, const char *dir) {
    return strcmp(data, "webtext2") || data_present(data, dir);
}

/* Returns true when another entry stands in for this one's data. */
static bool has_stand_in(const TrainingEntry *known, const TrainingEntry *entry) {
    for (const TrainingEntry *e = known; e->model; e++)
        if (e->instead_of && strcmp(e->instead_of, entry->data) == 0) return true;
    return false;
}

/* Returns true for an entry whose data are there, or a stand-in for data that are missing; with
 * --data, for all but the stand-ins. */
static bool is_usable(const TrainingEntry *known, const TrainingEntry *e,
                      const CommandLine *asked) {
    const char *dir = *asked->options.data_dir ? asked->options.data_dir : NULL;
    bool data_given = options_given(&asked->options, "data");
    if (!is_available(e->data, dir)) return false;
    if (e->instead_of) return !data_given && !data_present(e->instead_of, dir);
    return data_given || !has_stand_in(known, e) || data_present(e->data, dir);
}

enum { MODELS = 16 };
typedef struct {
    int count;
    TrainingEntry entry[MODELS * TRAINING_ENTRIES];
} EntryList;

/* Appends the preset's entries for a model, or else the first for the same kind of data, and
 * applies --data to them. */
static int list_model(EntryList *list, const TrainingEntry *known, const char *name,
                      const CommandLine *asked) {
    const int first = list->count;
    if (first > (MODELS - 1) * TRAINING_ENTRIES) return error_set("--models: too many");
    Model *model = setup_model(name, 0, 0);
    if (!model) return -1;
    bool tokens = model->tokens, data = options_given(&asked->options, "data") &&
                                        (data_is_tokens(asked->options.data) == 1) == tokens;
    model_free(model);
    const TrainingEntry *similar = NULL;
    for (const TrainingEntry *e = known; e->model; e++) {
        if (!is_usable(known, e, asked)) continue;
        if (!similar && (data_is_tokens(e->data) == 1) == tokens) similar = e;
        if (strcmp(e->model, name) == 0) list->entry[list->count++] = *e;
    }
    if (list->count == first && similar) list->entry[list->count++] = *similar;
    if (list->count == first)
        return error_set("--models %s: the preset has no setting for such a model", name);
    for (TrainingEntry *e = list->entry + first; e < list->entry + list->count; e++) {
        e->model = name;
        if (data) e->data = asked->options.data;
    }
    return 0;
}

/* Adds an entry with each of its optimizers. */
static int add_entry(TrainingPlan *plan, const CommandLine *asked, const TrainingEntry *entry,
                     int seed) {
    char *rest = NULL;
    Text text = text_of("%s", entry->optimizers);
    for (char *name = strtok_r(text.text, ", ", &rest); name; name = strtok_r(NULL, ", ", &rest))
        if (trainings_add(plan, asked, entry, name, seed)) return -1;
    return 0;
}

static int seeds_of(const CommandLine *asked, const TrainingEntry *entry) {
    static const int preset[PRESET_KINDS] = {1, 3, 3, 1};
    if (options_given(&asked->options, "seeds")) return asked->experiment.seeds;
    return entry && entry->seeds ? entry->seeds : preset[asked->experiment.preset];
}

/* Adds all entries of a seed before the next seed, so that an experiment that is stopped early is a
 * whole table of fewer seeds; or, when it takes hours, all seeds of an entry, so that some rows are
 * whole. */
static int add_preset(TrainingPlan *plan, const CommandLine *asked) {
    const TrainingEntry *known = plan->kind->preset[asked->experiment.preset];
    EntryList list = {0};
    char *rest = NULL;
    Text models = text_of("%s", asked->experiment.models);
    int max_seeds = 0, failed = 0;
    for (const TrainingEntry *e = known; e->model; e++) {
        if (!is_usable(known, e, asked)) continue;
        if (e->instead_of)
            text_add(&plan->missing, "%s%s is missing, %s replaces it",
                     *plan->missing.text ? "; " : "", e->instead_of, e->data);
        if (!*models.text) list.entry[list.count++] = *e;
    }
    for (char *name = strtok_r(models.text, " ", &rest); name; name = strtok_r(NULL, " ", &rest))
        if (list_model(&list, known, name, asked)) return -1;
    for (TrainingEntry *e = list.entry; e < list.entry + list.count; e++) {
        if (seeds_of(asked, e) > max_seeds) max_seeds = seeds_of(asked, e);
        if (*asked->experiment.optimizers) e->optimizers = asked->experiment.optimizers;
    }
    int turns = list.count * max_seeds; /* of an entry and a seed */
    for (int i = 0; i < turns && !failed; i++) {
        int seed = plan->kind->takes_hours ? i % max_seeds : i / list.count;
        const TrainingEntry *e =
            &list.entry[plan->kind->takes_hours ? i / max_seeds : i % list.count];
        if (seed < seeds_of(asked, e)) failed = add_entry(plan, asked, e, seed);
    }
    if (!failed && !plan->rows)
        failed = error_set("%s: it has no trainings for --preset %s", plan->kind->name,
                           preset_names[asked->experiment.preset]);
    return failed;
}

/* ---- the paper's own trainings --------------------------------------------------------------- */

/* Returns the published epochs to convergence.  Where Table 2 has iterations they are in Table 11,
 * for WikiText-2 alone; NAN for others. */
static double published_epochs(const PaperRow *row) {
    if (row->table != 2 || row->score_kind != SCORE_PERPLEXITY) return row->duration;
    for (const PaperRow *p = paper_table11; p->table; p++)
        if (p->submodels == row->submodels && !strcmp(p->data, row->data) &&
            !strcmp(p->optimizer, row->optimizer))
            return p->duration;
    return NAN;
}

/* The settings for the published length: "epochs=639 batch=128". */
static Text published_length(const PaperRow *row) {
    double epochs = published_epochs(row);
    bool tokens = data_is_tokens(row->data) == 1;
    return text_of("%s=%.0f batch=%d", isnan(epochs) ? "steps" : "epochs",
                   isnan(epochs) ? row->duration : epochs, tokens ? 1 : 128);
}

static int add_published(TrainingPlan *plan, const CommandLine *asked, const PaperRow *p,
                         int seed) {
    /* Table 2 is of thirds, which --submodels may change. */
    const Text settings = published_length(p);
    const Text ways = p->submodels == 1 ? text_of("full")
                      : p->table == 2   ? text_of("bcd")
                                        : text_of("bcd%d x%.17g", p->submodels, p->fraction);
    TrainingEntry entry = {
        .model = p->model, .data = p->data, .settings = settings.text, .ways = ways.text};
    return trainings_add(plan, asked, &entry, p->optimizer, seed);
}

/* Adds the published trainings. */
static int add_tables(TrainingPlan *plan, const CommandLine *asked, int seed) {
    const char *dir = *asked->options.data_dir ? asked->options.data_dir : NULL;
    for (const int *table = plan->kind->tables; *table; table++)
        for (const PaperRow *p = paper_rows(*table); p->table; p++)
            if (is_available(p->data, dir) && listed(p->model, asked->experiment.models, " ") &&
                listed(p->optimizer, asked->experiment.optimizers, ", ") &&
                add_published(plan, asked, p, seed))
                return -1;
    return plan->rows
               ? 0
               : error_set("--models or --optimizers: none of those is in the paper's table");
}

/* --model and --optimizer stand for --models and --optimizers. */
static void take_single(CommandLine *line) {
    ExperimentFlags *flags = &line->experiment;
    if (!*flags->models && options_given(&line->options, "model"))
        strcpy(flags->models, line->options.model);
    if (!*flags->optimizers && options_given(&line->options, "optimizer"))
        strcpy(flags->optimizers, optimizer_names[line->options.optimizer.kind]);
}

int trainings_plan(TrainingPlan *plan, const TrainingKind *kind, const CommandLine *line) {
    CommandLine asked = *line;
    const int preset = asked.experiment.preset;
    take_single(&asked);
    *plan = (TrainingPlan){.kind = kind,
                           .dir = rundir_results(line),
                           .jobs = asked.experiment.jobs,
                           .threads = asked.options.threads,
                           .long_run = preset == PRESET_GPU || preset == PRESET_PAPER ||
                                       (kind->takes_hours && preset != PRESET_SMOKE)};
    if (strlen(plan->dir.text) > 300) return error_set("--out: the name is too long");
    if (preset != PRESET_PAPER || !kind->tables[0]) return add_preset(plan, &asked);
    int failed = 0;
    for (int seed = 0; seed < seeds_of(&asked, NULL) && !failed; seed++)
        failed = add_tables(plan, &asked, seed);
    return failed;
}
