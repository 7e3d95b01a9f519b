/* Which neighbouring nodes run as one launch.  The patterns are found once, in the model's table. A
 * pattern never changes what is computed, only how often arrays travel through memory.
 *
 *   forward      linear, gelu           the gelu in the product's epilogue
 *                add, norm              the residual is added while the norm reads it
 *   backward     gelu, linear           the gelu's gradient in the epilogue of the linear's
 *                norm ... add around it the gradient that comes along the residual path goes into
 *                                       the norm's input gradient, instead of being copied first
 */
#pragma once

#include "../ref/model.h"

typedef struct {
    bool gelu_next;   /* linear: its forward pass includes the gelu after it */
    bool norm_next;   /* add: forward includes the norm after it, even of the next block */
    bool gelu_before; /* linear: its input gradient goes on through the gelu just before it */
    bool skip_gradient_by_norm; /* add: a norm adds its output's gradient to that of its skip */
    int residual;               /* norm: the value whose gradient it adds; -1: none */
} Fusion;

/* Overwrites fusion[nodes].  -1 and an error when memory runs out. */
int fusion_find(Fusion *fusion, const Model *model);
/* Sets fusion[nodes] so that every node runs on its own. */
void fusion_none(Fusion *fusion, const Model *model);
