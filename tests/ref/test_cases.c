/* Tests every property on every row of cases.c, for the plain op and for the fast one.  A property
 * is a part of the contract in ref/ops/ops.h and ref/node.h. */
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <string.h>

#include "../../ref/ops/ops.h"
#include "../test.h"
#include "attention.h"
#include "properties.h"
#include "tolerance.h"

static NodeIO run_io(const CaseData *data, bool plain) {
    NodeIO io = case_io(data);
    io.plain = plain;
    return io;
}

static void check_same_bits(const CaseData *a, const CaseData *b, Array from, const char *what) {
    for (Array i = from; i < ARRAYS; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s: %s", what, array_names[i]);
        guarded_check_same(a->array[i], b->array[i], name);
    }
}

/* Compares the first `count` numbers of an array, exactly if they are whole numbers. */
static void check_near(const CaseData *data, const CaseData *truth, Array array, size_t count,
                       bool whole) {
    const Case *row = data->row;
    const Guarded got = data->array[array], expected = truth->array[array];
    const double size = case_magnitude(row, guarded_largest(expected));
    const double allowed = whole ? 0 : tolerance(case_length(row, array), size);
    for (size_t i = 0; i < count; i++) {
        double error = fabs((double)got.data[i] - (double)expected.data[i]);
        CHECK(error <= allowed, "%s[%zu] is %.9g, not %.9g (error %.3g, allowed %.3g)",
              array_names[array], i, (double)got.data[i], (double)expected.data[i], error, allowed);
    }
}

static void copy_array(Guarded to, Guarded from) {
    if (to.count) memcpy(to.data, from.data, to.count * sizeof *to.data);
}

/* Tests each call by itself: the fast gradients read what the plain forward pass saved. */
static void check_fast(const Case *row, bool whole) {
    CaseData fast, truth;
    case_create(&fast, row, whole);
    case_create(&truth, row, whole);
    NodeIO io = case_io(&fast), wanted = case_io(&truth);
    wanted.plain = true;
    node_forward(&fast.node, &io);
    node_forward(&truth.node, &wanted);
    for (Array a = ARRAY_MEAN; a <= ARRAY_AUX; a++) {
        size_t count = truth.array[a].count;
        /* Half of batch norm's aux is for sums of the backward pass. */
        if (a == ARRAY_AUX && row->node.kind == OP_BATCHNORM) count /= 2;
        check_near(&fast, &truth, a, count, whole);
    }
    copy_array(fast.array[ARRAY_Y], truth.array[ARRAY_Y]);
    copy_array(fast.array[ARRAY_AUX], truth.array[ARRAY_AUX]);
    node_input_gradient(&fast.node, &io);
    node_weight_gradient(&fast.node, &io);
    node_input_gradient(&truth.node, &wanted);
    node_weight_gradient(&truth.node, &wanted);
    for (Array a = ARRAY_DX; a < ARRAYS; a++)
        check_near(&fast, &truth, a, truth.array[a].count, whole);
    case_free(&fast);
    case_free(&truth);
}

static void fast_meets_plain(const Case *row, bool plain) {
    (void)plain;
    check_fast(row, false);
}

static void fast_is_exact(const Case *row, bool plain) {
    (void)plain;
    check_fast(row, true);
}

static void writes_all_and_nothing_else(const Case *row, bool plain) {
    CaseData data;
    case_create(&data, row, false);
    NodeIO io = run_io(&data, plain);
    case_run(&data, &io);
    for (Array a = 0; a < ARRAYS; a++) {
        size_t nan = guarded_first_nan(data.array[a]);
        CHECK(nan == data.array[a].count, "%s[%zu] of %zu is not written", array_names[a], nan,
              data.array[a].count);
        CHECK(guarded_intact(data.array[a]), "something wrote outside of %s", array_names[a]);
    }
    case_free(&data);
}

/* With hold_running the running statistics do not change either, and the outputs are the same. */
static void inputs_stay_as_they_are(const Case *row, bool plain) {
    CaseData held, fresh;
    case_create(&held, row, false);
    case_create(&fresh, row, false);
    NodeIO io = run_io(&held, plain);
    io.hold_running = true;
    case_run(&held, &io);
    for (Array a = 0; a < ARRAY_Y; a++)
        CHECK(guarded_first_difference(held.array[a], fresh.array[a]) == held.array[a].count,
              "%s was changed", array_names[a]);
    io = run_io(&fresh, plain);
    case_run(&fresh, &io);
    check_same_bits(&fresh, &held, ARRAY_Y, "running statistics moved and held");
    case_free(&held);
    case_free(&fresh);
}

static void repeats_on_any_threads(const Case *row, bool plain) {
    CaseData first, again;
    case_create(&first, row, false);
    NodeIO io = run_io(&first, plain);
    int threads = omp_get_max_threads();
    omp_set_num_threads(1);
    case_run(&first, &io);
    for (int t = 1; t <= 3; t++) {
        char what[32];
        snprintf(what, sizeof what, "1 and %d threads", t);
        omp_set_num_threads(t);
        case_create(&again, row, false);
        io = run_io(&again, plain);
        case_run(&again, &io);
        check_same_bits(&first, &again, ARRAY_MEAN, what);
        case_free(&again);
    }
    omp_set_num_threads(threads);
    case_free(&first);
}

/* Changes the io of a batch into that of its sample s. */
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

static bool keeps_samples_apart(const Case *row) { return !case_mixes_samples(row); }

static void samples_are_independent(const Case *row, bool plain) {
    CaseData together, apart;
    case_create(&together, row, false);
    case_create(&apart, row, false);
    NodeIO io = run_io(&together, plain);
    case_run(&together, &io);
    for (int s = 0; s < row->n; s++) {
        io = run_io(&apart, plain);
        alone(&io, &apart, s);
        case_run(&apart, &io);
    }
    static const Array per_sample[] = {ARRAY_Y, ARRAY_DX, ARRAY_DSKIP};
    for (int i = 0; i < 3; i++)
        guarded_check_same(together.array[per_sample[i]], apart.array[per_sample[i]],
                           array_names[per_sample[i]]);
    case_free(&together);
    case_free(&apart);
}

static bool reads_numbers(const Case *row) { return row->node.kind != OP_EMBEDDING; }

/* A NaN in the input shows in the output, so that a training that breaks down is noticed. */
static void nan_passes_through(const Case *row, bool plain) {
    CaseData data;
    case_create(&data, row, false);
    NodeIO io = run_io(&data, plain);
    io.hold_running = true;
    data.array[ARRAY_X].data[0] = (real)NAN;
    node_forward(&data.node, &io);
    const size_t first = guarded_first_nan(data.array[ARRAY_Y]);
    CHECK(first < data.array[ARRAY_Y].count, "x[0] is NaN, no y is");
    case_free(&data);
}

/* Where the textbook loops have a NaN, the fast op has one too, whichever input it came from. */
static void nan_is_not_swallowed(const Case *row, bool plain) {
    (void)plain;
    for (Array input = ARRAY_X; input <= ARRAY_DY; input++) {
        CaseData truth, fast;
        case_create(&truth, row, false);
        case_create(&fast, row, false);
        const size_t count = truth.array[input].count;
        NodeIO wanted = run_io(&truth, true), io = run_io(&fast, false);
        if (count) {
            truth.array[input].data[count / 2] = fast.array[input].data[count / 2] = (real)NAN;
            case_run(&truth, &wanted);
            case_run(&fast, &io);
        }
        for (Array a = ARRAY_Y; a < ARRAYS && count; a++) {
            const size_t size = truth.array[a].count;
            if (a == ARRAY_AUX || guarded_first_nan(truth.array[a]) == size) continue;
            CHECK(guarded_first_nan(fast.array[a]) < size, "%s has a NaN, %s has none",
                  array_names[input], array_names[a]);
        }
        case_free(&truth);
        case_free(&fast);
    }
}

/* Central differences need a step that x does not round away. */
static bool is_near(const Case *row) { return !row->far; }

/* Where the output of a relu is NaN, it passes the gradient on, as in PyTorch. */
static void relu_passes_nan_back(const Case *row, bool plain) {
    CaseData data;
    case_create(&data, row, false);
    NodeIO io = run_io(&data, plain);
    case_run(&data, &io);
    data.array[ARRAY_Y].data[0] = (real)NAN;
    node_input_gradient(&data.node, &io);
    const real got = row->skip ? io.dskip[0] : io.dx[0];
    CHECK(got == io.dy[0], "the gradient at a NaN is %g, not %g", (double)got, (double)io.dy[0]);
    case_free(&data);
}

enum { WANT_DX = 1, WANT_DSKIP = 2, WANT_PARAMETERS = 4, WANTS = 8 };

/* Computes the wanted gradients with only what saved_for_backward asks for: in pass 0 the other
 * arrays are NaN, in pass 1 they are NULL, and batch norm uses the sums that its input gradient has
 * left.  The gradients must be those of a call with all arrays. */
static void check_wanted(const CaseData *all, int wanted, bool plain) {
    CaseData data;
    case_create(&data, all->row, false);
    NodeIO io = run_io(&data, plain);
    node_forward(&data.node, &io);
    if (!(wanted & WANT_DX)) io.dx = NULL;
    if (!(wanted & WANT_DSKIP)) io.dskip = NULL;
    if (!(wanted & WANT_PARAMETERS)) io.dweight = io.dbias = NULL;
    SavedForBackward saved =
        saved_for_backward(&data.node, io.dx || io.dskip, io.dweight, io.use_running);
    bool same = true; /* an op that reads what is not saved would now read NULL */
    for (int pass = 0; pass < 2 && same; pass++) {
        if (!saved.input) {
            guarded_spoil(data.array[ARRAY_X]);
            if (pass) io.x = NULL;
        }
        guarded_spoil(data.array[ARRAY_SKIP]);
        io.skip = NULL;
        if (!saved.output) {
            guarded_spoil(data.array[ARRAY_Y]);
            if (pass) io.y = NULL;
        }
        io.sums_ready = pass && case_mixes_samples(all->row) && (io.dx || io.dskip);
        for (Array g = ARRAY_DX; g < ARRAYS; g++) guarded_spoil(data.array[g]);
        if (io.dx || io.dskip) node_input_gradient(&data.node, &io);
        if (io.dweight || io.dbias) node_weight_gradient(&data.node, &io);
        const real *gradient[] = {io.dx, io.dskip, io.dweight, io.dbias};
        for (Array g = ARRAY_DX; g < ARRAYS; g++) {
            if (!gradient[g - ARRAY_DX]) continue;
            size_t first = guarded_first_difference(all->array[g], data.array[g]);
            same &= CHECK(first == data.array[g].count, "%s[%zu] differs; wanted%s%s%s, saved%s%s",
                          array_names[g], first, io.dx ? " dx" : "", io.dskip ? " dskip" : "",
                          io.dweight ? " parameters" : "", saved.input ? " x" : "",
                          saved.output ? " y" : "");
        }
    }
    case_free(&data);
}

static void reads_only_what_is_saved(const Case *row, bool plain) {
    CaseData all;
    case_create(&all, row, false);
    NodeIO io = run_io(&all, plain);
    case_run(&all, &io);
    for (int wanted = 1; wanted < WANTS; wanted++) {
        if ((wanted & WANT_DX) && !io.dx) continue;
        if ((wanted & WANT_DSKIP) && !io.dskip) continue;
        if ((wanted & WANT_PARAMETERS) && !io.dweight) continue;
        check_wanted(&all, wanted, plain);
    }
    case_free(&all);
}

typedef void Property(const Case *row, bool plain);
enum { PLAIN = 1, FAST = 2, BOTH = PLAIN | FAST };
static const struct {
    const char *name;
    Property *check;
    int of;                           /* plain ops, fast ops, or both */
    bool double_only;                 /* only in the double build: central differences */
    bool (*applies)(const Case *row); /* NULL: to every row */
} properties[] = {
    {"gradients", gradients_meet_differences, PLAIN, true, is_near},
    {"gradients, whole numbers", gradients_are_exact, PLAIN, true, case_exact},
    {"as the plain op", fast_meets_plain, FAST, false, NULL},
    {"as the plain op, whole numbers", fast_is_exact, FAST, false, case_exact},
    {"writes", writes_all_and_nothing_else, BOTH, false, NULL},
    {"inputs", inputs_stay_as_they_are, BOTH, false, NULL},
    {"threads", repeats_on_any_threads, BOTH, false, NULL},
    {"accumulates", accumulates, BOTH, false, NULL},
    {"samples", samples_are_independent, BOTH, false, keeps_samples_apart},
    {"NaN", nan_passes_through, BOTH, false, reads_numbers},
    {"NaN anywhere", nan_is_not_swallowed, FAST, false, NULL},
    {"NaN at a relu", relu_passes_nan_back, BOTH, false, case_ends_in_relu},
    {"one key", one_key_has_no_gradient, BOTH, false, has_a_single_key},
    {"saved", reads_only_what_is_saved, BOTH, false, NULL},
};
enum { PROPERTIES = sizeof properties / sizeof *properties };

typedef struct {
    const Case *row;
    Property *check;
    bool plain;
} PropertyRun;

static void run_property(const void *argument) {
    const PropertyRun *run = argument;
    run->check(run->row, run->plain);
}

static void run_row(const Case *row, bool plain) {
    for (int p = 0; p < PROPERTIES; p++) {
        if (!(properties[p].of & (plain ? PLAIN : FAST))) continue;
        if (properties[p].applies && !properties[p].applies(row)) continue;
        if (properties[p].double_only && sizeof(real) < sizeof(double)) continue;
        char name[112];
        snprintf(name, sizeof name, "%s: %s, %s", row->name, plain ? "plain" : "fast",
                 properties[p].name);
        PropertyRun run = {row, properties[p].check, plain};
        RUN_ROW(name, run_property, &run);
    }
}

static void rows_make_sense(void) {
    bool tested[OP_KINDS] = {false};
    for (int i = 0; i < case_count; i++) {
        const Node *node = &cases[i].node;
        tested[node->kind] = true;
        if (node->kind != OP_CONV2D) continue;
        const Conv conv = node_conv(node, 1);
        int h = conv2d_out(conv.h, &conv), w = conv2d_out(conv.w, &conv);
        CHECK(h == node->out_shape.h && w == node->out_shape.w, "%s: %d x %d, not %d x %d",
              cases[i].name, h, w, node->out_shape.h, node->out_shape.w);
    }
    for (int kind = 0; kind < OP_KINDS; kind++)
        CHECK(tested[kind], "%s has no row in cases.c", op_name((OpKind)kind));
}

/* The plain ops are the same text in double: what a sanitizer finds there, it finds in float. */
static const bool watched_in_double = TEST_SANITIZED && sizeof(real) == sizeof(double);

void test_cases(void) {
    RUN(rows_make_sense);
    RUN(rope_frequencies_are_as_published);
    RUN(angles_follow_every_setting);
    RUN(what_is_saved_is_read);
    RUN(some_case_is_wanted);
    for (int i = 0; i < case_count; i++) {
        if (!case_wanted(&cases[i])) continue;
        if (!TEST_THREADS && !watched_in_double) run_row(&cases[i], true);
        run_row(&cases[i], false);
    }
}
