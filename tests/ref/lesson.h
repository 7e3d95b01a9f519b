/* ref/lesson/bcd_lesson.c as functions, for tests.  It is a program of one file with names like
 * those of ref/, so only lesson.c includes it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { LESSON_POINTS = 256, LESSON_BLOCKS = 3, LESSON_VALUES = 6, LESSON_PHASE = 50 };
#define LESSON_SPEC "mlp:inputs=2,layers=2,width=8,classes=8"

typedef struct Training Lesson;

/* Starts a training; the lesson keeps it, and has room for 32. */
Lesson *lesson_start(int submodels);
/* Trains until `steps` updates are done.  Returns the loss before the last one. */
double lesson_train(Lesson *lesson, int steps);
/* Returns the points [LESSON_POINTS][2], or their targets [LESSON_POINTS]; valid after an update.
 */
const double *lesson_points(const Lesson *lesson);
const int *lesson_targets(const Lesson *lesson);
/* Returns the weight [out][in] of a block, followed by its bias [out]. */
const double *lesson_weights(const Lesson *lesson, int block);

/* Tell whether a value is stored, and whether it has a gradient, in the phase of the last update.
 */
bool lesson_stored(Lesson *lesson, int value);
bool lesson_needs_grad(Lesson *lesson, int value);
/* The numbers of 8 bytes that are allocated, as the lesson counts them. */
typedef struct {
    size_t weights, gradients, state, activations;
} LessonCounts;
LessonCounts lesson_counts(const Lesson *lesson);
