/* Inside of the CPU stage, shared by its two files: stage_ref.c owns the memory, stage_pass.c runs
 * the passes. */
#ifndef REF_STAGE_REF_H
#define REF_STAGE_REF_H

#include "layout.h"

typedef struct {
    Stage base;
    MemCount counted;
    real **param;             /* [params] */
    real **buffer;            /* [buffers] */
    real **before;            /* [buffers]: as they were when the step started */
    bool stepping;            /* a step has started, and is neither updated nor discarded */
    real **gradient;          /* [params]; NULL: frozen */
    real **state[2];          /* [params]; NULL: none */
    bool *gradient_made;      /* [params]: this step has written it, the next contribution adds */
    uint64_t *optimizer_step; /* [blocks]: optimizer steps of the block's optimizer state */
    bool *active;             /* [blocks] */
    Layout layout;
    int max_in_flight; /* most of any block */
    int micro_batch;   /* selected */
    real **value;      /* [max_in_flight][values]: stored activations */
    real **aux;        /* [max_in_flight][nodes] */
    /* [max_in_flight][values]: gradients stored for deferred weight gradients */
    real **value_gradient;
    real *workspace;      /* all other values and gradients, see layout.h */
    real *loss, *log_sum; /* [batch * targets] */
    unsigned char *correct;
    Batch batch; /* in flight, by reference */
    Mode mode;
} RefStage;

/* Where a value of the batch in flight lives, and its gradient in the backward pass. */
real *stage_value(RefStage *stage, int value);
real *stage_value_gradient(RefStage *stage, int value);

/* All buffers that are here; for a step that starts (to before) or is given up (from there). */
void stage_copy_buffers(const RefStage *stage, real *const *to, real *const *from);

void stage_begin(Stage *base, const Batch *batch, Mode mode);
void stage_forward(Stage *base, int block);
Loss stage_loss(Stage *base, double scale);
void stage_input_gradient(Stage *base, int block);
void stage_weight_gradient(Stage *base, int block);

#endif
