/* How far a training is: one line rewritten in place on a terminal, now and then a plain line in a
 * log. */
#ifndef EXPERIMENTS_PROGRESS_H
#define EXPERIMENTS_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "../../ref/clock.h"
#include "../../ref/error.h" /* BCD_PRINTF */

typedef struct {
    bool quiet, terminal, line_open;
    bool brief;       /* set after the start: no notes, and the line is wiped at the end */
    uint64_t total;   /* steps */
    double per_step;  /* units a step */
    const char *unit; /* "images" or "tokens" */
    double rate;      /* smoothed, steps per second */
    double loss;      /* smoothed */
    double shown;     /* when the last line was, s */
} Progress;

void progress_start(Progress *p, bool quiet, uint64_t total, double per_step, const char *unit);
/* After a step that took `seconds`. */
void progress_step(Progress *p, uint64_t step, double loss, double seconds, int submodel,
                   int submodels);
/* A line that stays. */
void progress_note(Progress *p, const char *format, ...) BCD_PRINTF(2, 3);
void progress_end(Progress *p);

/* "2 h 05 min", "3 min 20 s", "12 s"; "1.9k", "35.2M"; "12.3 MiB". */
const char *format_time(double seconds, char text[32]);
const char *format_count(double count, char text[32]);
const char *format_bytes(double bytes, char text[32]);

#endif
