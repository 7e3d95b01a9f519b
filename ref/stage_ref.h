/* The CPU stage, shared by its two files: stage_ref.c owns the memory, stage_pass.c runs the
 * passes. */
#ifndef REF_STAGE_REF_H
#define REF_STAGE_REF_H

#include "layout.h"

typedef struct {
    Stage base;
    MemCount counted;
    real **param;             /* [params] */
    real **buffer;            /* [buffers] */
    real **before;            /* [buffers]: copies from the start of the step */
    bool stepping;            /* a step has started and is neither updated nor discarded yet */
    real **gradient;          /* [params]; NULL where frozen */
    real **state[2];          /* [params]; NULL where there is none */
    bool *gradient_made;      /* [params]: written in this step, so the next contribution adds */
    uint64_t *optimizer_step; /* [blocks]: updates that the block's optimizer state has seen */
    bool *active;             /* [blocks] */
    Layout layout;
    int max_in_flight;     /* the most micro-batches in flight of any block */
    int micro_batch;       /* the selected one */
    real **value;          /* [max_in_flight][values]: stored activations */
    real **aux;            /* [max_in_flight][nodes] */
    real **value_gradient; /* [max_in_flight][values]: stored for deferred weight gradients */
    real *workspace;       /* values and gradients that are not stored, see layout.h */
    real *loss, *log_sum;  /* [batch * targets] */
    unsigned char *correct;
    Batch batch; /* the micro-batch of this pass; its arrays are the caller's */
    Mode mode;
} RefStage;

/* Return where a value of the current micro-batch lives, and where its gradient does. */
real *stage_value(RefStage *stage, int value);
real *stage_value_gradient(RefStage *stage, int value);

/* Copies all buffers of this stage: from `buffer` to `before` when a step starts, and back when it
 * is discarded. */
void stage_copy_buffers(const RefStage *stage, real *const *to, real *const *from);

void stage_begin(Stage *base, const Batch *batch, Mode mode);
void stage_forward(Stage *base, int block);
Loss stage_loss(Stage *base, double scale);
void stage_input_gradient(Stage *base, int block);
void stage_weight_gradient(Stage *base, int block);

#endif
