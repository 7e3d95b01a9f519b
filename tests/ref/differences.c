#include "differences.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/base/random.h"
#include "tolerance.h"

static void forward(const CaseData *data) {
    NodeIO io = case_io(data);
    io.plain = io.hold_running = true;
    node_forward(&data->node, &io);
}

/* Sets dy to 0 where a small step could cross the kink of a relu. */
static void clear_kinks(CaseData *data) {
    const double margin = 0.05; /* many steps, even after a norm */
    if (data->node.kind != OP_RELU && !data->node.relu) return;
    const real *before_relu = data->array[ARRAY_X].data;
    if (data->node.kind == OP_BATCHNORM) {
        data->node.relu = false;
        forward(data);
        data->node.relu = true;
        before_relu = data->array[ARRAY_Y].data;
    }
    for (size_t i = 0; i < data->array[ARRAY_Y].count; i++)
        if (fabs((double)before_relu[i]) < margin) data->array[ARRAY_DY].data[i] = 0;
}

void differences_start(Differences *differences, CaseData *data, bool whole) {
    *differences = (Differences){data, whole};
    clear_kinks(data);
}

double differences_sign(int direction, size_t i) {
    return random_bits((uint64_t)direction, ARRAYS, i) & 1 ? 1 : -1;
}

typedef struct {
    Array input;
    long element; /* -1: the vector of signs */
    int direction;
} Direction;

/* Sets the input to `from` plus a step in a direction. */
static void move(const Differences *differences, Direction way, const real *from, double step) {
    const Guarded input = differences->data->array[way.input];
    size_t first = way.element < 0 ? 0 : (size_t)way.element;
    size_t end = way.element < 0 ? input.count : first + 1;
    for (size_t i = first; i < end; i++) {
        double sign = way.element < 0 ? differences_sign(way.direction, i) : 1;
        input.data[i] = (real)((double)from[i] + step * sign);
    }
}

/* Returns a copy, for the caller to free. */
static real *copy_of(Guarded array) {
    real *copy = malloc(array.count * sizeof *copy);
    if (!copy) abort();
    return memcpy(copy, array.data, array.count * sizeof *copy);
}

/* Returns sum dy (y(from + step) - y(from - step)).  Subtracting before summing keeps the outputs
 * that do not change from adding rounding. */
static double central_difference(const Differences *differences, Direction way, const real *from,
                                 double step) {
    const Guarded y = differences->data->array[ARRAY_Y], dy = differences->data->array[ARRAY_DY];
    double sum = 0;
    move(differences, way, from, step);
    forward(differences->data);
    real *above = copy_of(y);
    move(differences, way, from, -step);
    forward(differences->data);
    for (size_t i = 0; i < y.count; i++)
        sum += (double)dy.data[i] * ((double)above[i] - (double)y.data[i]);
    free(above);
    return sum;
}

double differences_slope(const Differences *differences, Array input, long i, int direction) {
    const Direction way = {input, i, direction};
    real *from = copy_of(differences->data->array[input]);
    double slope;
    if (differences->whole) {
        slope = central_difference(differences, way, from, 1) / 2;
    } else {
        const double h = DIFFERENCE_STEP;
        slope = (8 * central_difference(differences, way, from, h) -
                 central_difference(differences, way, from, 2 * h)) /
                (12 * h);
    }
    move(differences, way, from, 0);
    free(from);
    return slope;
}
