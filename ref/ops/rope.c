#include "rope.h"

#include <math.h>
#include <stdlib.h>

/* Angles of pairs [pair, pair + pairs) of one position; ld apart per position of `cosines`. */
static void angles(real *cosines, real *sines, const Rope *rope, int position, int pair,
                   int pairs) {
    for (int i = 0; i < pairs; i++) {
        const double angle = position * pow(10000, -2.0 * (pair + i) / rope->d);
        cosines[i] = (real)cos(angle);
        sines[i] = (real)sin(angle);
    }
}

Rope rope_create(int t, int d) {
    Rope rope = {t, d, NULL};
    const size_t half = (size_t)(d / 2), count = (size_t)t * half;
    rope.table = malloc(2 * count * sizeof *rope.table);
    if (rope.table) {
#pragma omp parallel for if (count > 256)
        for (int p = 0; p < t; p++) {
            real *cosines = rope.table + (size_t)p * half;
            angles(cosines, cosines + count, &rope, p, 0, d / 2);
        }
    }
    return rope;
}

void rope_free(Rope *rope) {
    free(rope->table);
    rope->table = NULL;
}

typedef struct {
    const real *cosines, *sines;
    real own[2 * ROPE_PAIRS]; /* without a table */
} Row;

static void find_row(Row *row, const Rope *rope, int position, int pair, int pairs) {
    if (rope->table) {
        const size_t half = (size_t)(rope->d / 2);
        row->cosines = rope->table + (size_t)position * half + (size_t)pair;
        row->sines = row->cosines + (size_t)rope->t * half;
    } else {
        angles(row->own, row->own + ROPE_PAIRS, rope, position, pair, pairs);
        row->cosines = row->own;
        row->sines = row->own + ROPE_PAIRS;
    }
}

static void turn(real *restrict to, const real *restrict x, const real *restrict y, const Row *row,
                 int pairs) {
    const real *restrict cosines = row->cosines, *restrict sines = row->sines;
    for (int i = 0; i < pairs; i++) {
        to[i] = x[i] * cosines[i] - y[i] * sines[i];
        to[pairs + i] = x[i] * sines[i] + y[i] * cosines[i];
    }
}

static void turn_back(real *restrict dx, real *restrict dy, const real *restrict from,
                      const Row *row, int pairs) {
    const real *restrict cosines = row->cosines, *restrict sines = row->sines;
    for (int i = 0; i < pairs; i++) {
        dx[i] += from[i] * cosines[i] + from[pairs + i] * sines[i];
        dy[i] += from[pairs + i] * cosines[i] - from[i] * sines[i];
    }
}

void rope_turn(real *to, const real *x, int ldx, const Rope *rope, int position, int rows, int pair,
               int pairs) {
    for (int i = 0; i < rows; i++) {
        Row row;
        find_row(&row, rope, position + i, pair, pairs);
        const real *first = x + (size_t)i * (size_t)ldx + pair;
        turn(to + i * 2 * ROPE_PAIRS, first, first + rope->d / 2, &row, pairs);
    }
}

void rope_turn_back(real *dx, int ldx, const real *from, const Rope *rope, int position, int rows,
                    int pair, int pairs) {
    for (int i = 0; i < rows; i++) {
        Row row;
        find_row(&row, rope, position + i, pair, pairs);
        real *first = dx + (size_t)i * (size_t)ldx + pair;
        turn_back(first, first + rope->d / 2, from + i * 2 * ROPE_PAIRS, &row, pairs);
    }
}
