/* What a training by block coordinate descent is asked for, and where it stands. */
#ifndef REF_BCD_SETTINGS_H
#define REF_BCD_SETTINGS_H

#include "optimizer.h"
#include "submodel.h"

/* Rows of the table in bcd_select.c. */
typedef enum {
    ORDER_CYCLIC,
    ORDER_DESCENDING,
    ORDER_RANDOM,
    ORDER_GAUSS_SOUTHWELL,
    ORDER_KINDS
} Order;
extern const char *const order_names[ORDER_KINDS];

/* Rows of the table in bcd_switch.c. */
typedef enum { SWITCH_STEPS, SWITCH_EPOCHS, SWITCH_AUTO, SWITCH_KINDS } SwitchKind;

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
    int switch_warmup; /* in the first so many updates of a phase the rate rises linearly; 0: none
                        */
    int batch;         /* samples per step */
    uint64_t steps;    /* of training in all */
    double fraction;   /* dataset reduction: of the data each submodel sees; 1: all */
    uint64_t seed;
} BcdSettings;

/* Where the training is: with the tensors, everything a checkpoint needs, for submodels, batches
 * and rates are functions of these numbers, the seed and the tensors.  All zero at the start. */
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

#endif
