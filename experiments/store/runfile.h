/* run.h5: what a training did.  Ordinary HDF5, for h5ls, h5py and `bcd report`;
 * experiments/results/README.md lists its data sets. */
#pragma once

#include "../cli/options.h"
#include "h5.h"
#include "provenance.h"

typedef struct {
    uint64_t step, samples; /* after this update */
    double loss;            /* mean over the batch's targets */
    double lr;
    int submodel;
    double seconds;
} CurveRow;

typedef struct {
    uint64_t step;
    double loss, accuracy, perplexity, seconds;
} EvaluationRow;

typedef struct {
    uint64_t step; /* updates done when it became active */
    int submodel;
    uint64_t phase;
    char reason[H5_NAME];
    double earlier_loss, window_loss;
} SwitchRow;

typedef struct {
    uint64_t step; /* updates done when it began */
    char started[H5_NAME], device[H5_NAME], precision[H5_NAME], computer[H5_NAME], commit[H5_NAME];
    int threads; /* of OpenMP, in the process of rank 0; 0 in older files */
    int ranks;   /* of --pipeline; 0 without it, and in older files */
} SessionRow;

typedef struct {
    char role[H5_NAME];
    uint64_t current, peak, planned;
} MemoryRow;

typedef struct {
    char status[H5_NAME];
    Options settings;
    Provenance provenance;
    char spec[H5_PATH], data[H5_NAME];
    uint64_t parameters, samples, checksum;
    uint64_t valid_checksum; /* of the samples evaluated on; 0 in older files */
    double steps_per_epoch, imbalance;
    int submodels;
    const Partition *partition; /* both are only written, for other programs, and not read back; */
    const Model *model;         /*   NULL: left out */
    CurveRow *curve;
    EvaluationRow *evaluations;
    SwitchRow *switches;
    SessionRow *sessions;
    size_t curve_rows, evaluation_rows, switch_rows, session_rows;
    MemoryRow memory[MEM_ROLES + 1]; /* the last row is the total */
    uint64_t resident; /* bytes, the most that a process of it held; 0 in older files */
    /* Of pre-inference, which are part of the curve's; 0 in older files. */
    double inference_seconds;
} RunFile;

/* The tables that grow with the run; a study has the first three as well.  Each row begins with its
 * step. */
enum { RUN_CURVE, RUN_EVALUATIONS, RUN_SWITCHES, RUN_SESSIONS, RUN_PARTS };
typedef struct {
    const char *group;
    const H5Column *column;
    int columns;
    size_t row_size, rows_at, count_at; /* offsets in RunFile of the rows and their count */
} RunPart;
extern const RunPart run_parts[RUN_PARTS];

/* Appends a row to a table. */
void runfile_add(RunFile *run, int part, const void *row);
/* Appends a session of so many ranks with run->provenance.  It replaces one that began at the same
 * step, which did nothing. */
void runfile_add_session(RunFile *run, uint64_t step, int ranks);
/* Returns true if the last session has another device or precision than the one before. */
bool runfile_moved(const RunFile *run);
/* Removes every row after this step. */
void runfile_cut(RunFile *run, uint64_t step);

/* Returns the mean training loss of the `window` updates that end with row `row`. */
double runfile_smooth(const RunFile *run, size_t row, size_t window);

/* Overwrites *earlier and *last with the mean training losses of the last two whole windows of a
 * phase that began after update `begin` and ended with update `end`; NAN if it had no two, or the
 * curve does not hold them. */
void runfile_windows(const RunFile *run, uint64_t begin, uint64_t end, int window, double *earlier,
                     double *last);

/* -1 and an error. */
int runfile_write(const RunFile *run, const char *path);
/* Fills a run; runfile_free is safe either way.  -1 and an error: foreign or damaged. */
int runfile_read(RunFile *run, const char *path);
void runfile_free(RunFile *run);
