/* Every row of cases.c through every test.  What an op promises is in ref/ops/ops.h and ref/node.h;
 * each function here holds one of those promises. */
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <string.h>

#include "../../ref/ops/ops.h"
#include "../test.h"
#include "naive.h"
#include "promises.h"
#include "tolerance.h"

static double largest(const double *x, size_t count) {
    double m = 0;
    for (size_t i = 0; i < count; i++) m = fmax(m, fabs(x[i]));
    return m;
}

static void check_same_bits(const CaseData *a, const CaseData *b, Array from, const char *what) {
    for (Array i = from; i < ARRAYS; i++) {
        size_t first = guarded_first_difference(a->array[i], b->array[i]);
        CHECK(first == a->array[i].count, "%s: %s[%zu] is %.9g and %.9g", what, array_names[i],
              first, (double)a->array[i].data[first], (double)b->array[i].data[first]);
    }
}

static void check_near(const CaseData *data, Array array, const double *truth) {
    Guarded got = data->array[array];
    const Case *row = data->row;
    double allowed =
        tolerance(case_length(row, array), case_magnitude(row, largest(truth, got.count)));
    for (size_t i = 0; i < got.count; i++) {
        double error = fabs((double)got.data[i] - truth[i]);
        CHECK(error <= allowed, "%s[%zu] is %.9g, not %.9g (error %.3g, allowed %.3g)",
              array_names[array], i, (double)got.data[i], truth[i], error, allowed);
    }
}

static void forward_meets_formula(const Case *row) {
    CaseData data;
    Naive naive;
    case_create(&data, row, false);
    naive_create(&naive, &data);
    NodeIO io = case_io(&data);
    node_forward(&data.node, &io);
    naive_forward(&naive);
    check_near(&data, ARRAY_Y, naive.array[ARRAY_Y]);
    check_near(&data, ARRAY_MEAN, naive.array[ARRAY_MEAN]);
    check_near(&data, ARRAY_VARIANCE, naive.array[ARRAY_VARIANCE]);
    naive_free(&naive);
    case_free(&data);
}

static void forward_is_exact(const Case *row) {
    CaseData data;
    Naive naive;
    case_create(&data, row, true);
    naive_create(&naive, &data);
    NodeIO io = case_io(&data);
    node_forward(&data.node, &io);
    naive_forward(&naive);
    for (size_t i = 0; i < naive.count[ARRAY_Y]; i++)
        CHECK((double)io.y[i] == naive.array[ARRAY_Y][i], "y[%zu] is %.9g, not %.9g", i,
              (double)io.y[i], naive.array[ARRAY_Y][i]);
    naive_free(&naive);
    case_free(&data);
}

static void writes_all_and_nothing_else(const Case *row) {
    CaseData data;
    case_create(&data, row, false);
    NodeIO io = case_io(&data);
    case_run(&data, &io);
    for (Array a = 0; a < ARRAYS; a++) {
        size_t nan = guarded_first_nan(data.array[a]);
        CHECK(nan == data.array[a].count, "%s[%zu] of %zu is not written", array_names[a], nan,
              data.array[a].count);
        CHECK(guarded_intact(data.array[a]), "something wrote beside %s", array_names[a]);
    }
    case_free(&data);
}

/* With hold_running not even the running statistics move, and the outputs are the same. */
static void inputs_stay_as_they_are(const Case *row) {
    CaseData held, fresh;
    case_create(&held, row, false);
    case_create(&fresh, row, false);
    NodeIO io = case_io(&held);
    io.hold_running = true;
    case_run(&held, &io);
    for (Array a = 0; a < ARRAY_Y; a++)
        CHECK(guarded_first_difference(held.array[a], fresh.array[a]) == held.array[a].count,
              "%s was changed", array_names[a]);
    io = case_io(&fresh);
    case_run(&fresh, &io);
    check_same_bits(&fresh, &held, ARRAY_Y, "running statistics moved and held");
    case_free(&held);
    case_free(&fresh);
}

static void repeats_on_any_threads(const Case *row) {
    CaseData first, again;
    case_create(&first, row, false);
    NodeIO io = case_io(&first);
    int threads = omp_get_max_threads();
    omp_set_num_threads(1);
    case_run(&first, &io);
    for (int t = 1; t <= 3; t++) {
        char what[32];
        snprintf(what, sizeof what, "1 and %d threads", t);
        omp_set_num_threads(t);
        case_create(&again, row, false);
        io = case_io(&again);
        case_run(&again, &io);
        check_same_bits(&first, &again, ARRAY_MEAN, what);
        case_free(&again);
    }
    omp_set_num_threads(threads);
    case_free(&first);
}

/* Points the io of a whole batch at its sample s alone. */
static void alone(NodeIO *io, const CaseData *data, int s) {
    size_t in = (size_t)s * shape_count(data->node.in_shape);
    size_t out = (size_t)s * shape_count(data->node.out_shape);
    io->n = 1;
    if (io->x) io->x += in;
    if (io->tokens) io->tokens += in;
    if (io->skip) io->skip += out;
    io->y += out;
    io->dy += out;
    if (io->dx) io->dx += in;
    if (io->dskip) io->dskip += out;
    io->dweight = io->dbias = NULL;
}

static void samples_do_not_meet(const Case *row) {
    if (case_mixes_samples(row)) return;
    CaseData together, apart;
    case_create(&together, row, false);
    case_create(&apart, row, false);
    NodeIO io = case_io(&together);
    case_run(&together, &io);
    for (int s = 0; s < row->n; s++) {
        io = case_io(&apart);
        alone(&io, &apart, s);
        case_run(&apart, &io);
    }
    static const Array per_sample[] = {ARRAY_Y, ARRAY_DX, ARRAY_DSKIP};
    for (int i = 0; i < 3; i++) {
        Guarded a = together.array[per_sample[i]], b = apart.array[per_sample[i]];
        size_t first = guarded_first_difference(a, b);
        CHECK(first == a.count, "%s[%zu] is %.9g in the batch, %.9g alone",
              array_names[per_sample[i]], first, (double)a.data[first], (double)b.data[first]);
    }
    case_free(&together);
    case_free(&apart);
}

/* A training that breaks down must be seen to: NaN in the input is NaN in the output. */
static void nan_is_not_swallowed(const Case *row) {
    CaseData data;
    case_create(&data, row, false);
    NodeIO io = case_io(&data);
    io.hold_running = true;
    if (data.array[ARRAY_X].count) {
        data.array[ARRAY_X].data[0] = (real)NAN;
        node_forward(&data.node, &io);
        size_t first = guarded_first_nan(data.array[ARRAY_Y]);
        CHECK(first < data.array[ARRAY_Y].count, "x[0] is NaN, no y is");
    }
    case_free(&data);
}

enum { WANT_DX = 1, WANT_DSKIP = 2, WANT_PARAMETERS = 4, WANTS = 8 };

/* Gradients when x and y hold what saved_for_backward asks for and otherwise NaN, then are not
 * there at all (and the sums of batch norm are those of the input gradient before). */
static void check_wants(const CaseData *all, int wants) {
    CaseData data;
    case_create(&data, all->row, false);
    NodeIO io = case_io(&data);
    node_forward(&data.node, &io);
    if (!(wants & WANT_DX)) io.dx = NULL;
    if (!(wants & WANT_DSKIP)) io.dskip = NULL;
    if (!(wants & WANT_PARAMETERS)) io.dweight = io.dbias = NULL;
    SavedForBackward keeps =
        saved_for_backward(&data.node, io.dx || io.dskip, io.dweight, io.use_running);
    for (int pass = 0; pass < 2; pass++) {
        if (!keeps.input) {
            guarded_spoil(data.array[ARRAY_X]);
            if (pass) io.x = NULL;
        }
        guarded_spoil(data.array[ARRAY_SKIP]);
        io.skip = NULL;
        if (!keeps.output) {
            guarded_spoil(data.array[ARRAY_Y]);
            if (pass) io.y = NULL;
        }
        io.sums_ready = pass && case_mixes_samples(all->row) && (io.dx || io.dskip);
        for (Array g = ARRAY_DX; g < ARRAYS; g++) guarded_spoil(data.array[g]);
        if (io.dx || io.dskip) node_input_gradient(&data.node, &io);
        if (io.dweight || io.dbias) node_weight_gradient(&data.node, &io);
        const real *wanted[] = {io.dx, io.dskip, io.dweight, io.dbias};
        for (Array g = ARRAY_DX; g < ARRAYS; g++) {
            if (!wanted[g - ARRAY_DX]) continue;
            size_t first = guarded_first_difference(all->array[g], data.array[g]);
            CHECK(first == data.array[g].count, "%s[%zu] differs; wanted%s%s%s, kept%s%s",
                  array_names[g], first, io.dx ? " dx" : "", io.dskip ? " dskip" : "",
                  io.dweight ? " parameters" : "", keeps.input ? " x" : "",
                  keeps.output ? " y" : "");
        }
    }
    case_free(&data);
}

static void reads_what_it_keeps(const Case *row) {
    CaseData all;
    case_create(&all, row, false);
    NodeIO io = case_io(&all);
    case_run(&all, &io);
    for (int wants = 1; wants < WANTS; wants++) {
        if ((wants & WANT_DX) && !io.dx) continue;
        if ((wants & WANT_DSKIP) && !io.dskip) continue;
        if ((wants & WANT_PARAMETERS) && !io.dweight) continue;
        check_wants(&all, wants);
    }
    case_free(&all);
}

static const struct {
    const char *name;
    void (*check)(const Case *row);
    bool exact; /* for ops whose whole numbers stay exact */
} promises[] = {
    {"forward", forward_meets_formula, false},
    {"forward, whole numbers", forward_is_exact, true},
    {"gradients", gradients_meet_differences, false},
    {"gradients, whole numbers", gradients_are_exact, true},
    {"writes", writes_all_and_nothing_else, false},
    {"inputs", inputs_stay_as_they_are, false},
    {"threads", repeats_on_any_threads, false},
    {"accumulates", accumulates, false},
    {"samples", samples_do_not_meet, false},
    {"NaN", nan_is_not_swallowed, false},
    {"keeps", reads_what_it_keeps, false},
};

typedef struct {
    const Case *row;
    void (*check)(const Case *row);
} Turn;

static void take_turn(const void *turn) {
    const Turn *now = turn;
    now->check(now->row);
}

static void rows_make_sense(void) {
    bool seen[OP_KINDS] = {false};
    for (int i = 0; i < case_count; i++) {
        const Node *node = &cases[i].node;
        seen[node->kind] = true;
        if (node->kind != OP_CONV2D) continue;
        int h = conv2d_out(node->in_shape.h, node->kernel, node->stride, node->pad);
        int w = conv2d_out(node->in_shape.w, node->kernel, node->stride, node->pad);
        CHECK(h == node->out_shape.h && w == node->out_shape.w, "%s: %d x %d, not %d x %d",
              cases[i].name, h, w, node->out_shape.h, node->out_shape.w);
    }
    for (int kind = 0; kind < OP_KINDS; kind++)
        CHECK(seen[kind], "%s has no row in cases.c", op_names[kind]);
}

void test_cases(void) {
    RUN(rows_make_sense);
    for (int i = 0; i < case_count; i++)
        for (size_t p = 0; p < sizeof promises / sizeof *promises; p++) {
            if (promises[p].exact && !case_exact(&cases[i])) continue;
            char name[96];
            snprintf(name, sizeof name, "%s: %s", cases[i].name, promises[p].name);
            Turn turn = {&cases[i], promises[p].check};
            RUN_ROW(name, take_turn, &turn);
        }
}
