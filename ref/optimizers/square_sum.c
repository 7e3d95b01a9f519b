/* The sum of squares, for the norm of a gradient or of an update. */
#include "optimizer.h"

double optimizer_square_sum(const real *x, size_t count) {
    enum { CHUNK = 1 << 16, LANES = 16, GROUP = 256 };
    double total = 0;
    for (size_t group = 0; group < count; group += (size_t)GROUP * CHUNK) {
        const size_t left = (count - group + CHUNK - 1) / CHUNK;
        const int chunks = left < GROUP ? (int)left : GROUP; /* or some threads would have none */
        double partial[GROUP];
#pragma omp parallel for if (count > WORTH_THREADS)
        for (int k = 0; k < chunks; k++) {
            size_t begin = group + (size_t)k * CHUNK, end = begin + CHUNK;
            if (end > count) end = count;
            double lane[LANES] = {0}; /* independent sums, which vectorise */
            for (size_t i = begin; i < end; i++) lane[i % LANES] += (double)x[i] * (double)x[i];
            partial[k] = 0;
            for (int l = 0; l < LANES; l++) partial[k] += lane[l];
        }
        for (int k = 0; k < chunks; k++) total += partial[k];
    }
    return total;
}
