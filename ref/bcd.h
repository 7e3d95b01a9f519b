/* Training by block coordinate descent (Algorithm 1 of the paper).
 *
 * A step, or update, is one change of the active submodel's parameters from one batch.  A phase is
 * the steps that a submodel trains before the next one; M phases in a row are a cycle.  With M = 1
 * this is ordinary training, the full update that BCD is compared with. */
#ifndef REF_BCD_H
#define REF_BCD_H

#include "engine.h"
#include "submodel.h"

typedef enum { ORDER_CYCLIC, ORDER_DESCENDING, ORDER_RANDOM, ORDER_KINDS } Order;
extern const char *const order_names[ORDER_KINDS];

typedef enum { SWITCH_STEPS, SWITCH_EPOCHS, SWITCH_AUTO } SwitchKind;

typedef struct {
    SwitchKind kind;
    double every;             /* STEPS: K; EPOCHS: E */
    int window;               /* AUTO: leave when the mean loss of the last `window` steps is not */
    double tolerance;         /*   below that of the window before by this fraction, */
    int min_steps, max_steps; /*   but not before and not after so many steps */
} SwitchRule;

typedef struct {
    Partition partition;
    Order order;
    SwitchRule rule;
    OptimizerSettings optimizer;
    int batch;       /* samples per step */
    uint64_t steps;  /* of training in all */
    double fraction; /* dataset reduction: of the data each submodel sees; 1: all */
    uint64_t seed;
} BcdSettings;

/* Where the training is: with the tensors, everything a checkpoint needs, for submodels, batches
 * and rates are functions of these numbers and the seed.  All zero at the start. */
typedef struct {
    uint64_t step;                      /* updates done */
    uint64_t position;                  /* samples taken from the stream */
    uint64_t phase;                     /* k of Algorithm 1: submodels finished */
    uint64_t phase_steps;               /* updates done in this phase */
    uint64_t phase_start;               /* position at its start */
    int submodel;                       /* i_k, meaningful once phase_steps > 0 */
    double window_sum, last_window_sum; /* AUTO: of the losses in this window so far; in the last */
    uint64_t windows;                   /* complete ones in this phase */
} BcdState;

/* Called after each step; a non-zero return stops the training there (1) or fails it (-1).  The
 * step trained state->submodel; phase_steps 0 says that it was the last of its phase. */
typedef int (*BcdWatch)(void *context, const BcdState *state, const Loss *loss, double lr);

/* Trains until settings->steps updates are done, from wherever `state` stands: at the start, or
 * where a checkpoint left it, its submodel activated and its optimizer state written back.  Returns
 * 0 when done, 1 when the watch stopped it, -1 and an error on failure (loss not finite, no
 * memory). */
int bcd_train(BcdState *state, const BcdSettings *settings, Engine *engine, const Dataset *data,
              BcdWatch watch, void *context);

/* The submodel of phase k. */
int bcd_select(const BcdSettings *settings, uint64_t phase);

#endif
