/* Runs every row of tests/ref/cases.c on the device, in every precision and kernel version, and
 * compares with the plain op. cuda/kernels.h has the contract of an op; each function here tests a
 * part of it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../cuda/stage/plan.h"
#include "../ref/cases.h"
#include "../test.h"
#include "accuracy.h"

/* Whole numbers must be exact to the last bit, after the rounding of the result to its type. There,
 * and where a NaN appears, the suite `cases` finds the fast op the same as the plain one, which is
 * too slow for so many calls. */
static void check_exact(Turn turn, bool add) {
    CaseData truth, got;
    case_create(&truth, turn.row, true);
    case_create(&got, turn.row, true);
    NodeIO io = case_io(&got), wanted = case_io(&truth);
    io.add_dx = io.add_dskip = io.add_dweight = io.add_dbias = add;
    for (Array g = ARRAY_DX; add && g < ARRAYS; g++)
        for (size_t i = 0; i < got.array[g].count; i++) got.array[g].data[i] = (real)(i % 7);
    device_case_run(&got, &io, turn.how, RUN_FORWARD | RUN_GRADIENTS);
    case_run(&truth, &wanted);
    for (Array a = ARRAY_Y; a < ARRAYS; a++)
        for (size_t i = 0; i < truth.array[a].count; i++) {
            real value = truth.array[a].data[i];
            if (add && a >= ARRAY_DX) value += (real)(i % 7);
            if (turn.how.precision == PRECISION_BF16 && array_is_value(a))
                value = nearest_bf16(value);
            CHECK(got.array[a].data[i] == value, "%s[%zu] is %.9g, not %.9g%s", array_names[a], i,
                  (double)got.array[a].data[i], (double)value, add ? " (added)" : "");
        }
    case_free(&truth);
    case_free(&got);
}

/* The other promises are checked against the device's own results in the first order. */

static void check_same_bits(const CaseData *a, const CaseData *b, Array from, Array end,
                            const char *what) {
    for (Array i = from; i < end; i++) {
        size_t first = guarded_first_difference(a->array[i], b->array[i]);
        CHECK(first == a->array[i].count, "%s: %s[%zu] is %.9g and %.9g", what, array_names[i],
              first, (double)a->array[i].data[first], (double)b->array[i].data[first]);
    }
}

static void inputs_stay_as_they_are(const CaseData *once, Turn turn) {
    CaseData fresh;
    case_create(&fresh, turn.row, false);
    device_case_round(&fresh, turn.how.precision);
    check_same_bits(once, &fresh, ARRAY_X, ARRAY_MEAN, "before and after");
    case_free(&fresh);
}

/* Every other order of threads gives the same bits; in the last order the running statistics are
 * held. */
static void repeats(const CaseData *once, Turn turn) {
    for (int order = 1; order < device_orders(); order++) {
        char what[32];
        snprintf(what, sizeof what, "orders 0 and %d", order);
        CaseData again, fresh;
        case_create(&again, turn.row, false);
        NodeIO io = case_io(&again);
        turn.how.order = order;
        io.hold_running = order + 1 == device_orders();
        device_case_run(&again, &io, turn.how, RUN_FORWARD | RUN_GRADIENTS);
        check_same_bits(once, &again, ARRAY_Y, ARRAYS, what);
        if (io.hold_running) {
            case_create(&fresh, turn.row, false);
            check_same_bits(&fresh, &again, ARRAY_MEAN, ARRAY_Y, "held");
            case_free(&fresh);
        } else {
            check_same_bits(once, &again, ARRAY_MEAN, ARRAY_Y, what);
        }
        case_free(&again);
    }
}

/* Adds gradients to what the arrays hold. The sum may start from the old value, or the old value
 * may be added at the end. Every other gradient is overwritten, so a kernel that stores two of them
 * and mixes up their flags fails. */
static void accumulates(const CaseData *once, Turn turn, bool first) {
    CaseData twice;
    case_create(&twice, turn.row, false);
    NodeIO io = case_io(&twice);
    io.add_dx = io.add_dweight = first;
    io.add_dskip = io.add_dbias = !first;
    for (Array g = ARRAY_DX; g < ARRAYS; g++)
        for (size_t i = 0; i < twice.array[g].count; i++) twice.array[g].data[i] = (real)(i % 7);
    device_case_run(&twice, &io, turn.how, RUN_FORWARD | RUN_GRADIENTS);
    for (Array g = ARRAY_DX; g < ARRAYS; g++) {
        bool added = (g == ARRAY_DX || g == ARRAY_DWEIGHT) == first;
        double size = 7 + guarded_largest(once->array[g]);
        for (size_t i = 0; i < once->array[g].count; i++) {
            /* `once` was itself rounded to the value type, so the same error is allowed again. */
            double part = (double)once->array[g].data[i];
            double expected = part + (added ? (double)(i % 7) : 0);
            double error = fabs((double)twice.array[g].data[i] - expected);
            double allowed = device_tolerance(turn.row, g, turn.how.precision, size, expected) +
                             device_tolerance(turn.row, g, turn.how.precision, size, part);
            CHECK(error <= allowed, "%s[%zu] is %.9g, not %.9g (allowed %.3g), %s", array_names[g],
                  i, (double)twice.array[g].data[i], expected, allowed,
                  added ? "added" : "overwritten");
        }
    }
    case_free(&twice);
}

static void accumulates_on_device(const CaseData *once, Turn turn) {
    accumulates(once, turn, true);
    if (once->array[ARRAY_DSKIP].count || once->array[ARRAY_DBIAS].count)
        accumulates(once, turn, false);
}

/* A key that is lost, or not masked, changes a mean over many by less than bf16 may be off. So the
 * values of one key are made to stand out: where it is attended to, y moves as far as the oracle's,
 * and elsewhere not by a bit. */
static void check_key(const CaseData *once, Turn turn, size_t key) {
    const Attention *a = &once->node.attention;
    const size_t width = (size_t)once->node.in_shape.c, outputs = (size_t)once->node.out_shape.c;
    const size_t positions = (size_t)once->node.in_shape.w, values = (size_t)(a->groups * a->d);
    CaseData got, truth, before;
    CaseData *const data[] = {&got, &truth, &before};
    for (int i = 0; i < 3; i++) {
        case_create(data[i], turn.row, false);
        device_case_round(data[i], turn.how.precision);
        real *v = data[i]->array[ARRAY_X].data + (key + 1) * width - values;
        for (size_t j = 0; j < values && data[i] != &before; j++) v[j] = 64;
    }
    NodeIO io = case_io(&got), wanted = case_io(&truth), unchanged = case_io(&before);
    wanted.plain = unchanged.plain = true;
    device_case_run(&got, &io, turn.how, RUN_FORWARD);
    node_forward(&truth.node, &wanted);
    node_forward(&before.node, &unchanged);
    const double size = guarded_largest(before.array[ARRAY_Y]);
    for (size_t i = 0; i < got.array[ARRAY_Y].count; i++) {
        const size_t row = i / outputs;
        const bool attends = row < positions && (!a->causal || key <= row) &&
                             (!a->window || row < key + (size_t)a->window);
        const double y = (double)got.array[ARRAY_Y].data[i];
        const double value = (double)truth.array[ARRAY_Y].data[i];
        const double moved = fabs(value - (double)before.array[ARRAY_Y].data[i]);
        const double allowed =
            moved / 4 + device_tolerance(turn.row, ARRAY_Y, turn.how.precision, size, value);
        CHECK(attends ? fabs(y - value) <= allowed : y == (double)once->array[ARRAY_Y].data[i],
              "key %zu: y[%zu] is %.9g, not %.9g", key, i, y, value);
    }
    for (int i = 0; i < 3; i++) case_free(data[i]);
}

/* The last key of a tile, and of all. */
static void every_key_counts(const CaseData *once, Turn turn) {
    const size_t positions = (size_t)once->node.in_shape.w;
    const size_t keys[] = {63, positions - 1};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (keys[i] < positions) check_key(once, turn, keys[i]);
}

/* A training that breaks down must not go unnoticed: where the CPU's result has a NaN, the device's
 * has one too. It may be elsewhere in the array, since 0 times NaN may be skipped. */
static void check_nan(Turn turn, Array input, Array from, Array end) {
    CaseData truth, got;
    case_create(&truth, turn.row, false);
    case_create(&got, turn.row, false);
    Guarded spoiled[] = {truth.array[input], got.array[input]};
    for (int i = 0; i < 2; i++) spoiled[i].data[spoiled[i].count / 2] = (real)NAN;
    NodeIO io = case_io(&got), wanted = case_io(&truth);
    device_case_run(&got, &io, turn.how, RUN_FORWARD | RUN_GRADIENTS);
    case_run(&truth, &wanted);
    for (Array a = from; a < end; a++) {
        size_t count = truth.array[a].count;
        bool expected = guarded_first_nan(truth.array[a]) < count;
        CHECK(!expected || guarded_first_nan(got.array[a]) < count, "%s has a NaN, %s has none",
              array_names[input], array_names[a]);
    }
    case_free(&truth);
    case_free(&got);
}

/* Where the output of a relu is NaN, it passes the gradient on, as in PyTorch. */
static void check_nan_at_relu(Turn turn) {
    CaseData data;
    case_create(&data, turn.row, false);
    NodeIO io = case_io(&data);
    data.array[ARRAY_X].data[0] = (real)NAN;
    device_case_run(&data, &io, turn.how, RUN_FORWARD | RUN_GRADIENTS);
    const real got = turn.row->skip ? io.dskip[0] : io.dx[0];
    CHECK(got == io.dy[0], "the gradient at a NaN is %g, not %g", (double)got, (double)io.dy[0]);
    case_free(&data);
}

static void nan_is_not_swallowed(const CaseData *once, Turn turn) {
    if (case_ends_in_relu(turn.row)) check_nan_at_relu(turn);
    for (Array input = ARRAY_X; input < ARRAY_DY; input++)
        if (once->array[input].count) check_nan(turn, input, ARRAY_Y, ARRAY_AUX);
    check_nan(turn, ARRAY_DY, ARRAY_DX, ARRAYS);
}

enum { WANT_DX = 1, WANT_DSKIP = 2, WANT_WEIGHT = 4, WANT_BIAS = 8, WANTS = 16 };

/* Checks the gradients while x and y are NaN wherever saved_for_backward does not ask for them.
 * With `absent` they are NULL there, and batch norm uses the sums of the input gradient before
 * it. */
static void check_wanted(const CaseData *once, Turn turn, int wants, bool absent) {
    CaseData data;
    case_create(&data, turn.row, false);
    NodeIO io = case_io(&data);
    device_case_run(&data, &io, turn.how, RUN_FORWARD);
    if (!(wants & WANT_DX)) io.dx = NULL;
    if (!(wants & WANT_DSKIP)) io.dskip = NULL;
    if (!(wants & WANT_WEIGHT)) io.dweight = NULL;
    if (!(wants & WANT_BIAS)) io.dbias = NULL;
    SavedForBackward keeps =
        saved_for_backward(&data.node, io.dx || io.dskip, io.dweight || io.dbias, io.use_running);
    if (!keeps.input) {
        guarded_spoil(data.array[ARRAY_X]);
        if (absent) io.x = NULL;
    }
    guarded_spoil(data.array[ARRAY_SKIP]);
    io.skip = NULL;
    if (!keeps.output) {
        guarded_spoil(data.array[ARRAY_Y]);
        if (absent) io.y = NULL;
    }
    io.sums_ready = absent && case_mixes_samples(turn.row) && (io.dx || io.dskip);
    device_case_run(&data, &io, turn.how, RUN_GRADIENTS);
    const real *wanted[] = {io.dx, io.dskip, io.dweight, io.dbias};
    for (Array g = ARRAY_DX; g < ARRAYS; g++) {
        if (g == ARRAY_DBIAS && once->node.kind == OP_LINEAR && !io.dweight && io.dbias) {
            /* Without a weight gradient the bias has a sum of its own; with one it is part of that
             * product. */
            device_check_near(turn, g, data.array[g], once->array[g], data.array[g].count);
            continue;
        }
        size_t count = data.array[g].count;
        size_t first =
            wanted[g - ARRAY_DX] ? guarded_first_difference(once->array[g], data.array[g]) : count;
        CHECK(first == count, "%s[%zu] differs; wanted%s%s%s%s, kept%s%s", array_names[g], first,
              io.dx ? " dx" : "", io.dskip ? " dskip" : "", io.dweight ? " dweight" : "",
              io.dbias ? " dbias" : "", keeps.input ? " x" : "", keeps.output ? " y" : "");
    }
    case_free(&data);
}

static void computes_the_wanted_gradients(const CaseData *once, Turn turn) {
    int possible = 0;
    for (Array g = ARRAY_DX; g < ARRAYS; g++)
        if (once->array[g].count) possible |= 1 << (g - ARRAY_DX);
    for (int wants = 1; wants < WANTS; wants++) {
        /* Norms compute both parameter gradients or none. */
        bool half = once->node.kind != OP_LINEAR && once->node.kind != OP_EMBEDDING &&
                    (possible & WANT_BIAS) && !(wants & WANT_WEIGHT) != !(wants & WANT_BIAS);
        if ((wants & ~possible) || half) continue;
        check_wanted(once, turn, wants, (wants + turn.how.version) % 2); /* alternates */
    }
}

/* ---- the table ---- */

/* Returns true when another row runs the same kernels: version 0 is one of the others, and kernels
 * without tensor cores compute tf32 as fp32. */
static bool runs_elsewhere(Turn turn) {
    OpKind kind = turn.row->node.kind;
    int tensor_cores = kind == OP_LINEAR ? 1 : kind == OP_ATTENTION ? 2 : 3; /* from here on */
    bool plain = turn.how.version < tensor_cores;
    return turn.how.version == 0 || (turn.how.precision == PRECISION_TF32 && plain);
}

static void keeps_its_promises(const CaseData *once, Turn turn) {
    inputs_stay_as_they_are(once, turn);
    /* Where results are exact, accumulation is tested to the last bit below. */
    if (device_is_watched() || !case_exact(turn.row)) accumulates_on_device(once, turn);
    if (!device_is_watched()) {
        repeats(once, turn);
        nan_is_not_swallowed(once, turn);
        if (once->node.kind == OP_ATTENTION && turn.how.precision != PRECISION_FP32)
            every_key_counts(once, turn);
        if (case_exact(turn.row)) check_exact(turn, false);
        if (case_exact(turn.row)) check_exact(turn, true);
        /* Which gradients are wanted makes no difference between precisions. */
        if (turn.how.precision == PRECISION_FP32) computes_the_wanted_gradients(once, turn);
    }
}

/* Returns true for the plain convolution, which has no tiles, on a row made for the tiles of the
 * others. It takes longest, and promises nothing there that smaller rows do not show. */
static bool is_large_for_plain(Turn turn) {
    const Node *node = &turn.row->node;
    const size_t products = (size_t)(turn.row->n * node->kernel * node->kernel) *
                            shape_count(node->out_shape) * (size_t)node->in_shape.c;
    return node->kind == OP_CONV2D && turn.how.version == 1 && products > 1 << 20;
}

static void meets_its_contract(const void *argument) {
    Turn turn = *(const Turn *)argument;
    CaseData once;
    case_create(&once, turn.row, false);
    NodeIO io = case_io(&once);
    device_case_run(&once, &io, turn.how, RUN_FORWARD | RUN_GRADIENTS);
    if (!device_is_watched()) device_meets_oracle(&once, turn, true);
    const bool large = device_is_slow() && !device_is_watched() && is_large_for_plain(turn);
    if (!runs_elsewhere(turn) && !large) keeps_its_promises(&once, turn);
    case_free(&once);
}

static void run_row(const Case *row, How how) {
    char name[112];
    snprintf(name, sizeof name, "%s: %s, version %d%s", row->name, precision_names[how.precision],
             how.version, how.align ? ", rows aligned" : "");
    Turn turn = {row, how};
    if (device_is_watched() && runs_elsewhere(turn)) return;
    RUN_ROW(name, meets_its_contract, &turn);
}

static void all_rows(Precision p) {
    RUN(some_case_is_wanted);
    for (int i = 0; i < case_count; i++) {
        if (!case_wanted(&cases[i]) || !device_has_kernels(cases[i].node.kind, p)) continue;
        for (int v = 0; v <= cuda_node_versions(&cases[i].node, p); v++)
            run_row(&cases[i], (How){.precision = p, .version = v});
        if (cases[i].node.kind == OP_LINEAR) /* with the row gaps that a stage's logits have */
            run_row(&cases[i], (How){.precision = p, .version = 2, .align = LOGITS_ALIGN});
    }
}

/* Each precision is a suite of its own: under SIMT these are the slowest suites, and suites run in
 * parallel. */
void test_device_cases_fp32(void) { all_rows(PRECISION_FP32); }
void test_device_cases_tf32(void) { all_rows(PRECISION_TF32); }
void test_device_cases_bf16(void) { all_rows(PRECISION_BF16); }
