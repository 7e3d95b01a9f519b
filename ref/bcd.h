/* Training by block coordinate descent (Algorithm 1 of the paper).
 *
 * A step, or update, is one change of the active submodel's parameters from one batch.  A phase is
 * the steps that a submodel trains before the next one; M phases in a row are a cycle.  With M = 1
 * this is ordinary training, the full update that BCD is compared with. */
#pragma once

#include "engine.h"
#include "partition.h"

/* Which submodel trains next, step 4 of Algorithm 1: the rows of the table in bcd_select.c. */
typedef enum {
    ORDER_CYCLIC,
    ORDER_DESCENDING,
    ORDER_RANDOM,
    ORDER_GAUSS_SOUTHWELL,
    ORDER_KINDS
} Order;
extern const char *const order_names[ORDER_KINDS];
/* Of each order whether the phase alone decides, and each submodel has its turn in a cycle. */
extern const bool order_by_phase[ORDER_KINDS];
/* Of each order whether it measures gradients, for which the engine needs gradient_norm. */
extern const bool order_by_gradients[ORDER_KINDS];

/* When a phase ends, the "until converged" of step 8. */
typedef enum {
    SWITCH_STEPS,  /* after `every` steps */
    SWITCH_EPOCHS, /* after `every` passes over the data, which may be a fraction */
    SWITCH_AUTO,   /* when the mean loss of a window of steps is less than `tolerance` (a fraction)
                    * below that of the window before, which is known only at the end of the second
                    * window or a later one; at min_steps at the earliest, at max_steps at the
                    * latest */
    SWITCH_KINDS
} SwitchKind;

typedef struct {
    SwitchKind kind;
    double every; /* SWITCH_STEPS, SWITCH_EPOCHS */
    int window;   /* >= 1; this and the next two are for SWITCH_AUTO */
    double tolerance;
    int min_steps, max_steps;
} SwitchRule;

struct BcdState;
/* Called after each batch of a pre-inference: `done` of the phase's `samples` are inferred. Returns
 * what a BcdWatch returns. */
typedef int (*BcdInferWatch)(void *context, const struct BcdState *state, int done, int samples);

typedef struct {
    Partition partition;
    Order order;
    SwitchRule rule;
    OptimizerSettings optimizer; /* its rate and schedule alone are read here: all else of an update
                                  * is in the stage's own (StageSettings.optimizer) */
    int switch_warmup; /* updates at the start of a phase in which the rate rises linearly, also
                        * for blocks that are always active */
    int batch;         /* samples per step */
    uint64_t steps;    /* updates of the whole training */
    double fraction;   /* dataset reduction: the share of the data each submodel sees; 1: all */
    uint64_t seed;
    bool pre_infer;         /* each phase begins with pre-inference; needs an engine that has it */
    BcdInferWatch inferred; /* or NULL */
} BcdSettings;

/* How far the training is.  Submodels, batches and rates are functions of these numbers, the seed
 * and the tensors, so a checkpoint needs only these and the tensors.  All zero at the start; what
 * is of a phase is cleared at its end (bcd.c, finish_phase). */
typedef struct BcdState {
    uint64_t step;          /* updates done */
    uint64_t position;      /* samples taken from the stream */
    uint64_t phase;         /* k of Algorithm 1: phases finished */
    uint64_t phase_steps;   /* updates done in this phase */
    uint64_t phase_start;   /* position at the start of this phase */
    int submodel;           /* i_k, counted from 0; between phases, that of the last one */
    double window_sum;      /* SWITCH_AUTO: sum of the losses in the current window */
    double last_window_sum; /* SWITCH_AUTO: sum of the losses in the window before */
    uint64_t windows;       /* SWITCH_AUTO: complete windows in this phase */
} BcdState;

/* Called after each step, which trained state->submodel; state->phase_steps is 0 if the step was
 * the last of its phase.  Return 0 to go on, 1 to stop the training here, -1 and an error to fail
 * it. */
typedef int (*BcdWatch)(void *context, const BcdState *state, const Loss *loss, double lr);

/* Returns the phase of that step. */
static inline uint64_t bcd_phase_done(const BcdState *state) {
    return state->phase - (state->phase_steps == 0);
}

/* Trains until settings->steps updates are done.  `state` is all zero at the start; to resume, it
 * is what the checkpoint holds, and the caller has activated its submodel and written back
 * parameters and optimizer state.  `watch` may be NULL.  Returns 0 when done, 1 when the watch (or
 * settings->inferred) stopped it; -1 and an error when memory runs out, or the watch, the order or
 * a call of the engine fails, as where the loss is not finite. */
int bcd_train(BcdState *state, const BcdSettings *settings, Engine *engine, const Dataset *data,
              BcdWatch watch, void *context);

/* ---- bcd_select.c ---- */

/* Returns the submodel to train in phase state->phase, or -1 and an error.  `next` is the batch of
 * its first update.  An order may activate submodels on the engine to measure their gradients, so
 * any of them may be active afterwards; parameters and running statistics do not change.  Where
 * there are two or more to measure, this restarts the submodel's optimizer in each phase, even
 * where the order chooses the same again, unless state is kept, and then each submodel's state is
 * allocated at the first phase.  With an order by phase both may be NULL, and the rest of the state
 * does not matter. */
int bcd_select(const BcdState *state, const BcdSettings *settings, Engine *engine,
               const Batch *next);

/* Steps 5 to 7: activates the blocks of one submodel on the engine and freezes all others.  The
 * optimizer of a block that was frozen begins with state 0 and t = 0, unless state is kept
 * (StageSettings.keep_state); a block that goes on training keeps its own.  -1 and an error when
 * memory runs out or the engine fails, which can then only be freed. */
int bcd_activate(const BcdSettings *settings, Engine *engine, int submodel);

/* ---- bcd_infer.c ---- */

/* Infers the prefix for all samples that the rest of the phase may see, each once; does nothing if
 * there is no prefix.  The submodel is active.  Returns 0 when done, 1 when settings->inferred
 * stopped it; -1 and an error when memory runs out, or the engine fails or has no pre-inference. */
int bcd_pre_infer(const BcdState *state, const BcdSettings *settings, Engine *engine,
                  const Dataset *data, Sampler *sampler, void *context);

/* ---- bcd_switch.c ---- */

/* Returns the updates that are left of the phase, or their maximum; `samples` is the size
 * of the data set. */
uint64_t bcd_steps_left(const BcdState *state, const BcdSettings *settings, int samples);

/* Returns the updates of the shortest phase that is over, on a data set of `samples`. */
uint64_t bcd_shortest_phase(const BcdSettings *settings, int samples);

/* Returns true if the phase ends with the update that was just counted in `state`; `loss` is its
 * mean loss.  Here `samples` is the size of the phase's subset (sampler.used).  SWITCH_AUTO adds
 * the loss to its window in `state`, so call this once for each update. */
bool bcd_phase_over(BcdState *state, const SwitchRule *rule, int samples, double loss);

/* Returns true if a training with these settings on a data set of `samples` can have come to this
 * state, as far as its counters say; a damaged checkpoint seldom passes. */
bool bcd_state_possible(const BcdState *state, const BcdSettings *settings, int samples);
