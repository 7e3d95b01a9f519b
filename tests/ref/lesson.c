#define main lesson_main
#include "../../ref/lesson/bcd_lesson.c"
#undef main

#include "lesson.h"

_Static_assert((int)LESSON_POINTS == N && (int)LESSON_BLOCKS == BLOCKS &&
                   (int)LESSON_VALUES == VALUES && (int)LESSON_PHASE == PHASE,
               "the sizes of the lesson");

Lesson *lesson_start(int submodels) { return start(submodels); }
double lesson_train(Lesson *lesson, int steps) { return train(lesson, steps); }
const double *lesson_points(const Lesson *lesson) { return lesson->x; }
const int *lesson_targets(const Lesson *lesson) { return lesson->target; }
const double *lesson_weights(const Lesson *lesson, int block) {
    return lesson->param[WEIGHT][block];
}
bool lesson_stored(Lesson *lesson, int v) { return v > 0 && lesson->value[v]; }
bool lesson_needs_grad(Lesson *lesson, int v) { return needs_grad(lesson, v); }

LessonCounts lesson_counts(const Lesson *lesson) {
    const size_t *bytes = lesson->bytes, one = sizeof(double);
    return (LessonCounts){bytes[WEIGHT] / one, bytes[GRADIENT] / one,
                          (bytes[ADAM_M] + bytes[ADAM_V]) / one, bytes[ACTIVATION] / one};
}
