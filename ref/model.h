/* A model as data: a table of blocks, each a short list of nodes (one op each) over values
 * (activations) and parameters.  Nothing here computes anything.  Every device reads the same
 * tables, and memory.h computes bytes from them.
 *
 *   model "resnet8":  blocks   stem | block1 | block2 | block3 | head
 *   block1:           nodes    conv2d -> batchnorm+relu -> conv2d -> batchnorm+skip+relu
 *
 * A network is cut only between blocks: a submodel, a stage and a frozen prefix are sets of whole
 * blocks. */
#pragma once

#include "base/param.h"
#include "ops/ops.h"

const char *op_name(OpKind kind);

/* One sample of a value.  Images are h x w x c (channels last); a sequence of t tokens is 1 x t x
 * c; a feature vector is 1 x 1 x c. */
typedef struct {
    int h, w, c;
} Shape;

size_t shape_count(Shape shape);

/* One op.  in, skip and out are indices into the model's values, weight and bias into its
 * parameters, running into its buffers; -1 means that there is none.  The shapes repeat those of
 * the values, so that a node can be run, and tested, on its own. */
typedef struct {
    OpKind kind;
    int in, skip, out;
    Shape in_shape, out_shape;
    int weight, bias; /* of norms: scale and shift; of an embedding: tokens and positions; of a norm
                       * of queries and keys: their scales */
    int running;      /* batchnorm: the running mean; the running variance is at running + 1 */
    int kernel, stride, pad; /* conv2d */
    Attention attention;     /* attention, qknorm */
    bool whole;              /* qknorm: over all heads of a position, otherwise over each */
    bool relu;               /* batchnorm: y = relu(bn(x) + skip), fused */
    int vocabulary;          /* embedding */
    double eps; /* layernorm, rmsnorm, qknorm: added to the variance, or to the mean square */
} Node;

/* A tensor that belongs to the model but is not trained: running statistics. */
typedef struct {
    char name[56];
    int count;
    int block;
    Init init;
} Buffer;

/* A value is the output of one node, or the input of the first block. */
typedef struct {
    Shape shape;
    int block; /* the block whose node writes it; -1 for the model's input */
} Value;

typedef struct {
    char name[24];
    int first_node, end_node;   /* half-open, like the other ranges */
    int first_param, end_param; /* the parameters it owns */
    int first_value, end_value; /* the values its nodes write; the last is its output */
    int in, out;                /* the values it reads and writes */
} Block;

/* Which linear layers of an attention have a bias. */
typedef enum { BIAS_NONE, BIAS_QKV, BIAS_ALL } AttentionBias;

/* The sizes of a GPT, a LLaMA or its relatives. */
typedef struct {
    int layers, width, ffn, context, vocabulary;
    Attention attention;
    bool tied;          /* the head's weight is the token embedding; always true of a GPT */
    AttentionBias bias; /* not of a GPT, which has all biases */
    int rope_skip;      /* every rope_skip-th layer has no rotary positions; 0: all have them */
    double eps;         /* of the norms */
} TransformerSizes;

typedef struct Model {
    char name[400];
    char spec[400];     /* the canonical specification: model_create(spec) gives the same model */
    const char *family; /* as "gpt" */
    TransformerSizes transformer; /* all 0 in other models */
    int blocks, nodes, params, buffers, values;
    Block *block;
    Node *node;
    Param *param;
    Buffer *buffer;
    Value *value;
    bool tokens;        /* the input is token numbers instead of reals; its shape is 1 x t x 1 */
    Shape input;        /* of one sample */
    int outputs;        /* channels of the last value: classes, or the vocabulary */
    int targets;        /* per sample: 1 for images, t for token sequences */
    size_t param_count; /* elements of all parameters; the paper's W is 4 bytes for each */
} Model;

/* Returns the block that a node belongs to. */
int node_block(const Model *model, const Node *node);

/* Returns the elements of the parameters that a block owns. */
size_t block_params(const Model *model, int block);

/* Frees a model that model_create (blocks/models.h) made. */
void model_free(Model *model);

/* Returns element i of a parameter's initial value under a seed. */
real model_initial(const Model *model, int param, uint64_t seed, size_t i);

/* ---- op_table.c: what every device must know about an op ---- */

/* Returns the positions in a sample: pixels or tokens. */
int node_positions(const Node *node);
/* Returns the shape of a convolution of n images. */
Conv node_conv(const Node *node, int n);

/* The three things a training step does with a node. */
typedef enum { PASS_FORWARD, PASS_INPUT_GRADIENT, PASS_WEIGHT_GRADIENT, PASSES } Pass;

/* Returns the floating-point operations of one sample in one pass, two for each multiply-add.  A
 * linear layer or convolution costs the same in each pass.  Causal attention costs 2 t^2 c forward
 * and 5 t^2 c backward, which has five products instead of two because it recomputes the scores;
 * without causality it costs twice that.  With a window w < t, t^2 becomes t^2 - (t - w)^2.  Norms
 * and elementwise ops count as zero. */
double node_flops(const Node *node, Pass pass);

/* Returns how many elements (aux) a node saves besides its output for the backward pass of n
 * samples: norm statistics, attention's log-sum-exp. */
size_t node_aux_count(const Node *node, int n);

/* Tells whether a node's backward pass reads the node's input and its output, depending on which
 * gradients are wanted and whether a batch norm used its running statistics.  This rule alone
 * decides which activations are stored. */
typedef struct {
    bool input, output;
} SavedForBackward;
SavedForBackward saved_for_backward(const Node *node, bool input_gradient, bool weight_gradient,
                                    bool running);
