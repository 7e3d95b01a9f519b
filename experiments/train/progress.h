/* Progress of a training: on a terminal a line that is rewritten in place, in a log a plain line
 * every ten seconds. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "../../ref/base/clock.h"
#include "../../ref/base/error.h" /* BCD_PRINTF */

typedef struct {
    bool quiet;       /* print nothing */
    bool brief;       /* print no notes, and erase the line at the end */
    bool terminal;    /* whether the output is one */
    uint64_t total;   /* steps */
    double per_step;  /* images or tokens per step */
    const char *unit; /* "images" or "tokens" */
    /* Zero at the start: */
    bool line_open;
    double rate; /* smoothed, steps per second */
    double loss; /* the sum of the losses, each weighing 0.95 of the next one */
    double weight;
    double shown; /* time of the last line, s */
} Progress;

/* Shows a step that took `seconds`. */
void progress_step(Progress *p, uint64_t step, double loss, double seconds, int submodel,
                   int submodels);
/* Shows a pre-inference that has taken `seconds` for `done` samples. */
void progress_infer(Progress *p, int done, int samples, double seconds);
/* Prints a line that stays. */
void progress_note(Progress *p, const char *format, ...) BCD_PRINTF(2, 3);
void progress_end(Progress *p);
