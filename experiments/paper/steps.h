/* The simulated time of what the paper measured, in its setting and in a better one.
 *
 * The published times fit one micro-batch of 1 x 1024 tokens in strict fp32, without overlap in the
 * pipeline: an inference of ours, the paper does not say.  The software is Megatron-LM, so
 * attention scores go through memory (Efficiency) and a chunk's backward pass is one piece.  Which
 * part of the peak its products reach cannot be known: SETTING_ROOFLINE takes what cuBLAS reaches
 * on other GPUs, SETTING_CALIBRATED the fraction at which one published time per GPU comes out (of
 * G-1.6B on one GPU: no communication), so that all others are predictions. */
#ifndef EXPERIMENTS_STEPS_H
#define EXPERIMENTS_STEPS_H

#include "../../dist/simulate.h"
#include "../tables/table.h"
#include "published.h"

typedef enum { SETTING_ROOFLINE, SETTING_CALIBRATED } PaperSetting;

typedef enum { TIMED_FULL, TIMED_BCD, TIMED_CACHED, TIMED_OFFLOAD } TimedMethod;

/* A cell of the paper's tables of time. */
typedef struct {
    const char *gpu, *model; /* key of gpu_table; preset */
    PaperGpus gpus;
    TimedMethod method;
    int submodels;     /* of BCD */
    int micro_batches; /* of a step; 0: one, as the paper's steps have */
} PaperStep;

/* The published time from which a GPU's fraction is found. */
double paper_calibration_ms(const char *gpu, PaperStep *step);

/* Where the simulated time of a step in SETTING_CALIBRATED comes from: SOURCE_PUBLISHED where it is
 * one of those that were calibrated with, for it is the published one again. */
Source paper_step_source(const PaperStep *step);

/* What a GPU of the paper reaches in a setting, found once.  Where that fails, so does `table`,
 * which it is for. */
const Efficiency *paper_efficiency(Table *table, const char *gpu, PaperSetting setting);

/* Milliseconds of a micro-batch of 1024 tokens, the mean over the submodels.  NAN where the model
 * is none of ours, or where `table`, which it is for, fails. */
double paper_step_ms(Table *table, const PaperStep *step, PaperSetting setting);

/* Fills five cells from column `first` on: the published milliseconds, and of each of the first two
 * settings ours and how far it is off. */
void paper_put_step(Table *table, int first, const PaperStep *step, double published);

#endif
