/* Times every kind of node of the models that matter, pass by pass and version by version. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../cuda/node.h"
#include "../../../cuda/stage/plan.h"
#include "../../../ref/base/error.h"
#include "../../../ref/blocks/models.h"
#include "../../bench/work.h"
#include "bench.h"

typedef struct {
    const char *spec;
    int n;
    const char *only; /* the op that is measured; NULL: all */
    bool untrained;   /* only to compare with: no training has it */
} Listed;

static const char *const phase_names[PASSES] = {"forward", "input gradient", "weight gradient"};

enum { MOST_SETS = 32 };

/* One node with its arrays. They exist `sets` times in one allocation. */
typedef struct {
    const Node *node;
    Pass phase;
    Precision precision;
    int sets;
    DeviceIO io[MOST_SETS];
    char *memory;
    size_t set_bytes, at;
    void *workspace;
} NodeRun;

static void run_node(const Run *run, void *context, int set) {
    NodeRun *r = context;
    static void (*const phases[PASSES])(const Run *, const Node *, const DeviceIO *) = {
        cuda_node_forward, cuda_node_input_gradient, cuda_node_weight_gradient};
    phases[r->phase](run, r->node, &r->io[set]);
}

/* ---- arrays ---- */

/* Returns the next array of a set. While nothing is allocated yet, only its bytes are counted. */
static void *take(NodeRun *r, size_t count, size_t size) {
    if (!count) return NULL;
    char *at = r->memory ? r->memory + r->at : NULL;
    r->at += (count * size + 255) / 256 * 256;
    return at;
}

/* Returns the numbers from one row of the node's output to the next, as the stage lays them out. */
static size_t row_stride(const Model *m, const Node *node) {
    const StageSettings settings = device_settings((StageSettings){0});
    return (size_t)value_stride(m, &settings, node->out);
}

static size_t output_count(const Model *m, const Node *node, int n) {
    const Shape s = node->out_shape;
    return (size_t)n * (size_t)s.h * (size_t)s.w * row_stride(m, node);
}

/* Returns the arrays of one set, which begins at r->at. */
static DeviceIO assign_offsets(NodeRun *r, const Model *m, int n) {
    const Node *node = r->node;
    const size_t in = (size_t)n * shape_count(node->in_shape), size = precision_bytes(r->precision);
    const size_t out = output_count(m, node, n);
    const size_t weight = node->weight < 0 ? 0 : m->param[node->weight].count;
    const size_t bias = node->bias < 0 ? 0 : m->param[node->bias].count;
    const size_t channels = node->running < 0 ? 0 : (size_t)node->in_shape.c;
    const bool tokens = node->kind == OP_EMBEDDING;
    DeviceIO io = {.n = n, .y_stride = (int)row_stride(m, node)};
    io.tokens = take(r, tokens ? in : 0, sizeof(int));
    io.x = take(r, tokens ? 0 : in, size);
    io.skip = take(r, node->skip < 0 ? 0 : out, size);
    io.y = take(r, out, size);
    io.aux = take(r, node_aux_count(node, n), sizeof(float));
    io.weight = take(r, weight, size);
    io.bias = take(r, bias, size);
    io.running_mean = take(r, channels, sizeof(float));
    io.running_var = take(r, channels, sizeof(float));
    io.dy = take(r, out, size);
    io.dx = take(r, tokens ? 0 : in, size);
    io.dskip = take(r, node->skip < 0 ? 0 : out, size);
    io.dweight = take(r, weight, sizeof(float));
    io.dbias = take(r, bias, sizeof(float));
    return io;
}

/* Fills everything that the passes read, including what the forward pass saves. */
static int fill_set(const Bench *b, NodeRun *r, const Model *m, int set) {
    const DeviceIO *io = &r->io[set];
    const Node *node = r->node;
    const size_t in = (size_t)io->n * shape_count(node->in_shape);
    const size_t out = output_count(m, node, io->n);
    struct {
        const void *array;
        size_t count;
    } values[] = {{io->x, in},
                  {io->skip, out},
                  {io->dy, out},
                  {io->weight, node->weight < 0 ? 0 : m->param[node->weight].count},
                  {io->bias, node->bias < 0 ? 0 : m->param[node->bias].count}};
    fill_zero(b->stream, r->memory + (size_t)set * r->set_bytes, r->set_bytes);
    for (int i = 0; i < 5; i++)
        if (values[i].array && fill_values(b, (void *)(uintptr_t)values[i].array, values[i].count,
                                           r->precision, 5 * set + i))
            return -1;
    if (io->tokens && fill_tokens(b, (int *)(uintptr_t)io->tokens, in, node->vocabulary)) return -1;
    Run run = {b->stream, r->precision, 0, r->workspace};
    cuda_node_forward(&run, node, io);
    return device_wait(b->stream);
}

/* ---- what it must do ---- */

/* Returns the part of its arrays that a norm of queries and keys computes with: its gradients need
 * nothing of the values. */
static double normed_part(const Node *node) {
    if (node->kind != OP_QKNORM) return 1;
    const Attention a = node->attention;
    return (double)(a.heads + a.groups) / (a.heads + 2 * a.groups);
}

/* Returns the bytes that a pass moves at least: each array once; of a table of tokens only the rows
 * that are used. */
static double min_bytes(const Model *m, const Node *node, Pass phase, int n, Precision p) {
    const double size = (double)precision_bytes(p), out = n * (double)shape_count(node->out_shape);
    const bool tokens = node->kind == OP_EMBEDDING;
    const double in = tokens ? 0 : n * (double)shape_count(node->in_shape);
    const double skip = node->skip < 0 ? 0 : out;
    const double weights = (node->weight < 0 ? 0 : (double)m->param[node->weight].count) +
                           (node->bias < 0 ? 0 : (double)m->param[node->bias].count);
    const SavedForBackward keeps = saved_for_backward(node, phase == PASS_INPUT_GRADIENT,
                                                      phase == PASS_WEIGHT_GRADIENT, false);
    const double part = normed_part(node), kept = part * (keeps.input * in + keeps.output * out);
    if (phase == PASS_FORWARD) return size * (in + skip + out + (tokens ? out : weights));
    if (phase == PASS_INPUT_GRADIENT) return size * (out + kept + in + skip + weights);
    return size * (part * out + kept) + sizeof(float) * weights;
}

/* Returns true if the op multiplies on tensor cores. Others run the same kernels in tf32 as in fp32
 * and need not be timed twice. */
static bool multiplies(OpKind kind) {
    return kind == OP_LINEAR || kind == OP_CONV2D || kind == OP_ATTENTION;
}

static bool exists(const Node *node, Pass phase) {
    if (phase == PASS_INPUT_GRADIENT) return node->in != 0;
    return phase == PASS_FORWARD || node->weight >= 0;
}

/* ---- a node ---- */

/* A pass touches only some of the arrays of a set: there are enough sets for the one that moves
 * least. */
static double least_bytes(const Model *m, const Node *node, int n, Precision p) {
    double least = INFINITY;
    for (Pass phase = 0; phase < PASSES; phase++)
        if (exists(node, phase)) least = fmin(least, min_bytes(m, node, phase, n, p));
    return least;
}

static int node_open(const Bench *b, NodeRun *r, const Model *m, int n) {
    r->set_bytes = r->at;
    r->sets = timer_sets(b, least_bytes(m, r->node, n, r->precision));
    while (r->sets > 1 && !timer_fits(r->set_bytes * (size_t)r->sets)) r->sets /= 2;
    r->memory = device_alloc(r->set_bytes * (size_t)r->sets);
    r->workspace = device_alloc(cuda_node_workspace(r->node, n, r->precision) + 1);
    if (!r->memory || !r->workspace) return -1;
    for (int set = 0; set < r->sets; set++) {
        r->at = (size_t)set * r->set_bytes;
        r->io[set] = assign_offsets(r, m, n);
        if (fill_set(b, r, m, set)) return -1;
    }
    return 0;
}

static void node_close(NodeRun *r) {
    device_free(r->memory);
    device_free(r->workspace);
}

static Row row_of(const Bench *b, const Model *m, const Node *node, int n, Precision p, Pass phase,
                  int version, int times) {
    Row row = {.part = "op", .n = n, .version = version, .times = times};
    work_name(row.work, sizeof row.work, node);
    const bool both = phase == PASS_INPUT_GRADIENT && cuda_node_one_pass(node->kind);
    snprintf(row.what, sizeof row.what, "%s", both ? "both gradients" : phase_names[phase]);
    snprintf(row.precision, sizeof row.precision, "%s", precision_names[p]);
    row.bytes = min_bytes(m, node, phase, n, p);
    row.flops = n * node_flops(node, phase);
    strcpy(row.how, timer_stays_in_cache(b, row.bytes) ? "in cache" : "-");
    return row;
}

/* Begins all rows of a node, since a failure while its arrays are filled is one of each. */
static int begin_node(Bench *b, const Model *m, const Node *node, int n, Precision p, int times) {
    enum { VERSIONS = 8 };
    Row rows[PASSES * VERSIONS];
    int count = 0;
    for (Pass phase = 0; phase < PASSES; phase++)
        for (int version = 0; version <= cuda_node_versions(node, p); version++)
            if (exists(node, phase) && count < PASSES * VERSIONS)
                rows[count++] = row_of(b, m, node, n, p, phase, version, times);
    return bench_begin(b, rows, count);
}

static int measure_passes(Bench *b, NodeRun *r, const Model *m, int n, int times) {
    const Precision p = r->precision;
    int status = 0;
    for (Pass phase = 0; phase < PASSES && !status; phase++)
        for (int version = 0; version <= cuda_node_versions(r->node, p) && !status; version++) {
            Row row = row_of(b, m, r->node, n, p, phase, version, times);
            Task task = {.run = run_node,
                         .context = r,
                         .sets = r->sets,
                         .how = {b->stream, p, version, r->workspace}};
            r->phase = phase;
            if (exists(r->node, phase)) status = timer_row(b, &task, &row);
        }
    return status;
}

static int measure_node(Bench *b, const Model *m, const Node *node, int n, Precision p, int times) {
    NodeRun run = {.node = node, .precision = p};
    assign_offsets(&run, m, n);
    if (!timer_fits(run.at)) {
        printf("%s of %d samples, %s: does not fit\n", op_name(node->kind), n, precision_names[p]);
        return 0;
    }
    int status = begin_node(b, m, node, n, p, times);
    if (status <= 0) return status;
    status = node_open(b, &run, m, n) ? bench_failure(b) : measure_passes(b, &run, m, n, times);
    node_close(&run);
    return status;
}

static int measure_model(Bench *b, const Listed *l, Precision p) {
    Model *m = model_create(l->spec);
    int status = m ? 0 : -1;
    for (int i = 0; m && i < m->nodes && !status; i++) {
        int times = 0;
        bool measured = p == PRECISION_TF32 && !multiplies(m->node[i].kind);
        if (l->only && strcmp(op_name(m->node[i].kind), l->only) != 0) continue;
        for (int j = 0; j < m->nodes; j++) {
            times += work_alike(&m->node[i], &m->node[j]);
            measured |= j < i && work_alike(&m->node[i], &m->node[j]);
        }
        if (measured) continue;
        if (l->untrained) times = 0;
        if (!bench_goes_on(b, "ops of %s, %s, from %s on", l->spec, precision_names[p],
                           op_name(m->node[i].kind)))
            break;
        status = measure_node(b, m, &m->node[i], l->n, p, times);
    }
    model_free(m);
    return status;
}

int measure_ops(Bench *b) {
    static const Listed models[] = {{"gpt2", .n = 32},
                                    {"gpt2:vocabulary=50304", .n = 32, .only = "linear",
                                     .untrained = true}, /* for the head's */
                                    {"resnet20", .n = 1024},
                                    {"resnet20", .n = 128},
                                    {"G-1.6B", .n = 8},
                                    {"L-1.5B", .n = 4},
                                    {"mistral-7B", .n = 1}, /* attention as in Llama 3 8B */
                                    {"qwen3-8B:context=4096", .n = 1, .only = "qknorm"}};
    static const Listed tiny[] = {
        {"gpt:layers=1,width=16,heads=2,context=8,vocabulary=40", .n = 2},
        {"llama:layers=1,width=16,heads=2,groups=1,ffn=24,context=8,vocabulary=40", .n = 1},
        {"resnet:depth=8,width=4,size=8", .n = 2},
        {"qwen3:layers=1,width=16,heads=2,groups=1,ffn=24,context=8,vocabulary=40", .n = 1,
         .only = "qknorm"}};
    static const Precision order[] = {PRECISION_BF16, PRECISION_TF32, PRECISION_FP32};
    const Listed *list = b->tiny ? tiny : models;
    const int count = b->tiny ? sizeof tiny / sizeof *tiny : sizeof models / sizeof *models;
    if (measure_updates(b)) return -1;
    for (int k = 0; k < PRECISIONS; k++)
        for (int i = 0; i < count; i++)
            if (measure_model(b, &list[i], order[k])) return -1;
    return 0;
}
