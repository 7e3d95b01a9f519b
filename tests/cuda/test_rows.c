/* Tests conversions, the selection of rows by number, the embedding's gradient where one token
 * occurs often, and attention where a head is as large as can be. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../cuda/stage/plan.h"
#include "../../cuda/stage/stage_cuda.h"
#include "../../ref/base/error.h"
#include "../../ref/base/random.h"
#include "../../ref/blocks/models.h"
#include "../../ref/ops/ops.h"
#include "../ref/tolerance.h"
#include "../test.h"
#include "device_case.h"

/* ---- conversions ---- */

enum { CONVERTED = 4099 };
static const size_t counts[] = {0, 1, 7, 8, 33, 4096, CONVERTED};

/* Fills x with ties, the ends of the range, and what random numbers lack. */
static void fill(float *x) {
    const float special[] = {0,         -0.0f,       1 + 0x1p-8f, 1 + 3 * 0x1p-8f, INFINITY,
                             -INFINITY, 3.4028e38f,  0x1p-126f,   0x1p-149f,       NAN,
                             -1e-30f,   1 - 0x1p-9f, 65504};
    for (size_t i = 0; i < CONVERTED; i++) x[i] = (float)random_normal(1, 2, i);
    memcpy(x, special, sizeof special);
}

static void check_conversion(const float *x, size_t count, Run run) {
    static float got[CONVERTED];
    float *from = device_put(x, count * sizeof *x);
    void *y = device_alloc(count * precision_bytes(run.precision) + 1);
    cuda_from_float(&run, y, from, count);
    device_get_values(got, y, count, run.precision);
    for (size_t i = 0; i < count; i++) {
        float wanted = run.precision == PRECISION_BF16 ? nearest_bf16(x[i]) : x[i];
        CHECK(isnan(wanted) ? isnan(got[i]) : got[i] == wanted, "%zu of %zu: %.9g became %.9g", i,
              count, (double)x[i], (double)got[i]);
    }
    device_free(from);
    device_free(y);
}

static void conversions_round_to_even(void) {
    static float x[CONVERTED];
    if (!device_test_stream()) return;
    fill(x);
    for (int type = 0; type < VALUE_TYPES; type++)
        for (int version = 1; version <= 2; version++)
            for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
                check_conversion(x, counts[i],
                                 (Run){device_test_stream(), value_types[type], version, NULL});
}

/* ---- rows ---- */

enum { SLOTS = 9, ROWS = 5, WIDEST = 1030 };

static void check_rows(Run run, size_t width) {
    static const int slot[ROWS] = {3, -1, 8, 0, 5};
    static float store[SLOTS * WIDEST], own[ROWS * WIDEST], wanted[SLOTS * WIDEST];
    const size_t stored = SLOTS * width, held = ROWS * width;
    for (size_t i = 0; i < stored; i++) store[i] = (float)(i % 251);
    for (size_t i = 0; i < held; i++) own[i] = -(float)(i % 241);
    int *slots = device_put(slot, sizeof slot);
    void *from = device_put_values(store, stored, run.precision);
    void *to = device_put_values(own, held, run.precision);

    cuda_move_rows(&run, from, to, slots, ROWS, width, false);
    memcpy(wanted, store, stored * sizeof *store);
    for (int i = 0; i < ROWS; i++)
        if (slot[i] >= 0)
            memcpy(wanted + (size_t)slot[i] * width, own + (size_t)i * width, width * sizeof *own);
    device_get_values(store, from, stored, run.precision);
    CHECK(!memcmp(store, wanted, stored * sizeof *store), "scatter, width %zu", width);

    for (size_t i = 0; i < held; i++) own[i] = 7;
    device_free(to);
    to = device_put_values(own, held, run.precision);
    cuda_move_rows(&run, to, from, slots, ROWS, width, true);
    for (int i = 0; i < ROWS; i++)
        for (size_t j = 0; j < width; j++)
            wanted[(size_t)i * width + j] = slot[i] < 0 ? 7 : store[(size_t)slot[i] * width + j];
    device_get_values(own, to, held, run.precision);
    CHECK(!memcmp(own, wanted, held * sizeof *own), "gather, width %zu", width);
    device_free(slots);
    device_free(from);
    device_free(to);
}

static void rows_move(void) {
    const size_t widths[] = {1, 4, 8, 33, 1024, WIDEST};
    if (!device_test_stream()) return;
    for (int type = 0; type < VALUE_TYPES; type++)
        for (int version = 1; version <= 2; version++)
            for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
                check_rows((Run){device_test_stream(), value_types[type], version, NULL},
                           widths[i]);
}

/* ---- embedding ---- */

typedef struct {
    const char *name;
    int places, width, vocabulary;
    int often; /* token 0 is at this many of 100 positions */
} Table;

static const Table tables[] = {
    {"every place the same token", 300, 8, 1, 100},
    {"one long row", 500, 17, 40, 30},
    {"several long rows, packs", 700, 264, 5, 10},
    {"more rows than a block starts", 300, 16, 2500, 50},
    {"a row of exactly 64 places", 64, 4, 2, 100},
};

typedef struct {
    float *dy, *sums;
    int *tokens;
    size_t numbers, table;
} Places;

static Places places_create(const Table *t, Precision precision) {
    Places p = {.numbers = (size_t)t->places * (size_t)t->width,
                .table = (size_t)t->vocabulary * (size_t)t->width};
    p.dy = malloc(p.numbers * sizeof *p.dy);
    p.sums = malloc(p.table * sizeof *p.sums);
    p.tokens = malloc((size_t)t->places * sizeof *p.tokens);
    if (!p.dy || !p.sums || !p.tokens) abort();
    for (size_t i = 0; i < p.numbers; i++) {
        float x = (float)(2 * random_uniform(1, 5, i) - 1);
        p.dy[i] = precision == PRECISION_BF16 ? nearest_bf16(x) : x;
    }
    for (size_t i = 0; i < p.table; i++) p.sums[i] = (float)(i % 5);
    for (int i = 0; i < t->places; i++) {
        bool usual = (int)random_below(1, 6, (uint64_t)i, 100) < t->often;
        p.tokens[i] = usual ? 0 : (int)random_below(1, 7, (uint64_t)i, (uint32_t)t->vocabulary);
    }
    return p;
}

static void places_free(Places *p) {
    free(p->dy);
    free(p->sums);
    free(p->tokens);
}

static void table_gradient(const Table *t, Places *p, How how, bool add) {
    const Node node = {.kind = OP_EMBEDDING,
                       .in_shape = {1, t->places, 1},
                       .out_shape = {1, t->places, t->width},
                       .vocabulary = t->vocabulary};
    size_t bytes = cuda_node_workspace(&node, 1, how.precision);
    Run run = {device_test_stream(), how.precision, how.version, device_alloc(bytes)};
    void *dy = device_put_values(p->dy, p->numbers, how.precision);
    int *tokens = device_put(p->tokens, (size_t)t->places * sizeof *tokens);
    float *sums = device_put(p->sums, p->table * sizeof *sums);
    device_choose_order(how.order);
    const DeviceIO io = {.n = 1, .tokens = tokens, .dy = dy, .dweight = sums, .add_dweight = add};
    cuda_node_weight_gradient(&run, &node, &io);
    device_get(p->sums, sums, p->table * sizeof *sums);
    device_choose_order(0);
    device_free(run.workspace);
    device_free(dy);
    device_free(tokens);
    device_free(sums);
}

static void check_table(const Table *t, How how, bool add) {
    Places truth = places_create(t, how.precision), first = places_create(t, how.precision);
    embedding_weight_gradient(truth.sums, truth.dy, truth.tokens, 1, t->places, t->width,
                              t->vocabulary, add);
    table_gradient(t, &first, how, add);
    double allowed = 2 * tolerance(t->places, 1) + tolerance(1, 4);
    for (size_t i = 0; i < truth.table; i++) {
        double error = fabs((double)first.sums[i] - (double)truth.sums[i]);
        CHECK(error <= allowed, "dtoken[%zu] is %g, not %g (allowed %g)", i, (double)first.sums[i],
              (double)truth.sums[i], allowed);
    }
    for (how.order = 1; how.order < device_orders(); how.order++) {
        Places again = places_create(t, how.precision);
        table_gradient(t, &again, how, add);
        CHECK(!memcmp(again.sums, first.sums, first.table * sizeof *first.sums),
              "another order of threads: another sum");
        places_free(&again);
    }
    places_free(&truth);
    places_free(&first);
}

static void table_gradient_holds(const void *argument) {
    if (!device_test_stream()) return;
    for (int type = 0; type < VALUE_TYPES; type++)
        for (int version = 1; version <= 2; version++)
            for (int add = 0; add < 2; add++)
                check_table(argument, (How){.precision = value_types[type], .version = version},
                            add);
}

/* ---- the largest head of attention ---- */

/* With a single position y is v, and the gradient of v is dy; q and k have none.  q is 0, so that
 * the score is exact and the probability 1. */
static void the_largest_head_fits(void) {
    enum { D = ATTENTION_MAX_HEAD };
    static float qkv[3 * D], dy[D], y[D], dx[3 * D];
    const Node node = {.kind = OP_ATTENTION,
                       .in_shape = {1, 1, 3 * D},
                       .out_shape = {1, 1, D},
                       .attention = {.heads = 1, .groups = 1, .d = D, .causal = true}};
    if (!device_test_stream()) return;
    for (int i = D; i < 3 * D; i++) qkv[i] = (float)(i % 7 - 3);
    for (int i = 0; i < D; i++) dy[i] = (float)(i % 5 - 2);
    for (int type = 0; type < VALUE_TYPES; type++) {
        const Precision precision = value_types[type];
        const size_t size = precision_bytes(precision);
        const Run run = {device_test_stream(), precision, 0,
                         device_alloc(cuda_node_workspace(&node, 1, precision))};
        void *x = device_put_values(qkv, 3 * D, precision), *out = device_alloc(D * size);
        void *down = device_put_values(dy, D, precision), *to = device_alloc(3 * D * size);
        float *aux = device_alloc(sizeof *aux);
        const DeviceIO io = {.n = 1, .x = x, .y = out, .aux = aux, .dy = down, .dx = to};
        cuda_node_forward(&run, &node, &io);
        cuda_node_input_gradient(&run, &node, &io);
        device_get_values(y, out, D, precision);
        device_get_values(dx, to, 3 * D, precision);
        int wrong = 0;
        for (int i = 0; i < D; i++)
            wrong +=
                y[i] != qkv[2 * D + i] || dx[i] != 0 || dx[D + i] != 0 || dx[2 * D + i] != dy[i];
        CHECK(wrong == 0, "%s: %d of %d numbers are wrong", precision_names[precision], wrong, D);
        void *const memory[] = {x, out, down, to, aux, run.workspace};
        for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) device_free(memory[i]);
    }
}

/* A larger one is refused before anything is allocated. */
static void larger_heads_are_refused(void) {
    for (int more = 0; more < 2; more++) {
        char spec[80];
        const StageSettings settings = {.batch = 1};
        const bool active[8] = {false};
        size_t device[MEM_ROLES], host[MEM_ROLES];
        snprintf(spec, sizeof spec, "gpt:layers=1,width=%d,heads=1,context=2,vocabulary=3",
                 ATTENTION_MAX_HEAD + more);
        Model *m = model_create(spec);
        CHECK(m && cuda_memory_plan(device, host, m, &settings, active) == -more, "%s",
              error_message());
        if (more)
            CHECK(!stage_cuda_create(m, settings) &&
                      strstr(error_message(), "have 12641 numbers, a device takes at most 12640"),
                  "%s", error_message());
        model_free(m);
    }
}

void test_rows(void) {
    RUN(the_largest_head_fits);
    RUN(larger_heads_are_refused);
    RUN(conversions_round_to_even);
    RUN(rows_move);
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        RUN_ROW(tables[i].name, table_gradient_holds, &tables[i]);
}
