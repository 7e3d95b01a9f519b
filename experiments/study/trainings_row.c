/* A row of a plan: its options of `bcd train`, its name, how long it takes, and how far it is. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../ref/base/error.h"
#include "../alloc.h"
#include "../store/rundir.h"
#include "../train/setup.h"
#include "trainings.h"

/* One of the ways in which an entry is trained (trainings.h). */
typedef struct {
    int submodels;
    double fraction;
    const char *settings; /* "": none */
} TrainingWay;

/* Returns the submodels of "bcd" without a number: those of --partition or --submodels, or 3. */
static int default_submodels(const Options *asked) {
    int parts = 1;
    for (const char *c = asked->partition; *c; c++) parts += *c == '/';
    if (*asked->partition) return parts;
    return options_given(asked, "submodels") ? asked->submodels : 3;
}

/* Reads "bcd4 x0.9 lr=0.1"; the settings stay in the text. */
static int read_way(TrainingWay *way, char *text, const Options *asked) {
    *way = (TrainingWay){.submodels = 1, .fraction = 1};
    text += strspn(text, " ");
    char *end = text + 4;
    if (strncmp(text, "bcd", 3) == 0)
        way->submodels = (int)strtol(text + 3, &end, 10);
    else if (strncmp(text, "full", 4) != 0)
        return error_set("%.40s: a way to train begins with full or bcd", text);
    if (!strchr(" ", *end)) return error_set("%.40s: expected a space after full or bcd", text);
    end += strspn(end, " ");
    if (*end == 'x') way->fraction = strtod(end + 1, &end);
    way->settings = end + strspn(end, " ");
    if (way->submodels) return 0;
    way->submodels = default_submodels(asked);
    if (way->submodels > 1) return 0;
    return error_set("--submodels %d: BCD needs at least 2", way->submodels);
}

/* Applies the flags given on the command line, except those that the rows differ in, or that make
 * no sense for a full update.  A file of --config has been read already. */
static int set_given(Options *options, const Options *asked, bool full) {
    const char *const apart[] = {"model", "data",         "optimizer", "submodels",
                                 "out",   "quiet",        "config",    full ? "partition" : NULL,
                                 "cache", "device-cache", NULL};
    return options_take(options, asked, apart, false);
}

/* Names a row and its directory, e.g. "gpt-layers-2-text-sgd-bcd3".  A long name is cut before the
 * seed, so that each seed keeps its own directory. */
static void name_row(TrainingRow *row, int submodels, const char *settings) {
    const Options *o = &row->options;
    const char *slash = strrchr(o->data, '/');
    Text text = text_of("%.60s-%.20s-%s-", o->model, slash ? slash + 1 : o->data,
                        optimizer_names[o->optimizer.kind]);
    text_add(&text, submodels > 1 ? "bcd%d" : "full", submodels);
    if (o->fraction < 1) text_add(&text, "-of%.4g", o->fraction);
    text_add(&text, "%s%.46s", *settings ? "-" : "", settings);
    Text seed = {""};
    if (o->seed != 1) seed = text_of("-seed%llu", (unsigned long long)o->seed);
    int room = (int)(sizeof row->name - 1 - strlen(seed.text));
    strcpy(row->name, text_of("%.*s%s", room, text.text, seed.text).text);
    for (char *c = row->name; *c; c++)
        if (!isalnum((unsigned char)*c) && *c != '.') *c = '-';
}

/* Returns the work of a training, up to a factor: its operations, with BCD fewer as contiguous
 * submodels of equal size have. */
static double relative_work(const Options *o, int submodels) {
    bool bytes = !strncmp(o->data, "text", 4) || !strcmp(o->data, "shakespeare");
    int known = tokenizer_part(o->data);
    Model *model = setup_model(o->model, bytes ? 256 : known > 0 ? known : 0, o->context);
    if (!model) return 0;
    double flops = 0;
    for (int i = 0; i < model->nodes; i++) flops += node_flops(&model->node[i], PASS_FORWARD);
    model_free(model);
    double length = o->steps ? (double)o->steps * (o->batch ? o->batch : 1) : o->epochs * 1e4;
    return length * flops * (submodels > 1 ? 0.5 + 0.5 / submodels : 1);
}

static const char *or_none(const char *settings) { return settings ? settings : ""; }

static int set_row(Options *o, const TrainingEntry *entry, const char *optimizer,
                   const TrainingWay *way) {
    options_defaults(o);
    if (options_set(o, "model", entry->model) || options_set(o, "data", entry->data) ||
        options_set(o, "optimizer", optimizer) || setup_pin(o) ||
        options_set_all(o, "submodels=%d %s %s %s", way->submodels, or_none(entry->settings),
                        or_none(o->optimizer.kind == OPTIMIZER_SGD ? entry->sgd : entry->adam),
                        way->settings))
        return -1;
    return way->fraction < 1 ? options_set_all(o, "fraction=%.17g", way->fraction) : 0;
}

static int add_row(TrainingPlan *plan, const TrainingEntry *entry, const char *optimizer,
                   char *text, int seed) {
    const Options *asked = &plan->asked.options;
    plan->row = xrealloc(plan->row, (size_t)(plan->rows + 1) * sizeof *plan->row);
    TrainingRow *row = &plan->row[plan->rows];
    *row = (TrainingRow){0};
    Options *o = &row->options;
    TrainingWay way;
    if (read_way(&way, text, asked) || set_row(o, entry, optimizer, &way) ||
        set_given(o, asked, way.submodels == 1))
        return -1;
    if (seed && options_set_all(o, "seed=%llu", (unsigned long long)o->seed + (unsigned)seed))
        return -1;
    if (setup_check(o)) return -1;
    name_row(row, way.submodels, way.settings);
    snprintf(o->out, sizeof o->out, "%.300s/rows/%s", plan->dir.text, row->name);
    o->quiet = asked->quiet;
    row->work = relative_work(o, way.submodels);
    plan->rows++;
    return 0;
}

int trainings_add(TrainingPlan *plan, const TrainingEntry *entry, const char *optimizer, int seed) {
    char *ways = xstrdup(entry->ways ? entry->ways : plan->kind->ways), *rest = NULL;
    int failed = 0;
    for (char *text = strtok_r(ways, ";", &rest); text && !failed;
         text = strtok_r(NULL, ";", &rest))
        failed = add_row(plan, entry, optimizer, text, seed);
    free(ways);
    return failed;
}

/* ---- progress -------------------------------------------------------------------------------- */

int trainings_read_run(RunFile *run, const TrainingRow *row) {
    const Text path = rundir_path(row->options.out, "run.h5");
    *run = (RunFile){0};
    if (access(path.text, F_OK)) return 0;
    return runfile_read(run, path.text) ? -1 : 1;
}

double trainings_done(const TrainingRow *row) {
    const Options *o = &row->options;
    RunFile run;
    double done = 0;
    if (trainings_read_run(&run, row) > 0 && run.curve_rows) {
        double steps = o->epochs > 0 ? o->epochs * run.steps_per_epoch : (double)o->steps;
        done = fmin(1, (double)run.curve[run.curve_rows - 1].step / steps);
    }
    runfile_free(&run);
    return done;
}

double trainings_work_left(const TrainingPlan *plan) {
    double work = 0;
    for (const TrainingRow *row = plan->row; row < plan->row + plan->rows; row++)
        if (!row->finished && !row->ended) work += row->work * (1 - trainings_done(row));
    return work;
}
