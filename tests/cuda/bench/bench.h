/* The benchmark of a device: what it can do, each op beside that, and whole training steps. */
#ifndef TESTS_CUDA_BENCH_H
#define TESTS_CUDA_BENCH_H

#include "../../../cuda/kernels.h"
#include "../../../experiments/store/h5.h"
#include "../../../experiments/store/provenance.h"
#include "../../../ref/stage.h"

/* ---- results.c: what was measured ----
 * A row is one time.  The file is written anew after each piece of work, so that a run that was cut
 * short goes on where it stopped. */

typedef struct {
    char part[H5_NAME];      /* "ceiling", "op", "step", "peer", "suite", "kernel" */
    char work[H5_NAME];      /* model, or op and shapes; a suite's name, a kernel's */
    char what[H5_NAME];      /* pass of an op; which blocks train; the step of a kernel */
    char how[H5_NAME];       /* "plain", "cached prefix", "offload"; of PyTorch its mode */
    char precision[H5_NAME]; /* "-" where it does not matter */
    int n, version;          /* samples; of the kernel */
    int times;               /* an op or kernel stands so often in its model; passed cases */
    int repeats;             /* times taken: the median, the least and the most are kept */
    double ms, least, most;
    double bytes, flops;  /* that it must move and do at the least */
    double floor;         /* ms that those take at the ceilings */
    double predicted;     /* ms, before anything had run (predictions.c); 0: nothing */
    double memory;        /* device bytes of a step, as planned */
    char failed[H5_NAME]; /* the error; "": none */
} Row;

typedef struct {
    char path[H5_PATH];
    Provenance provenance;
    char state[H5_PATH]; /* of the GPU from stage to stage: clocks, temperature, power */
    Row *row;
    size_t rows, room;
} Results;

/* Reads what an earlier run of the same build left at path, unless `again`.  -1 and an error. */
int results_open(Results *results, const char *path, const Provenance *provenance, bool again);
void results_free(Results *results);
/* The row with this row's part, work, what, how, precision, n and version; NULL: not measured. */
const Row *results_find(const Results *results, const Row *like);
/* Of a step: PyTorch's, in its best mode.  NULL: not measured. */
const Row *results_peer(const Results *results, const Row *step);
int results_add(Results *results, const Row *row);
int results_save(Results *results, double wall_s);
/* Adds the lines of a file: part, work, samples, precision, what, how, times, median, least, most,
 * repeats, bytes, error ("-": none), separated by tabs. */
int results_add_lines(Results *results, const char *path);
/* All, and what fits half a screen: failures first, then what was predicted. */
void results_print(const Results *results);
void results_print_summary(const Results *results); /* summary.c */

/* predictions.c: ms, 0: none.  Made for an H200; where `name` is an H100 for that. */
double prediction_of(const Row *row, const char *name);

/* ---- the run ---- */

typedef struct {
    const char *device; /* "cuda", "simt" */
    bool tiny;          /* sizes that show that all works, and measure nothing */
    double start_ms, seconds;
    Stream stream;
    DeviceInfo info;
    Results results;
    double copy;               /* bytes a ms, read plus written */
    double matrix[PRECISIONS]; /* operations a ms */
    double saved_ms;           /* when the file was last written */
    int skipped, failed;
    bool lost; /* the device answers no more: this process cannot go on */
} Bench;

/* Adds a row, and writes the file if that was not done for some seconds. */
int bench_add(Bench *bench, Row *row);
/* `row` could not be measured: says why, keeps that with the results, so that it is not tried
 * again.  0; -1: the device is lost. */
int bench_failure(Bench *bench, const Row *row);

/* Whether there is time for more; if not, says that `work` is skipped. */
bool bench_goes_on(Bench *bench, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- timer.c ----
 * One thing to time: run(run, context, set) puts it on run->stream, working on arrays number `set`
 * of `sets`, which together are larger than the device's cache. */

typedef struct {
    void (*run)(const Run *run, void *context, int set);
    void *context;
    int sets;
    Run how;
} Task;

/* Sets that make up several times the cache, when each takes so many bytes. */
int timer_sets(const Bench *bench, double bytes);
/* Whether so many bytes can be had now, and something is left for libraries. */
bool timer_fits(size_t bytes);
/* Records all sets as one graph and replays it; times are of one set, by events.  Fills repeats,
 * ms, least, most and floor (from bytes and flops) of the row.  -1 and an error. */
int timer_measure(const Bench *bench, const Task *task, Row *row);
/* The row is new: measured, added and printed; else nothing is done. */
int timer_row(Bench *bench, const Task *task, Row *row);

/* ---- fill.c: random numbers on the device ---- */

/* count numbers around zero, of the precision's value type or (PRECISION_FP32) floats; other ones
 * for another seed.  -1 and an error. */
int fill_values(const Bench *bench, void *device, size_t count, Precision precision, int seed);
/* Tokens as in a text, where the r-th most frequent has a share of about 1 / r. */
int fill_tokens(const Bench *bench, int *device, size_t count, int vocabulary);
void fill_free(void);

/* ---- ceilings.c, ops.c, updates.c, steps.c: the parts; -1 and an error ---- */

int measure_ceilings(Bench *bench);
int measure_ops(Bench *bench);
int measure_updates(Bench *bench);   /* loss, optimizer and conversions: called by measure_ops */
int measure_key_steps(Bench *bench); /* the three that matter most */
int measure_steps(Bench *bench);
/* One step of `model` between profiler_start and profiler_stop, after those that warm up. */
int profile_step(Bench *bench, const char *model);
/* tests/gpu, tests/simt: for ncu --profile-from-start off. */
void profiler_start(void);
void profiler_stop(void);

#endif
