/* The benchmark of a device: its peak rates, each op next to these, and whole training steps.
 * Functions that return int return 0; on failure -1, with the error set. */
#pragma once

#include "../../../cuda/kernels.h"
#include "../../../experiments/store/h5.h"
#include "../../../experiments/store/provenance.h"
#include "../../../ref/stage.h"

/* ---- results.c: what was measured ----
 * A row is one time.  The file is written anew after each piece of work, so that a run that was cut
 * short goes on where it stopped. */

typedef struct {
    char part[H5_NAME]; /* "ceiling", "op", "step", "peer", "suite", "kernel" */
    char work[H5_NAME]; /* model, or op and shapes; a suite's name, a kernel's */
    char what[H5_NAME]; /* pass of an op; which blocks train; the step of a kernel */
    char how[H5_NAME];  /* "plain", "tuned", "cached prefix", "offload"; of an op "in cache" where
                         * its arrays fit there; for PyTorch its mode */
    char precision[H5_NAME]; /* "-" where it does not matter */
    int n, version;          /* samples; for a kernel its version */
    int times;               /* how often an op or kernel is in its model, 0: only in one that no
                              * training has; cases that passed */
    int repeats;             /* how often it was timed; the median, minimum and maximum are kept */
    double ms, min_ms, max_ms;
    double bytes, flops; /* lower bounds of what it moves and computes */
    double floor;        /* ms that these bounds take at the peak rates */
    double predicted;    /* ms (predictions.c); 0: there is no prediction */
    double memory;       /* planned device bytes of a step */
    double loss;         /* of the last step before those that are timed; of the first rows of a job
                          * the same in every run */
    char failed[H5_NAME]; /* the error; "" if there was none; RUNNING while it is measured */
} Row;

/* What the file says of the rows that were being measured when it was written. No search finds
 * them. */
#define RUNNING "stopped while it ran"
/* How the key steps are called whose products were tuned. */
#define TUNED "tuned"

typedef struct {
    char path[H5_PATH];
    Provenance provenance;
    char state[H5_PATH]; /* the GPU's clocks, temperature and power after some parts */
    Row *row;
    size_t rows, capacity;
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
/* Removes the rows that are RUNNING. */
void results_drop_running(Results *results);
/* Removes the rows with this `how`. */
void results_drop_how(Results *results, const char *how);
int results_save(Results *results, double wall_s);
/* Adds the lines of a file: part, work, samples, precision, what, how, times, median, minimum,
 * maximum, repeats, bytes, error ("-": none), separated by tabs. */
int results_add_lines(Results *results, const char *path);
/* print.c: prints all results, and a summary of less than sixty lines. */
void results_print(const Results *results);
void results_print_summary(const Results *results);

/* predictions.c: returns the predicted ms, or 0 if there is no prediction: the one for an H100 if
 * `name` contains it, otherwise the one for an H200. */
double prediction_of(const Row *row, const char *name);

/* ---- the run ---- */

typedef struct {
    const char *device; /* "cuda", "simt" */
    bool tiny;          /* small sizes, which show that it works and measure nothing */
    double start_ms, seconds;
    Stream stream;
    DeviceInfo info;
    Results results;
    double copy;               /* bytes a ms, read plus written */
    double matrix[PRECISIONS]; /* operations a ms */
    double saved_ms;           /* when the file was last written */
    unsigned each;             /* seconds that a row may take; 0: as many as it does */
    int skipped, failed;
    const char *tune; /* a file for the fastest algorithm of each product, which plain steps then
                       * have, and are called "tuned"; NULL: none */
    bool lost;        /* the device has failed, and this process cannot continue */
} Bench;

int bench_save(Bench *bench);
/* Begins those of the rows that the results lack: they are RUNNING in the file from now on, so that
 * it names what ended this process or never ended, and in place of what was begun before. Returns
 * how many they are, or -1. */
int bench_begin(Bench *bench, const Row *rows, int count);
/* Adds a row. Writes the file unless it was written within the last seconds. */
int bench_add(Bench *bench, Row *row);
/* Prints why the rows that were begun could not be measured, and keeps this in the results, so that
 * they are not tried again. Returns -1 if the device is lost. */
int bench_failure(Bench *bench);

/* Returns true if there is time for more; otherwise prints that this work is skipped. */
bool bench_goes_on(Bench *bench, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- timer.c ----
 * One thing to time: run(run, context, set) puts it on run->stream, working on arrays number `set`
 * of `sets`, which together are larger than the device's cache. */

typedef struct {
    void (*run)(const Run *run, void *context, int set);
    void *context;
    int sets;
    Run how;
    double enough; /* ms; 0: as much as an op needs */
} Task;

/* Returns how many sets of this many bytes, which all are read or written, exceed the cache several
 * times. */
int timer_sets(const Bench *bench, double bytes);
/* Returns true if even the most sets are not twice as large as the cache. */
bool timer_stays_in_cache(const Bench *bench, double bytes);
/* Returns true if this many bytes are free now, with a reserve for libraries. */
bool timer_fits(size_t bytes);
/* Measures a row, prints it and adds it, unless the results already have it. All sets are recorded
 * as one graph, which is replayed; events time it, and the times are those of one set. Sets
 * repeats, ms, minimum and maximum of the row, and its floor from bytes and flops. */
int timer_row(Bench *bench, const Task *task, Row *row);

/* ---- fill.c: random numbers on the device ---- */

/* Fills the array with `count` numbers around zero of the precision's value type; another seed
 * gives other numbers. */
int fill_values(const Bench *bench, void *device, size_t count, Precision precision, int seed);
/* Fills the array with tokens distributed as in a text, where the r-th most frequent has a share of
 * about 1 / r. */
int fill_tokens(const Bench *bench, int *device, size_t count, int vocabulary);
/* Overwrites all parameters of the stage with numbers distributed as its initial ones, which take a
 * large model longer than its steps do. */
int fill_parameters(Stage *stage);
void fill_free(void);

/* ---- ceilings.c, ops.c, updates.c, steps.c: the parts ---- */

int measure_ceilings(Bench *bench);
int measure_ops(Bench *bench);
int measure_updates(Bench *bench);   /* loss, optimizer and conversions: called by measure_ops */
int measure_key_steps(Bench *bench); /* the three that matter most */
int measure_steps(Bench *bench);
/* Warms up, then runs one step of `model` between profiler_start and profiler_stop. */
int profile_step(Bench *bench, const char *model);
/* In tests/gpu and tests/simt: tell ncu --profile-from-start off what to look at. */
void profiler_start(void);
void profiler_stop(void);
