/* `bcd experiment timing`: steps by method, model and submodel, simulated beside the published ones
 * (Tables 3, 4, 15, 16, Figures 4 and 6), and measured here for small models. */
#ifndef EXPERIMENTS_TIMING_H
#define EXPERIMENTS_TIMING_H

#include "../tables/table.h"
#include "times.h"

/* What the machines reach, by setting; SETTING_FILLED as calibrated. */
typedef struct {
    Practice rtx4090[SETTINGS], a100[SETTINGS], a800[SETTINGS];
} TimingPractice;

const Practice *timing_practice(const TimingPractice *practice, const char *gpu,
                                PaperSetting setting);

/* What operations alone say a step of submodel k of M equal parts takes of a full update, k from 1
 * at the input side, 0: the mean.  Forward 1, input gradients 1, weight gradients 1; contiguous in
 * depth: forward everywhere (cached: from k up), input gradients down to k, weight gradients of k.
 */
double timing_theory(int k, int parts, bool cached);

/* Each adds its tables.  -1 and an error. */
int timing_add_steps(Tables *tables, const TimingPractice *practice);
int timing_add_ufp(Tables *tables, const TimingPractice *practice);
int timing_add_submodels(Tables *tables, const TimingPractice *practice);
int timing_add_figure4(Tables *tables, const TimingPractice *practice, double multiplier);
int timing_add_figure6(Tables *tables, const TimingPractice *practice);
int timing_add_offload(Tables *tables, const TimingPractice *practice);
int timing_add_timelines(Tables *tables, const TimingPractice *practice);
/* Small models on this machine's processors. */
int timing_measure(Tables *tables, const Options *options);

#endif
