/* Simulates the steps whose times the paper publishes.
 *
 * The paper does not state its setting.  Its times fit one micro-batch of 1 x 1024 tokens in strict
 * fp32, without overlap in the pipeline.  It uses Megatron-LM, so attention scores go through
 * memory (Efficiency), and the backward pass of a chunk is one task.  The fraction of the peak that
 * matrix products reach is unknown: SETTING_ROOFLINE takes what cuBLAS reaches on other GPUs;
 * SETTING_CALIBRATED takes the fraction with which the published time of G-1.6B on one GPU of that
 * kind, which has no communication, comes out.  All other times are then predictions. */
#ifndef EXPERIMENTS_STEPS_H
#define EXPERIMENTS_STEPS_H

#include "../../dist/simulate.h"
#include "../tables/table.h"
#include "published.h"

typedef enum { SETTING_ROOFLINE, SETTING_CALIBRATED } PaperSetting;

/* Returns the published step that a GPU is calibrated with, or NULL with an error set. */
const PaperStep *paper_calibration(const char *gpu);

/* Returns the efficiency of a GPU of the paper in a setting; it is calibrated once.  Marks `table`
 * as failed when that is impossible. */
const Efficiency *paper_efficiency(Table *table, const char *gpu, PaperSetting setting);

/* Returns the milliseconds of a step of 1024 tokens, the mean over the submodels; NAN for a model
 * that Table 8 does not describe.  Returns NAN and marks `table` as failed on an error. */
double paper_step_ms(Table *table, const PaperStep *step, PaperSetting setting);

/* Fills five cells from column `first` on: the published milliseconds, then for each setting the
 * simulated ones and their deviation. */
void paper_put_step(Table *table, int first, const PaperStep *step);
/* Fills two cells: the published milliseconds and the simulated ones in SETTING_CALIBRATED, both
 * times a factor. */
void paper_put_pair(Table *table, int first, const PaperStep *step, double factor);

#endif
