/* `bcd plan`: what a training would take on machines that are not here, and the cheapest way to do
 * it.  Everything rests on simulate() of dist/simulate.h; here are the choices, and the search
 * among them. */
#ifndef EXPERIMENTS_PLAN_H
#define EXPERIMENTS_PLAN_H

#include "../../dist/simulate.h"
#include "../cli/options.h"
#include "../tables/table.h"

/* How the parameters are trained. */
typedef enum {
    WAY_FULL,    /* all at each step */
    WAY_OFFLOAD, /* likewise, with optimizer state and update in host memory */
    WAY_BCD,
    WAYS
} Way;
extern const char *const way_names[WAYS];

/* Alternatives of one setting. */
enum { CHOICES = 32 };
typedef struct {
    int count, value[CHOICES];
} Choices;

/* All settings that may be chosen, for one way and one kind of GPU. */
typedef struct {
    Way way;
    const Model *model;
    const Gpu *gpu;
    double price; /* dollars per hour of a GPU; NAN: not known */
    int per_node;
    double network_rate; /* as in Cluster */
    Efficiency efficiency;
    OptimizerSettings optimizer;
    int batch;   /* samples per update */
    bool cached; /* BCD's frozen prefix */
    Choices gpus;
    Choices pipeline, replicas, micro_batches; /* none: every one that divides */
    Choices submodels, placement, schedule, precision, recompute;
} Space;

typedef struct {
    Way way;
    int gpus;
    double price; /* dollars per hour of one */
    Configuration configuration;
    Prediction prediction;
} Plan;

typedef enum { CHEAPEST, FASTEST } Goal;

/* ---- candidates.c ----------------------------------------------------------------------------
 */

/* Every setting of a space that exists at all: sizes divide, the model has blocks enough.  *plans,
 * to be freed, has no predictions.  Returns how many; -1 and an error when there is none. */
int plan_candidates(Plan **plans, const Space *space);

/* ---- choose.c --------------------------------------------------------------------------------
 */

/* The plan that costs least per sample (GPU hours where there is no price) or takes least time per
 * step, among those that fit; of equals the first of plan_candidates.  Bounds from below spare most
 * simulations and change nothing.  On all threads.  Returns 1; 0 when none fits: *best is then one
 * of those that lack least memory; -1 and an error when the space is empty. */
int plan_choose(Plan *best, const Space *space, Goal goal);

/* What plan_choose minimises. */
double plan_score(const Plan *plan, Goal goal);

/* ---- question.c ------------------------------------------------------------------------------
 */

enum { MULTIPLIERS_SHOWN = 4 };

/* The command line, understood. */
typedef struct {
    const Options *options;
    Model *model;
    const Gpu *gpu;                       /* of --gpu; NULL: any */
    Efficiency efficiency;                /* measured, if there is a --trace */
    double tokens;                        /* whose cost is told; images for an image model */
    double multiplier[MULTIPLIERS_SHOWN]; /* published: average, language, worst; ours */
    int multipliers;
} Question;

/* With the model of that specification.  -1 and an error that names the flag that is wrong;
 * question_free is safe either way. */
int question_open(Question *question, const Options *options, const char *spec);
void question_free(Question *question);

/* The space of one way on GPUs of a kind, but for their number: what was given has one choice, what
 * was not is free; number of submodels and precision only if `wide`, else they are the defaults. */
int question_space(Space *space, const Question *question, Way way, const Gpu *gpu, bool wide);

/* Dollars per hour of a GPU, as --price or the table says; NAN: neither does.  -1 and an error. */
int question_price(double *price, const Question *question, const Gpu *gpu);

/* More choices: one, unless it is there. */
void choices_add(Choices *choices, int value);

/* ---- measured.c ------------------------------------------------------------------------------
 */

/* Sets the rate of products in *efficiency, at that precision, so that the simulated passes of the
 * model that `bcd trace --out PATH` measured on such a GPU take as long as measured.  -1 and an
 * error. */
int plan_calibrate(Efficiency *efficiency, const Gpu *gpu, const char *path);

/* ---- words.c ---------------------------------------------------------------------------------
 */

enum { PLAN_TEXT = 160 };

/* "4 x 2 GPUs, 32 x 1, virtual, zero-bubble, bf16, recompute".  Returns `text`. */
const char *plan_setting(char text[PLAN_TEXT], const Plan *plan);
/* "full", "BCD-1/3". */
const char *plan_way(char text[32], const Plan *plan);
/* What keeps it from being faster, or from running at all: "bubble 41 %", "memory: lacks 3.1 GiB,
 * most is activations".  Returns `text`. */
const char *plan_limit(char text[PLAN_TEXT], const Plan *plan);
/* Hours of all GPUs together, and dollars, for so many tokens (images). */
double plan_gpu_hours(const Plan *plan, double tokens);
double plan_dollars(const Plan *plan, double tokens);

/* ---- rows.c: tables with a plan in each row ---------------------------------------------------
 */

Table *plan_table(Tables *tables, const Question *question, const char *name, const char *title,
                  const char *row_head);
/* Appends a row.  found: as plan_choose returned. */
void plan_row(Table *table, const Question *question, const char *label, const Plan *plan,
              bool found);
/* A row of none. */
void plan_row_without(Table *table, const char *label, const char *why);
/* Where the search is, on a terminal, in a line that the next replaces; "": ends it.  Returns 0. */
int plan_progress(const char *format, ...) BCD_PRINTF(1, 2);

/* ---- timeline.c ------------------------------------------------------------------------------
 */

/* Adds who computes what when in the passes of the middle submodel; nothing where there is no
 * pipeline, or one of too many ranks to show.  -1 and an error. */
int plan_timeline(Tables *tables, const Plan *plan);

/* ---- the three kinds of answer; each adds tables, -1 and an error ------------------------------
 */

/* cluster.c.  *shown gets the plan of BCD if it fits, else its `gpus` stays 0. */
int plan_cluster(Tables *tables, const Question *question, Plan *shown);
int plan_search(Tables *tables, const Question *question); /* search.c */
int plan_scale(Tables *tables, const Options *options);    /* scale.c */
/* The specifications of --models, or those it looks at by itself, one after the other: copies the
 * one at *next and moves behind it.  False at the end. */
bool plan_scale_next(char spec[OPTION_TEXT], const char **next, const Options *options);

/* Refuses flags that make no sense together, before anything is computed.  -1 and an error. */
int plan_check(const Options *options);

#endif
