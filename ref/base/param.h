/* A trained tensor: what a model's table, an optimizer and a device know of it. */
#pragma once

#include <stddef.h>

typedef enum { INIT_ZEROS, INIT_ONES, INIT_NORMAL } Init;

/* What an optimizer that treats matrices in a way of their own must know.  An embedding has a row
 * for each token, position or class: the layer that makes the model's outputs is one, too. */
typedef enum { PARAM_VECTOR, PARAM_MATRIX, PARAM_EMBEDDING } ParamKind;

enum { PARAM_PARTS = 3 };

/* A trained tensor, row-major.  Layouts: linear [out][in]; conv2d [out][kernel][kernel][in];
 * embeddings [rows][channels]; norms [channels]. */
typedef struct {
    char name[56]; /* "block3.attention.qkv.weight" */
    ParamKind kind;
    int rank, dim[4];
    size_t count;
    int block; /* the block that owns it; the submodel of that block trains it */
    int parts, part_rows[PARAM_PARTS]; /* tensors that lie in this one, below each other, as q, k,
                                        * v; their rows sum up to dim[0].  Of a matrix each part is
                                        * one of part_rows x count / dim[0] */
    Init init;
    double deviation; /* INIT_NORMAL: the standard deviation */
} Param;
