#include "differences.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/random.h"
#include "tolerance.h"

static void silence_kinks(CaseData *data, Naive *naive) {
    const double margin = 0.05; /* many steps, also behind a normalisation */
    if (data->node.kind != OP_RELU && !data->node.relu) return;
    const double *before_relu = naive->array[ARRAY_X];
    if (data->node.kind == OP_BATCHNORM) {
        naive->node.relu = false;
        naive_forward(naive);
        naive->node.relu = true;
        before_relu = naive->array[ARRAY_Y];
    }
    for (size_t i = 0; i < data->array[ARRAY_Y].count; i++)
        if (fabs(before_relu[i]) < margin)
            naive->array[ARRAY_DY][i] = data->array[ARRAY_DY].data[i] = 0;
}

void differences_start(Differences *differences, CaseData *data, bool whole) {
    *differences = (Differences){.data = data, .whole = whole};
    naive_create(&differences->naive, data);
    silence_kinks(data, &differences->naive);
}

void differences_end(Differences *differences) { naive_free(&differences->naive); }

double differences_sign(int direction, size_t i) {
    return random_bits((uint64_t)direction, ARRAYS, i) & 1 ? 1 : -1;
}

/* Overwrites y in double.  The double build asks the op itself; in float its rounding would drown
 * the differences, so there the naive formula stands in, to which another test ties the op. */
static void forward(Differences *differences) {
    Naive *naive = &differences->naive;
#ifdef BCD_DOUBLE
    if (!differences->whole) {
        NodeIO io = case_io(differences->data);
        io.hold_running = true;
        node_forward(&differences->data->node, &io);
        memcpy(naive->array[ARRAY_Y], io.y, naive->count[ARRAY_Y] * sizeof(double));
        return;
    }
#endif
    naive_forward(naive);
}

typedef struct {
    Array input;
    long element; /* -1: along the signs */
    int direction;
} Way;

static void move(Differences *differences, Way way, const double *from, double step) {
    size_t first = way.element < 0 ? 0 : (size_t)way.element;
    size_t end = way.element < 0 ? differences->naive.count[way.input] : first + 1;
    for (size_t i = first; i < end; i++) {
        double sign = way.element < 0 ? differences_sign(way.direction, i) : 1;
        differences->naive.array[way.input][i] = from[i] + step * sign;
        differences->data->array[way.input].data[i] = (real)(from[i] + step * sign);
    }
}

/* sum dy (y(from + step) - y(from - step)): subtracted before it is summed, so that the outputs
 * that do not move add no rounding. */
static double rise(Differences *differences, Way way, const double *from, double step) {
    Naive *naive = &differences->naive;
    size_t count = naive->count[ARRAY_Y];
    double *above = malloc(count * sizeof *above), sum = 0;
    if (!above) abort();
    move(differences, way, from, step);
    forward(differences);
    memcpy(above, naive->array[ARRAY_Y], count * sizeof *above);
    move(differences, way, from, -step);
    forward(differences);
    for (size_t i = 0; i < count; i++)
        sum += naive->array[ARRAY_DY][i] * (above[i] - naive->array[ARRAY_Y][i]);
    free(above);
    return sum;
}

double differences_slope(Differences *differences, Array input, long i, int direction) {
    Way way = {input, i, direction};
    size_t count = differences->naive.count[input];
    double *from = malloc(count * sizeof *from), slope;
    if (!from) abort();
    memcpy(from, differences->naive.array[input], count * sizeof *from);
    if (differences->whole) {
        slope = rise(differences, way, from, 1) / 2;
    } else {
        const double h = DIFFERENCE_STEP;
        slope =
            (8 * rise(differences, way, from, h) - rise(differences, way, from, 2 * h)) / (12 * h);
    }
    move(differences, way, from, 0);
    free(from);
    return slope;
}
