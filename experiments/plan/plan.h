/* `bcd plan`: what a training takes on other GPUs, and its cheapest settings.  It simulates
 * settings with simulate() of dist/simulate.h and searches among them. */
#pragma once

#include "../../dist/simulate.h"
#include "../cli/command_line.h"
#include "../tables/table.h"

typedef enum {
    PLAN_FULL,
    PLAN_OFFLOAD, /* full update with optimizer state and update in host memory */
    PLAN_BCD,
    PLAN_METHODS
} PlanMethod;
extern const char *const plan_method_names[PLAN_METHODS];

typedef struct {
    PlanMethod method;
    int gpus;
    double price;   /* dollars per GPU and hour; NAN: unknown */
    double updates; /* to the same loss, over those of the full update */
    Configuration configuration;
    Prediction prediction;
} Plan;

/* What BCD's updates are measured of (updates.c). */
typedef enum { PLAN_IMAGES, PLAN_TEXT, PLAN_TUNING, PLAN_TASKS } PlanTask;

/* Numbers to try. */
enum { PLAN_CHOICES = 32 };
typedef struct {
    int count, value[PLAN_CHOICES];
} PlanChoices;
/* Adds a number unless it is there already. */
void choices_add(PlanChoices *choices, int value);

/* The settings to search, for one method and one kind of GPU. */
typedef struct {
    Plan plan; /* what all of them have in common */
    int per_node;
    int batch;  /* samples per update */
    int blocks; /* that belong to submodels: all but those that are always active */
    PlanTask task;
    double multiplier; /* see PlanQuestion */
    PlanChoices gpus, submodels;
    PlanChoices more_submodels; /* tried where nothing fits with the others */
    /* One value, or PLAN_FREE for all that exist. */
    int pipeline, replicas, micro_batches, placement, schedule, precision, recompute;
} PlanSpace;
enum { PLAN_FREE = -1 };

typedef enum { PLAN_CHEAPEST, PLAN_FASTEST } PlanGoal;

/* ---- choose.c -------------------------------------------------------------------------------- */

/* Lists the possible settings of a space: sizes divide, and the model has enough blocks.  *plans,
 * to be freed, has no predictions yet.  Returns their number; -1 and an error when there are none.
 */
int plan_candidates(Plan **plans, const PlanSpace *space);

/* Finds, on all threads, the best plan; of equals the first one of plan_candidates.  Returns
 * whether it fits; -1 and an error when the space is empty. */
int plan_choose(Plan *best, const PlanSpace *space, PlanGoal goal);

/* Returns what is minimised: GPU seconds, which are the cost on one kind of GPU, or seconds, of as
 * many steps as reach the loss of a step of the full update. */
double plan_score(const Plan *plan, PlanGoal goal);
/* Returns true when only the first fits, or its score is less; of two that do not fit, when it
 * lacks less memory. */
bool plan_is_better(const Plan *plan, const Plan *than, PlanGoal goal);

/* ---- question.c ------------------------------------------------------------------------------ */

/* What the command line asks for. */
typedef struct {
    const CommandLine *line;
    Model *model;
    const Gpu *gpu;        /* of --gpu; NULL: any */
    int per_node;          /* GPUs, or ranks on processors of this machine */
    Gpu machine;           /* --gpu cpu: a processor of this machine */
    Gpu unlimited;         /* the same with any memory: --ignore-memory */
    int blocks;            /* that belong to BCD's submodels: all but those always active */
    Efficiency efficiency; /* measured, if there is a --trace */
    PlanTask task;
    double multiplier; /* updates of BCD to the same loss, over those of the full update; NAN: as
                        * measured of the task */
} PlanQuestion;

/* Reads the command line.  -1 and an error that names the wrong flag; question_free is safe either
 * way. */
int question_open(PlanQuestion *question, const CommandLine *line);
void question_free(PlanQuestion *question);

/* Returns true when a method, or with PLAN_METHODS each of them, is asked for.  Offload is not
 * among all on a processor, which has no host, or if the update multiplies matrices, whose time on
 * a host is not known. */
bool question_asks(const PlanQuestion *question, int method);

/* Returns true when a wide space has every precision: none is given or measured. */
bool question_frees_precision(const PlanQuestion *question);

/* Makes the space of a method on one kind of GPU, except for their number.  Flags that were given
 * have one value, others are free; submodels and precision are free only if `wide`.  The space
 * refers to the question's model and to `gpu`.  -1 and an error if --price is wrong. */
int question_space(PlanSpace *space, const PlanQuestion *question, PlanMethod method,
                   const Gpu *gpu, bool wide);

/* Returns "GPU", or of --gpu cpu "processor". */
const char *plan_unit(const Gpu *gpu);

/* Finds the dollars per hour of a GPU in --price or gpu_table; NAN when neither has them.  -1 and
 * an error. */
int question_price(double *price, const PlanQuestion *question, const Gpu *gpu);

/* ---- updates.c ------------------------------------------------------------------------------- */

/* Returns the updates of BCD with so many submodels over those of the full update, to the same
 * loss, as measured, interpolated or extrapolated; 1 of one submodel. */
double plan_updates(PlanTask task, int submodels);
/* Notes what that assumes, and what was published. */
void plan_updates_note(Table *table, const PlanQuestion *question);

/* ---- calibrate.c ----------------------------------------------------------------------------- */

/* Sets efficiency->products[precision] by a file of `bcd trace --out PATH`, measured on such a GPU
 * in that precision, so that the simulated passes take as long as measured.  -1 and an error. */
int plan_calibrate(Efficiency *efficiency, const Gpu *gpu, int precision, const char *path);

/* Sets efficiency->products at the precision of a plan, or host_process_rate if it is of
 * PLAN_OFFLOAD, so that its step takes step_s.  -1 and an error. */
int plan_calibrate_step(Efficiency *efficiency, const Plan *plan, double step_s);

/* ---- machine.c ------------------------------------------------------------------------------- */

/* Measures a processor of this machine, in about a second, with one thread on each and all of them
 * busy: *cpu has the rates, of which *efficiency then takes all, and its share of the memory when
 * `ranks` compute.  -1 and an error. */
int machine_measure(Gpu *cpu, Efficiency *efficiency, int ranks);
/* Adds what was measured. */
void machine_add(Tables *tables, const Gpu *cpu, const Efficiency *efficiency);

/* ---- rows.c: plans as text, and tables with a row for each plan ------------------------------ */

/* Prints what is being planned on a terminal, over the line before; "" clears it. */
void plan_progress(const char *text);
/* "4 x 2 GPUs, 32 x 1, virtual, zero-bubble, bf16, recompute". */
Text plan_setting(const Plan *plan);
/* "full", "BCD-1/3". */
Text plan_method(const Plan *plan);
/* Says what limits a plan: "bubble 41 %", or "memory: lacks 3.1 GiB, activations take the most";
 * "passes 93 %" where they take most of a step, by their arithmetic, memory traffic or launches. */
Text plan_limit(const Plan *plan);
/* Return the GPU hours and the dollars of a training on so many tokens (images). */
double plan_gpu_hours(const Plan *plan, double tokens);
double plan_dollars(const Plan *plan, double tokens);

Table *plan_table(Tables *tables, const PlanQuestion *question, const char *name, const char *title,
                  const char *row_head);
/* Appends a row; of a plan that does not fit only its memory is shown. */
void plan_row(Table *table, const PlanQuestion *question, const char *label, const Plan *plan);
/* Returns what is minimised: dollars (GPU hours if there is only one kind of GPU, whose price may
 * be unknown), or seconds; NAN of a plan that does not fit, or is of no GPUs. */
double plan_value(const PlanQuestion *question, const Plan *plan, PlanGoal goal);
/* Fills in, and notes, with how many updates each BCD plan would be no better than the best of the
 * others of plans[table->rows]; the first `named` are compared among themselves. */
void plan_break_even(Table *table, const PlanQuestion *question, const Plan *plans, int named,
                     PlanGoal goal);
/* Gives the columns as many digits as their least numbers need. */
void plan_digits(Table *table);
/* Adds the rates that the simulation takes of a kind of GPU. */
void plan_rates(Tables *tables, const PlanQuestion *question, const Gpu *gpu);
/* Appends a row that says why there is no plan. */
void plan_row_without(Table *table, const char *label, const char *why);

/* ---- notes.c --------------------------------------------------------------------------------- */

/* Notes what the numbers of plans[table->rows] leave out. */
void plan_notes(Table *table, const PlanQuestion *question, const Plan *plans);

/* ---- cluster.c ------------------------------------------------------------------------------- */

/* Adds the simulated timeline of a step with one submodel active: a row for each task, ordered by
 * rank and start.  The page draws it; as text there are only its title and notes. */
enum { TASK_WHAT, TASK_CHUNK, TASK_MICRO_BATCH, TASK_START, TASK_END, TASK_COLUMNS };
void timeline_add(Tables *tables, const char *name, const char *title,
                  const Configuration *configuration, int submodel);

/* ---- infer.c --------------------------------------------------------------------------------- */

/* Adds what pre-inference takes and saves, by 1, 2, 4 ... ranks of each pipeline of a plan.  -1 and
 * an error. */
int plan_inference(Tables *tables, const Plan *plan);

/* ---- the two kinds of answer: each adds tables, or returns -1 with an error set -------------- */

/* cluster.c; replaces the question's rates by those of --step-ms */
int plan_cluster(Tables *tables, PlanQuestion *question);
int plan_search(Tables *tables, const PlanQuestion *question); /* search.c */
