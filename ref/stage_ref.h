/* The CPU stage, shared by its files: stage_ref.c owns the memory, stage_pass.c computes, and
 * stage_extend.c generates. */
#pragma once

#include "layout.h"
#include "node.h"

/* A parameter; arrays that do not exist, or not on this stage, are NULL. */
typedef struct {
    real *data, *gradient, *state[STATE_VECTORS];
    bool gradient_made; /* written in this step, so that the next contribution adds */
} StageParam;

/* A buffer, and a copy from the start of the step. */
typedef struct {
    real *data, *before;
} StageBuffer;

typedef struct {
    Stage base;
    StageParam *param;   /* [params] */
    StageBuffer *buffer; /* [buffers] */
    bool stepping;       /* a step has started and is neither updated nor discarded yet */
    bool *active;        /* [blocks] */
    Layout layout;
    int max_in_flight;     /* the maximum over blocks of micro-batches in flight */
    int micro_batch;       /* the selected one */
    real **value;          /* [max_in_flight][values]: stored activations */
    real **aux;            /* [max_in_flight][nodes] */
    real **value_gradient; /* [max_in_flight][values]: stored for deferred weight gradients */
    real **kept;           /* [values]: inputs of attentions, of all positions (extend) */
    real *workspace;       /* values and gradients that are not stored, see layout.h */
    real *loss, *log_sum;  /* [batch * targets] */
    unsigned char *correct;
    Batch batch; /* the micro-batch of this pass; its arrays are the caller's */
    Mode mode;
} RefStage;

/* Return where a value of the current micro-batch lives, and where its gradient does. */
real *stage_value(RefStage *stage, int value);
real *stage_value_gradient(RefStage *stage, int value);

/* Returns the arrays and options that all calls on a node share, for the micro-batch. */
NodeIO stage_node_io(RefStage *stage, const Node *node);

/* Returns true if this stage's optimizer updates the parameter. */
bool stage_updates(const RefStage *stage, int param);

/* ---- calls of StageClass in stage_pass.c ---- */

void stage_ref_begin(Stage *base, const Batch *batch, Mode mode);
void stage_ref_forward(Stage *base, int block);
int stage_ref_loss(Stage *base, double scale, Loss *loss);
void stage_ref_input_gradient(Stage *base, int block);
void stage_ref_weight_gradient(Stage *base, int block);
void stage_ref_discard(Stage *base);
int stage_ref_gradient_norm(Stage *base, double *norm);
void stage_ref_update(Stage *base, double lr, double gradient_scale);
int stage_ref_gradient_squares(Stage *base, double *square);

/* ---- in stage_extend.c ---- */

int stage_ref_extend(Stage *base, int first, const int *tokens, int count, real *logits);
