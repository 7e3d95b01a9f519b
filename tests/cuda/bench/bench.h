/* The benchmark of a device: its ceilings, each op beside these, and whole training steps.
 * Functions that return int return -1, with an error, when they fail. */
#pragma once

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
    int n, version;          /* samples; version of the kernel */
    int times;   /* how often the op or kernel is in its model; of a suite, cases passed */
    int repeats; /* how often it was timed: median, least and most are kept */
    double ms, least, most;
    double bytes, flops;  /* the least that it must move and compute */
    double floor;         /* ms that these take at the ceilings */
    double predicted;     /* ms (predictions.c); 0: there is no prediction */
    double memory;        /* planned device bytes of a step */
    char failed[H5_NAME]; /* the error; "" if there was none */
} Row;

typedef struct {
    char path[H5_PATH];
    Provenance provenance;
    char state[H5_PATH]; /* the GPU's clocks, temperature and power after some parts */
    Row *row;
    size_t rows, room;
} Results;

/* Reads what an earlier run of the same build left at path, unless `again`. */
int results_open(Results *results, const char *path, const Provenance *provenance, bool again);
void results_free(Results *results);
/* Returns the row with this row's part, work, what, how, precision, n and version; NULL if that was
 * not measured. */
const Row *results_find(const Results *results, const Row *like);
/* Returns PyTorch's row of a step, in its best mode; NULL if that was not measured. */
const Row *results_peer(const Results *results, const Row *step);
int results_add(Results *results, const Row *row);
int results_save(Results *results, double wall_s);
/* Adds the lines of a file: part, work, samples, precision, what, how, times, median, least, most,
 * repeats, bytes, error ("-": none), separated by tabs. */
int results_add_lines(Results *results, const char *path);
/* print.c: all results, and a summary of less than sixty lines. */
void results_print(const Results *results);
void results_print_summary(const Results *results);

/* predictions.c: returns the predicted ms, or 0 if there are none: for an H100 if `name` says so,
 * or else for an H200. */
double prediction_of(const Row *row, const char *name);

/* ---- the run ---- */

typedef struct {
    const char *device; /* "cuda", "simt" */
    bool tiny;          /* small sizes, which measure nothing */
    double start_ms, seconds;
    Stream stream;
    DeviceInfo info;
    Results results;
    double copy;               /* bytes a ms, read plus written */
    double matrix[PRECISIONS]; /* operations a ms */
    double saved_ms;           /* when the file was last written */
    int skipped, failed;
    bool lost; /* the device does not work any more, and this process cannot go on */
} Bench;

/* Adds a row, and writes the file if that was not done for some seconds. */
int bench_add(Bench *bench, Row *row);
/* Prints why `row` could not be measured, and adds the failure to the results, so that it is not
 * tried again.  Returns -1 if the device is lost. */
int bench_failure(Bench *bench, const Row *row);

/* Returns true if there is time for more; else prints that this work is skipped. */
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

/* Returns how many sets of so many bytes make up several times the cache. */
int timer_sets(const Bench *bench, double bytes);
/* Returns true if so many bytes are free now, with some left for libraries. */
bool timer_fits(size_t bytes);
/* Unless the results have the row: measures it, prints it and adds it.  All sets are recorded as
 * one graph, which is replayed; the times are those of one set, by events.  Sets repeats, ms, least
 * and most of the row, and its floor from bytes and flops. */
int timer_row(Bench *bench, const Task *task, Row *row);

/* ---- fill.c: random numbers on the device ---- */

/* Fills the array with `count` numbers around zero of the precision's value type; another seed
 * gives other numbers. */
int fill_values(const Bench *bench, void *device, size_t count, Precision precision, int seed);
/* Fills the array with tokens as in a text, where the r-th most frequent has a share of about 1 /
 * r.
 */
int fill_tokens(const Bench *bench, int *device, size_t count, int vocabulary);
void fill_free(void);

/* ---- ceilings.c, ops.c, updates.c, steps.c: the parts ---- */

int measure_ceilings(Bench *bench);
int measure_ops(Bench *bench);
int measure_updates(Bench *bench);   /* loss, optimizer and conversions: called by measure_ops */
int measure_key_steps(Bench *bench); /* the three that matter most */
int measure_steps(Bench *bench);
/* Warms up, then runs one step of `model` between profiler_start and profiler_stop. */
int profile_step(Bench *bench, const char *model);
/* tests/gpu, tests/simt: for ncu --profile-from-start off. */
void profiler_start(void);
void profiler_stop(void);
