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
    PLAN_FULL,    /* all at each step */
    PLAN_OFFLOAD, /* likewise, with optimizer state and update in host memory */
    PLAN_BCD,
    PLAN_METHODS
} PlanMethod;
extern const char *const plan_method_names[PLAN_METHODS];

/* Alternatives of one setting; none: every one that exists. */
enum { PLAN_CHOICES = 32 };
typedef struct {
    int count, value[PLAN_CHOICES];
} PlanChoices;
/* One more, unless it is there. */
void choices_add(PlanChoices *choices, int value);

/* All settings that may be chosen, for one method and one kind of GPU. */
typedef struct {
    PlanMethod method;
    const Model *model;
    const Gpu *gpu;
    double price; /* dollars per hour of a GPU; NAN: not known */
    int per_node;
    double network_rate; /* as in Cluster */
    Efficiency efficiency;
    OptimizerSettings optimizer;
    int batch;                   /* samples per update */
    bool cached;                 /* BCD's frozen prefix */
    PlanChoices gpus, submodels; /* of these at least one */
    PlanChoices pipeline, replicas, micro_batches, placement, schedule, precision, recompute;
} PlanSpace;

typedef struct {
    PlanMethod method;
    int gpus;
    double price; /* dollars per hour of one */
    Configuration configuration;
    Prediction prediction;
} Plan;

typedef enum { PLAN_CHEAPEST, PLAN_FASTEST } PlanGoal;

/* ---- choose.c -------------------------------------------------------------------------------- */

/* Every setting of a space that exists at all: sizes divide, the model has blocks enough.  *plans,
 * to be freed, has no predictions.  Returns how many; -1 and an error when there is none. */
int plan_candidates(Plan **plans, const PlanSpace *space);

/* The plan that costs least per sample (GPU hours where there is no price) or takes least time per
 * step, among those that fit; of equals the first of plan_candidates.  On all threads.  Returns 1;
 * 0 when none fits: *best is then one of those that lack least memory; -1 and an error when the
 * space is empty. */
int plan_choose(Plan *best, const PlanSpace *space, PlanGoal goal);

/* What plan_choose minimises. */
double plan_score(const Plan *plan, PlanGoal goal);

/* ---- question.c ------------------------------------------------------------------------------ */

enum { PLAN_MULTIPLIERS = 4 };

/* The command line, understood. */
typedef struct {
    const Options *options;
    Model *model;
    const Gpu *gpu;                      /* of --gpu; NULL: any */
    Efficiency efficiency;               /* measured, if there is a --trace */
    double tokens;                       /* whose cost is shown; images for an image model */
    double multiplier[PLAN_MULTIPLIERS]; /* published: average, language, worst; ours */
    int multipliers;
} PlanQuestion;

/* With the model of that specification.  -1 and an error that names the flag that is wrong;
 * question_free is safe either way. */
int question_open(PlanQuestion *question, const Options *options, const char *spec);
void question_free(PlanQuestion *question);

/* The space of one method on GPUs of a kind, but for their number: what was given has one choice,
 * what was not is free; number of submodels and precision only if `wide`, else they are the
 * defaults. */
int question_space(PlanSpace *space, const PlanQuestion *question, PlanMethod method,
                   const Gpu *gpu, bool wide);

/* Dollars per hour of a GPU, as --price or the table says; NAN: neither does.  -1 and an error. */
int question_price(double *price, const PlanQuestion *question, const Gpu *gpu);

/* ---- calibrate.c ----------------------------------------------------------------------------- */

/* Sets the rate of products in *efficiency, at that precision, so that the simulated passes of the
 * model that `bcd trace --out PATH` measured on such a GPU take as long as measured.  -1 and an
 * error. */
int plan_calibrate(Efficiency *efficiency, const Gpu *gpu, const char *path);

/* ---- rows.c: plans in words, and tables with a plan in each row ------------------------------ */

enum { PLAN_TEXT = 160 };

/* "4 x 2 GPUs, 32 x 1, virtual, zero-bubble, bf16, recompute".  Returns `text`. */
const char *plan_setting(char text[PLAN_TEXT], const Plan *plan);
/* "full", "BCD-1/3". */
const char *plan_method(char text[32], const Plan *plan);
/* What keeps it from being faster, or from running at all: "bubble 41 %", "memory: lacks 3.1 GiB,
 * most is activations".  Returns `text`. */
const char *plan_limit(char text[PLAN_TEXT], const Plan *plan);
/* Hours of all GPUs together, and dollars, for so many tokens (images). */
double plan_gpu_hours(const Plan *plan, double tokens);
double plan_dollars(const Plan *plan, double tokens);

Table *plan_table(Tables *tables, const PlanQuestion *question, const char *name, const char *title,
                  const char *row_head);
/* Appends a row.  found: as plan_choose returned. */
void plan_row(Table *table, const PlanQuestion *question, const char *label, const Plan *plan,
              bool found);
/* A row of none. */
void plan_row_without(Table *table, const char *label, const char *why);

/* ---- the three kinds of answer; each adds tables, -1 and an error ---------------------------- */

int plan_cluster(Tables *tables, const PlanQuestion *question); /* cluster.c */
/* Who computes what when in the passes of the middle submodel; nothing where there is no pipeline,
 * or one of too many ranks to show. */
void plan_timeline(Tables *tables, const Plan *plan);          /* cluster.c */
int plan_search(Tables *tables, const PlanQuestion *question); /* search.c */
int plan_scale(Tables *tables, const Options *options);        /* search.c */
/* The specifications of --models, or those it looks at by itself, one after the other: copies the
 * one at *next and moves behind it.  False at the end. */
bool plan_scale_next(char spec[OPTION_TEXT], const char **next, const Options *options);

/* Refuses flags that make no sense together, before anything is computed.  -1 and an error. */
int plan_check(const Options *options);

#endif
