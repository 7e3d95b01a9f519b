/* Times the nodes of a model one at a time: forward, input gradient, weight gradient. */
#include "../../ref/ops/ops.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/base/error.h"
#include "../../ref/base/random.h"
#include "../../ref/blocks/models.h"
#include "../../ref/memory.h"
#include "../../ref/node.h"
#include "../../ref/optimizers/optimizer.h"
#include "bench.h"
#include "work.h"

/* Everything allocated for one measurement. */
typedef struct {
    void *array[24];
    int arrays;
    bool failed;
} Arena;

static void *take(Arena *arena, size_t count, size_t size) {
    void *array = calloc(count ? count : 1, size);
    if (!array || arena->arrays == sizeof arena->array / sizeof *arena->array) {
        free(array);
        arena->failed = true;
        return NULL;
    }
    return arena->array[arena->arrays++] = array;
}

/* Fills an array with numbers around zero. Denormals could be slow on some processors, and zeros
 * would make exp faster than usual. */
static real *take_random(Arena *arena, size_t count) {
    real *x = take(arena, count, sizeof *x);
    for (size_t i = 0; x && i < count; i++)
        x[i] = (real)((int)(i * 2654435761u >> 16 & 1023) - 511) * (real)(1.0 / 512);
    return x;
}

static void arena_free(Arena *arena) {
    for (int i = 0; i < arena->arrays; i++) free(arena->array[i]);
}

/* ---- one node ---------------------------------------------------------------------------------
 */

typedef struct {
    const Node *node;
    NodeIO io;
    Pass phase;
} NodeRun;

static void run_node(void *context) {
    NodeRun *run = context;
    static void (*const phases[PASSES])(const Node *, const NodeIO *) = {
        node_forward, node_input_gradient, node_weight_gradient};
    phases[run->phase](run->node, &run->io);
}

static NodeIO prepare(Arena *arena, const Model *model, const Node *node, int n) {
    size_t in = (size_t)n * shape_count(node->in_shape);
    size_t out = (size_t)n * shape_count(node->out_shape);
    size_t weight = node->weight < 0 ? 0 : model->param[node->weight].count;
    size_t bias = node->bias < 0 ? 0 : model->param[node->bias].count;
    size_t channels = (size_t)node->in_shape.c;
    bool embedding = node->kind == OP_EMBEDDING;
    NodeIO io = {.n = n};
    int *tokens = take(arena, embedding ? in : 0, sizeof *tokens);
    for (size_t i = 0; tokens && embedding && i < in; i++)
        tokens[i] = (int)random_below(1, STREAM_SYNTHETIC, i, (uint32_t)node->vocabulary);
    io.tokens = tokens;
    io.x = take_random(arena, embedding ? 0 : in);
    io.skip = node->skip < 0 ? NULL : take_random(arena, out);
    io.y = take(arena, out, sizeof(real));
    io.aux = take(arena, node_aux_count(node, n), sizeof(real));
    io.weight = take_random(arena, weight);
    io.bias = node->bias < 0 ? NULL : take_random(arena, bias);
    io.running_mean = take(arena, channels, sizeof(real));
    io.running_var = take(arena, channels, sizeof(real));
    io.dy = take_random(arena, out);
    io.dx = embedding ? NULL : take(arena, in, sizeof(real));
    io.dskip = node->skip < 0 ? NULL : take(arena, out, sizeof(real));
    io.dweight = take(arena, weight, sizeof(real));
    io.dbias = node->bias < 0 ? NULL : take(arena, bias, sizeof(real));
    return io;
}

/* Returns the bytes that an op must move at least: each activation that it reads or writes,
 * once. */
static double min_bytes(const Node *node, Pass phase, int n) {
    double in = (double)n * (double)shape_count(node->in_shape);
    double out = (double)n * (double)shape_count(node->out_shape);
    double skip = node->skip < 0 ? 0 : out;
    SavedForBackward keeps = saved_for_backward(node, phase == PASS_INPUT_GRADIENT,
                                                phase == PASS_WEIGHT_GRADIENT, false);
    double kept = keeps.input * in + keeps.output * out;
    double numbers = 0;
    if (phase == PASS_FORWARD) numbers = in + skip + out;
    if (phase == PASS_INPUT_GRADIENT) numbers = out + kept + in + skip;
    if (phase == PASS_WEIGHT_GRADIENT) numbers = out + kept;
    return numbers * (double)sizeof(real);
}

/* ---- the table --------------------------------------------------------------------------------
 */

/* Sums over a whole training step, by kind of op. */
typedef struct {
    double ms[OP_KINDS][PASSES], flops[OP_KINDS][PASSES];
} Totals;

static void print_rate(double flops, double bytes, double ms, Machine machine) {
    if (flops > 0)
        printf(" %9.3f ms %4.0f GF/s %3.0f%%", ms, flops / ms * 1e-6,
               100 * flops / ms * 1e-6 / machine.gflops);
    else
        printf(" %9.3f ms %4.1f GB/s %3.0f%%", ms, bytes / ms * 1e-6,
               100 * bytes / ms * 1e-6 / machine.gigabytes);
}

static int bench_node(const Model *model, const Node *node, int times, int n, Machine machine,
                      double min_ms, Totals *totals) {
    Arena arena = {0};
    NodeRun run = {.node = node, .io = prepare(&arena, model, node, n)};
    char name[64];
    work_name(name, sizeof name, node);
    if (!arena.failed) printf("%-44s %3dx %5d", name, times, n);
    for (int p = 0; p < PASSES && !arena.failed; p++) {
        run.phase = (Pass)p;
        /* The model's input needs no gradient. */
        bool nothing = (p == PASS_INPUT_GRADIENT && node->in == 0) ||
                       (p == PASS_WEIGHT_GRADIENT && node->weight < 0);
        if (nothing) {
            printf(" %27s", "-");
            continue;
        }
        bench_progress("%s: %s", model->name, op_name(node->kind));
        Times taken = bench_repeat(run_node, &run, min_ms);
        bench_progress_end();
        double ms = times_median(&taken), flops = n * node_flops(node, (Pass)p);
        print_rate(flops, min_bytes(node, (Pass)p, n), ms, machine);
        totals->ms[node->kind][p] += ms * times;
        totals->flops[node->kind][p] += flops * times;
    }
    printf("\n");
    arena_free(&arena);
    return arena.failed ? error_set("bench: out of memory for %s", op_name(node->kind)) : 0;
}

static void print_totals(const Totals *totals, Machine machine) {
    double all = 0;
    printf("in a full step:\n");
    for (int k = 0; k < OP_KINDS; k++) {
        const double *ms = totals->ms[k];
        double sum = ms[0] + ms[1] + ms[2];
        double flops = totals->flops[k][0] + totals->flops[k][1] + totals->flops[k][2];
        all += sum;
        if (sum > 0) {
            printf("  %-12s %9.2f ms = %8.2f + %8.2f + %8.2f", op_name((OpKind)k), sum, ms[0],
                   ms[1], ms[2]);
            if (flops > 0)
                printf("   %6.2f GFLOP, %4.0f GF/s, %3.0f%% of the peak", flops * 1e-9,
                       flops / sum * 1e-6, 100 * flops / sum * 1e-6 / machine.gflops);
            printf("\n");
        }
    }
    printf("  %-12s %9.2f ms\n", "together", all);
}

/* ---- loss and optimizers ----------------------------------------------------------------------
 */

typedef struct {
    real *logits, *loss, *lse;
    unsigned char *correct;
    int *targets, rows, classes;
} LossRun;

static void run_loss(void *context) {
    LossRun *r = context;
    fast_cross_entropy_forward(r->loss, r->lse, r->correct, r->logits, r->targets, r->rows,
                               r->classes);
}

static void run_loss_gradient(void *context) {
    LossRun *r = context;
    fast_cross_entropy_input_gradient(r->logits, r->logits, r->lse, r->targets, 1, r->rows,
                                      r->classes);
}

static int bench_loss(const Model *model, int n, Machine machine, double min_ms) {
    Arena arena = {0};
    LossRun r = {.rows = n * model->targets, .classes = model->outputs};
    size_t rows = (size_t)r.rows, count = rows * (size_t)r.classes;
    r.logits = take_random(&arena, count);
    r.loss = take(&arena, rows, sizeof *r.loss);
    r.lse = take(&arena, rows, sizeof *r.lse);
    r.correct = take(&arena, rows, 1);
    r.targets = take(&arena, rows, sizeof *r.targets);
    if (!arena.failed) {
        double bytes = (double)(count * sizeof(real));
        Times forward = bench_repeat(run_loss, &r, min_ms);
        Times gradient = bench_repeat(run_loss_gradient, &r, min_ms);
        printf("%-20s %-23d %3dx %5d", "cross_entropy", r.classes, 1, r.rows);
        print_rate(0, bytes, times_median(&forward), machine);
        print_rate(0, 2 * bytes, times_median(&gradient), machine);
        printf("\n");
    }
    arena_free(&arena);
    return arena.failed ? error_set("bench: out of memory for the loss") : 0;
}

typedef struct {
    const Model *model;
    OptimizerSettings settings;
    real *p, *g, *state[2], *workspace; /* of all parameters, one after the other */
} UpdateRun;

static void run_update(void *context) {
    const UpdateRun *r = context;
    size_t at = 0;
    for (int i = 0; i < r->model->params; at += r->model->param[i++].count)
        optimizer_update(&r->settings, &r->model->param[i], r->p + at,
                         (real *[2]){r->state[0] + at, r->state[1] + at}, r->g + at, 1, 1e-6, 10,
                         r->workspace);
}

static int bench_optimizers(const Model *model, Machine machine, double min_ms) {
    for (int k = 0; k < OPTIMIZER_KINDS; k++) {
        Arena arena = {0};
        UpdateRun r = {.model = model, .settings = optimizer_defaults((OptimizerKind)k)};
        const size_t count = model->param_count;
        const size_t state = memory_state_count(model, &r.settings, 0, model->params);
        size_t workspace = 0;
        double flops = 0;
        for (int i = 0; i < model->params; i++) {
            workspace = size_max(workspace, optimizer_workspace(&r.settings, &model->param[i]));
            flops += optimizer_flops(&r.settings, &model->param[i]);
        }
        r.p = take_random(&arena, count);
        r.g = take_random(&arena, count);
        r.workspace = take(&arena, workspace, sizeof(real));
        for (int v = 0; v < 2; v++) r.state[v] = take(&arena, count, sizeof(real));
        if (!arena.failed) {
            /* The update reads parameter, gradient and state, and writes parameter and state. */
            const double bytes = (double)((3 * count + 2 * state) * sizeof(real));
            Times update = bench_repeat(run_update, &r, min_ms);
            printf("%-20s %-23zu %3dx %5s", optimizer_names[k], count, 1, "");
            print_rate(flops, bytes, times_median(&update), machine);
            printf("\n");
        }
        arena_free(&arena);
        if (arena.failed) return error_set("bench: out of memory for %s", optimizer_names[k]);
    }
    return 0;
}

int bench_ops(const char *spec, int batch, Machine machine, double min_ms) {
    Model *model = model_create(spec);
    if (!model) return -1;
    printf(
        "\n%s, batch %d: forward, input gradient, weight gradient; %% of the peak or of the copy "
        "bandwidth\n",
        model->name, batch);
    Totals totals = {0};
    int status = 0;
    for (int i = 0; i < model->nodes && !status; i++) {
        int times = 0;
        bool measured = false;
        for (int j = 0; j < model->nodes; j++) {
            bool same = work_alike(&model->node[i], &model->node[j]);
            times += same;
            measured |= same && j < i;
        }
        if (!measured)
            status = bench_node(model, &model->node[i], times, batch, machine, min_ms, &totals);
    }
    if (!status) status = bench_loss(model, batch, machine, min_ms);
    if (!status) status = bench_optimizers(model, machine, min_ms);
    if (!status) print_totals(&totals, machine);
    model_free(model);
    return status;
}
