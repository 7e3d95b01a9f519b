#include "properties.h"

#include <math.h>
#include <stdio.h>

#include "../../ref/base/random.h"
#include "../test.h"
#include "differences.h"
#include "tolerance.h"

/* Compares a number of a gradient with the slope; i = -1: their sum along a vector of signs. */
static void check_slope(const Differences *differences, Array gradient, long i, double got,
                        double allowed) {
    double slope = differences_slope(differences, array_of_gradient(gradient), i, (int)gradient);
    double error = fabs(got - slope);
    char element[32] = " along a vector of signs";
    if (i >= 0) snprintf(element, sizeof element, "[%ld]", i);
    CHECK(error <= allowed,
          "%s%s is %.12g, differences give %.12g (allowed %.3g); if the op has a kink, it belongs "
          "into clear_kinks (differences.c)",
          array_names[gradient], element, got, slope, allowed);
}

static void check_gradient(const Differences *differences, Array gradient, int samples) {
    const CaseData *data = differences->data;
    Guarded got = data->array[gradient];
    if (got.count == 0) return;
    double size = case_magnitude(data->row, guarded_largest(got));
    double allowed = differences->whole ? 0
                                        : tolerance(case_length(data->row, gradient), size) +
                                              DIFFERENCE_TOLERANCE * size;
    bool all = got.count <= (size_t)samples;
    for (int s = 0; s < (all ? (int)got.count : samples); s++) {
        long i = all ? s : (long)random_below(gradient, ARRAYS, (uint64_t)s, (uint32_t)got.count);
        check_slope(differences, gradient, i, (double)got.data[i], allowed);
    }
    double along = 0;
    for (size_t i = 0; i < got.count; i++)
        along += (double)got.data[i] * differences_sign((int)gradient, i);
    check_slope(differences, gradient, -1, along, allowed * sqrt((double)got.count));
}

/* Returns how many elements are tested one by one: sixty, or fewer where a forward pass is long. */
static int samples_for(const Case *row) {
    double cost =
        row->n * (node_flops(&row->node, PASS_FORWARD) + (double)shape_count(row->node.in_shape));
    double affordable = 5e6 / cost;
    return affordable < 6 ? 6 : affordable > 60 ? 60 : (int)affordable;
}

static void check_gradients(const Case *row, bool whole) {
    CaseData data;
    Differences differences;
    case_create(&data, row, whole);
    differences_start(&differences, &data, whole);
    NodeIO io = case_io(&data);
    io.plain = true;
    case_run(&data, &io);
    for (Array g = ARRAY_DX; g < ARRAYS; g++) check_gradient(&differences, g, samples_for(row));
    case_free(&data);
}

void gradients_meet_differences(const Case *row, bool plain) {
    (void)plain;
    check_gradients(row, false);
}

void gradients_are_exact(const Case *row, bool plain) {
    (void)plain;
    check_gradients(row, true);
}

/* The sum may start from the old value or be added to it at the end; only with whole numbers are
 * both the same to the last bit. */
void accumulates(const Case *row, bool plain) {
    bool whole = case_exact(row);
    CaseData once, twice;
    case_create(&once, row, whole);
    case_create(&twice, row, whole);
    NodeIO io = case_io(&once);
    io.plain = plain;
    case_run(&once, &io);
    io = case_io(&twice);
    io.plain = plain;
    io.add_dx = io.add_dskip = io.add_dweight = io.add_dbias = true;
    for (Array g = ARRAY_DX; g < ARRAYS; g++)
        for (size_t i = 0; i < twice.array[g].count; i++) twice.array[g].data[i] = (real)(i % 7);
    case_run(&twice, &io);
    for (Array g = ARRAY_DX; g < ARRAYS; g++) {
        double size = case_magnitude(row, 7 + guarded_largest(once.array[g]));
        double allowed = whole ? 0 : tolerance(case_length(row, g), size);
        for (size_t i = 0; i < once.array[g].count; i++) {
            double expected = (double)once.array[g].data[i] + (double)(i % 7);
            double error = fabs((double)twice.array[g].data[i] - expected);
            CHECK(error <= allowed, "%s[%zu] is %.9g, not %.9g (allowed %.3g)", array_names[g], i,
                  (double)twice.array[g].data[i], expected, allowed);
        }
    }
    case_free(&once);
    case_free(&twice);
}

/* Returns whether an input or weight gradient changes when an array of the op is NaN. */
static bool reads(const Case *row, bool plain, bool dx, Array array) {
    CaseData data, all;
    case_create(&data, row, false);
    case_create(&all, row, false);
    NodeIO io = case_io(&data), truth = case_io(&all);
    io.plain = truth.plain = plain;
    case_run(&all, &truth);
    node_forward(&data.node, &io);
    guarded_spoil(data.array[array]);
    (dx ? node_input_gradient : node_weight_gradient)(&data.node, &io);
    bool differ = false;
    for (Array g = dx ? ARRAY_DX : ARRAY_DWEIGHT; g < (dx ? ARRAY_DWEIGHT : ARRAYS); g++)
        differ |= guarded_first_difference(all.array[g], data.array[g]) < data.array[g].count;
    case_free(&data);
    case_free(&all);
    return differ;
}

/* A fused relu and running statistics change what an op reads. */
static bool alike(const Case *a, const Case *b) {
    return a->node.kind == b->node.kind && a->node.relu == b->node.relu &&
           a->use_running == b->use_running;
}

/* A single row may not show it, as a relu whose only output is above 0, nor the plain op. */
static bool some_row_reads(const Case *like, bool dx, Array array) {
    for (int i = 0; i < case_count; i++)
        if (alike(&cases[i], like) &&
            (reads(&cases[i], true, dx, array) || reads(&cases[i], false, dx, array)))
            return true;
    return false;
}

static void check_reads(const Case *row, bool dx, Array array) {
    CHECK(some_row_reads(row, dx, array), "%s%s%s saves %s, which its %s gradient does not read",
          op_name(row->node.kind), row->node.relu ? ", relu" : "",
          row->use_running ? ", running statistics" : "", array_names[array],
          dx ? "input" : "weight");
}

void what_is_saved_is_read(void) {
    for (int i = 0; i < case_count; i++) {
        const Case *row = &cases[i];
        int first = 0;
        while (!alike(&cases[first], row)) first++;
        for (int dx = 0; dx < 2 && first == i; dx++) {
            if (!case_array_count(row, dx ? ARRAY_DX : ARRAY_DWEIGHT)) continue;
            const SavedForBackward saved =
                saved_for_backward(&row->node, dx, !dx, row->use_running);
            if (saved.input) check_reads(row, dx, ARRAY_X);
            if (saved.output) check_reads(row, dx, ARRAY_Y);
        }
    }
}
