#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/base/checksum.h"
#include "../../ref/base/random.h"
#include "../test.h"
#include "cases.h"

const char *const array_names[ARRAYS] = {
    "x", "skip", "weight", "bias",  "dy",      "running mean", "running variance",
    "y", "aux",  "dx",     "dskip", "dweight", "dbias",
};

static bool is_norm(OpKind kind) {
    return kind == OP_BATCHNORM || kind == OP_LAYERNORM || kind == OP_RMSNORM || kind == OP_QKNORM;
}

static size_t weight_count(const Node *node) {
    size_t in = (size_t)node->in_shape.c, out = (size_t)node->out_shape.c;
    switch (node->kind) {
        case OP_LINEAR:
            return out * in;
        case OP_CONV2D:
            return out * (size_t)node->kernel * (size_t)node->kernel * in;
        case OP_BATCHNORM:
        case OP_LAYERNORM:
        case OP_RMSNORM:
            return in;
        case OP_QKNORM:
            return (size_t)qk_vectors(node->attention, node->whole).q_size;
        case OP_EMBEDDING:
            return (size_t)node->vocabulary * out;
        case OP_ATTENTION:
        case OP_RELU:
        case OP_GELU:
        case OP_SWIGLU:
        case OP_ADD:
        case OP_AVGPOOL:
        case OP_KINDS:
            break;
    }
    return 0;
}

static size_t bias_count(const Case *row) {
    const Node *node = &row->node;
    if (node->kind == OP_BATCHNORM || node->kind == OP_LAYERNORM) return (size_t)node->out_shape.c;
    if (node->kind == OP_QKNORM) return (size_t)qk_vectors(node->attention, node->whole).k_size;
    if (!row->bias) return 0;
    return (size_t)node->out_shape.c * (size_t)(node->kind == OP_EMBEDDING ? node->out_shape.w : 1);
}

Array array_of_gradient(Array gradient) {
    switch (gradient) {
        case ARRAY_DX:
            return ARRAY_X;
        case ARRAY_DSKIP:
            return ARRAY_SKIP;
        case ARRAY_DWEIGHT:
            return ARRAY_WEIGHT;
        case ARRAY_DBIAS:
            return ARRAY_BIAS;
        default:
            abort();
    }
}

static Node numbered_node(const Case *row) {
    Node node = row->node;
    node.in = 0;
    node.skip = row->skip ? 1 : -1;
    node.out = 2;
    node.weight = weight_count(&row->node) ? 0 : -1;
    node.bias = bias_count(row) ? 1 : -1;
    node.running = node.kind == OP_BATCHNORM ? 0 : -1;
    return node;
}

size_t case_array_count(const Case *row, Array array) {
    const Node *node = &row->node;
    bool embedding = node->kind == OP_EMBEDDING, batchnorm = node->kind == OP_BATCHNORM;
    size_t n = (size_t)row->n;
    switch (array) {
        case ARRAY_X:
        case ARRAY_DX:
            return embedding ? 0 : n * shape_count(node->in_shape);
        case ARRAY_SKIP:
        case ARRAY_DSKIP:
            return row->skip ? n * shape_count(node->out_shape) : 0;
        case ARRAY_WEIGHT:
        case ARRAY_DWEIGHT:
            return weight_count(node);
        case ARRAY_BIAS:
        case ARRAY_DBIAS:
            return bias_count(row);
        case ARRAY_MEAN:
        case ARRAY_VARIANCE:
            return batchnorm ? (size_t)node->in_shape.c : 0;
        case ARRAY_AUX: {
            Node numbered = numbered_node(row);
            return node_aux_count(&numbered, row->n);
        }
        default:
            return n * shape_count(node->out_shape);
    }
}

double case_length(const Case *row, Array array) {
    const Node *node = &row->node;
    double in = node->in_shape.c, out = node->out_shape.c, window = node->kernel * node->kernel;
    double rows_in = (double)row->n * node->in_shape.h * node->in_shape.w;
    double rows_out = (double)row->n * node->out_shape.h * node->out_shape.w;
    bool parameter = array == ARRAY_DWEIGHT || array == ARRAY_DBIAS;
    switch (node->kind) {
        case OP_LINEAR:
            return parameter ? rows_in : array == ARRAY_DX ? out : in;
        case OP_CONV2D:
            return parameter ? rows_out : window * (array == ARRAY_DX ? out : in);
        case OP_BATCHNORM:
            return rows_in;
        case OP_LAYERNORM:
        case OP_RMSNORM:
            return parameter ? rows_in : in;
        case OP_QKNORM:
            return parameter ? rows_in * node->attention.heads : in;
        case OP_ATTENTION:
            return node->in_shape.w + node->attention.d;
        case OP_AVGPOOL:
            return (double)node->in_shape.h * node->in_shape.w;
        case OP_EMBEDDING:
            return parameter ? rows_in : 1;
        default:
            return 1;
    }
}

/* Inputs have a magnitude of at most scale + offset. */
double case_magnitude(const Case *row, double result) {
    return fmax(fmax(fmax(1, row->scale + fabs(row->offset)), row->cancels), result);
}

bool case_exact(const Case *row) {
    int positions = row->node.in_shape.h * row->node.in_shape.w;
    switch (row->node.kind) {
        case OP_LINEAR:
        case OP_CONV2D:
        case OP_ADD:
        case OP_RELU:
        case OP_EMBEDDING:
            return true;
        case OP_AVGPOOL:
            return (positions & (positions - 1)) == 0;
        default:
            return false;
    }
}

bool case_ends_in_relu(const Case *row) {
    return row->node.kind == OP_RELU || (row->node.relu && row->skip);
}

bool case_mixes_samples(const Case *row) {
    return row->node.kind == OP_BATCHNORM && !row->use_running;
}

/* Returns a seed that depends on the name alone, so that rows keep their numbers when the table is
 * reordered. */
static uint64_t seed_of(const char *name) {
    return checksum_bytes(CHECKSUM_START, (const unsigned char *)name, strlen(name));
}

static real draw_integer(uint64_t seed, Array array, size_t i) {
    int drawn = (int)random_below(seed, (uint32_t)array, i, 6) - 3; /* -3 .. 2 */
    if (array == ARRAY_X || array == ARRAY_SKIP) drawn += drawn < 0 ? -1 : 2;
    return (real)drawn;
}

/* Returns whether element i of x is what an activation bends, and not the factor `up` of SwiGLU. */
static bool is_gate(const Node *node, size_t i) {
    const size_t width = (size_t)node->in_shape.c;
    return node->kind != OP_SWIGLU || i % width < width / 2;
}

static real draw_real(const Case *row, uint64_t seed, Array array, size_t i) {
    double u = random_uniform(seed, (uint32_t)array, i);
    if (array == ARRAY_VARIANCE || (array == ARRAY_WEIGHT && is_norm(row->node.kind)) ||
        (array == ARRAY_BIAS && row->node.kind == OP_QKNORM))
        return (real)(0.5 + u);
    if (array == ARRAY_X && row->far && is_gate(&row->node, i))
        return (real)copysign(pow(10, 38 * fabs(2 * u - 1)), u - 0.5);
    double scale = array == ARRAY_X && row->scale > 0 ? row->scale : 1;
    return (real)((array == ARRAY_X ? row->offset : 0) + scale * (2 * u - 1));
}

void case_create(CaseData *data, const Case *row, bool integers) {
    *data = (CaseData){.row = row, .node = numbered_node(row)};
    uint64_t seed = seed_of(row->name);
    for (Array a = 0; a < ARRAYS; a++) {
        data->array[a] = guarded_create(case_array_count(row, a));
        for (size_t i = 0; a < ARRAY_Y && i < data->array[a].count; i++)
            data->array[a].data[i] =
                integers ? draw_integer(seed, a, i) : draw_real(row, seed, a, i);
    }
    if (row->node.kind != OP_EMBEDDING) return;
    size_t tokens = (size_t)row->n * shape_count(row->node.in_shape);
    data->tokens = malloc(tokens * sizeof *data->tokens);
    if (!data->tokens) abort();
    for (size_t i = 0; i < tokens; i++)
        data->tokens[i] = (int)random_below(seed, ARRAYS, i, (uint32_t)row->node.vocabulary);
}

void case_free(CaseData *data) {
    for (Array a = 0; a < ARRAYS; a++) guarded_free(&data->array[a]);
    free(data->tokens);
}

NodeIO case_io(const CaseData *data) {
    const Guarded *a = data->array;
    return (NodeIO){
        .n = data->row->n,
        .x = a[ARRAY_X].data,
        .skip = a[ARRAY_SKIP].data,
        .tokens = data->tokens,
        .y = a[ARRAY_Y].data,
        .aux = a[ARRAY_AUX].data,
        .weight = a[ARRAY_WEIGHT].data,
        .bias = a[ARRAY_BIAS].data,
        .running_mean = a[ARRAY_MEAN].data,
        .running_var = a[ARRAY_VARIANCE].data,
        .use_running = data->row->use_running,
        .dy = a[ARRAY_DY].data,
        .dx = a[ARRAY_DX].data,
        .dskip = a[ARRAY_DSKIP].data,
        .dweight = a[ARRAY_DWEIGHT].data,
        .dbias = a[ARRAY_DBIAS].data,
    };
}

void case_run(const CaseData *data, const NodeIO *io) {
    node_forward(&data->node, io);
    if (io->dx || io->dskip) node_input_gradient(&data->node, io);
    if (io->dweight || io->dbias) node_weight_gradient(&data->node, io);
}

bool case_wanted(const Case *row) {
    const char *words = getenv("ROW");
    bool wanted = !words;
    while (words && !wanted) {
        char part[128];
        const size_t length = strcspn(words, "|");
        snprintf(part, sizeof part, "%.*s", (int)length, words);
        wanted = strstr(row->name, part) != NULL;
        words = words[length] ? words + length + 1 : NULL;
    }
    return wanted;
}

void some_case_is_wanted(void) {
    bool some = false;
    for (int i = 0; i < case_count; i++) some |= case_wanted(&cases[i]);
    CHECK(some, "no name of a row in cases.c contains \"%s\"", getenv("ROW"));
}
