/* bench-cuda [ceilings|key|ops|steps|table|summary]... [OPTION]...: measures how fast the device
 * is, next to its peak rates.  By default ceilings, steps, ops and table; `key` measures the three
 * steps that matter most, `table` and `summary` print what is in DIR.
 *
 *   --out DIR     results go to DIR/results.h5; an interrupted run goes on from it  (default: .)
 *   --again       measures anew what is there
 *   --seconds S   starts no more work after so long                               (default: 480)
 *   --tiny        small sizes, which measure nothing
 *   --each S      ends the process, by SIGALRM, when a row takes more than S seconds
 *   --died TEXT   keeps TEXT as the failure of what was measured when the last process ended
 *   --add FILE    adds the lines of FILE (results.c) to the results
 *   --state TEXT  adds this to what is kept of the GPU's state: clocks, temperature, power
 *   --profile gpt2|resnet20
 *                 runs one step of it between cudaProfilerStart and cudaProfilerStop, for
 *                 ncu --profile-from-start off
 *   --tune-matmul FILE
 *                 with key: measures all algorithms of each matrix product that occurs, writes the
 *                 fastest to FILE (cuda/matmul.h), and adds the steps with these to the results
 *
 * A failure is printed and kept with the results, and the rest goes on.  The exit status is 1 if
 * something failed, 70 if the device does not work any more and a new process may go on with what
 * comes after the failure, and 75 if only time ran out.  Where a signal ended the process, a new
 * one may go on after --died, which fails if nothing was being measured. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../../cuda/matmul.h"
#include "../../../ref/base/error.h"
#include "../../bench/bench.h"
#include "bench.h"

enum { LOST = 70, TRY_AGAIN = 75, ADDED = 8 };

typedef struct {
    bool ceilings, key, ops, steps, table, summary, again;
    const char *out, *add[ADDED + 1], *state, *died, *profile;
    int added;
} Wanted;

bool bench_goes_on(Bench *b, const char *format, ...) {
    if (bench_now_ms() - b->start_ms < 1e3 * b->seconds) return true;
    va_list arguments;
    va_start(arguments, format);
    printf("skipped, no time left: ");
    vprintf(format, arguments);
    printf("\n");
    va_end(arguments);
    b->skipped++;
    return false;
}

static int usage(const char *wrong) {
    fprintf(stderr,
            "bench: unknown \"%s\"\n"
            "usage: bench-%s [ceilings|key|ops|steps|table|summary]... [--out DIR] [--again] "
            "[--seconds S] [--each S] [--tiny] [--died TEXT] [--add FILE]... [--state TEXT] "
            "[--profile gpt2|resnet20] [--tune-matmul FILE]\n",
            wrong, BENCH_DEVICE);
    return 2;
}

/* Returns where the value of an option is stored; NULL if the option has none. */
static const char **value_of(Wanted *wanted, Bench *b, const char **seconds, const char **each,
                             const char *option) {
    if (!strcmp(option, "--out")) return &wanted->out;
    if (!strcmp(option, "--state")) return &wanted->state;
    if (!strcmp(option, "--died")) return &wanted->died;
    if (!strcmp(option, "--profile")) return &wanted->profile;
    if (!strcmp(option, "--tune-matmul")) return &b->tune;
    if (!strcmp(option, "--seconds")) return seconds;
    if (!strcmp(option, "--each")) return each;
    if (!strcmp(option, "--add") && wanted->added < ADDED) return &wanted->add[wanted->added++];
    return NULL;
}

static int parse(Wanted *wanted, Bench *b, int argc, char **argv) {
    const char *seconds = NULL, *each = NULL;
    *wanted = (Wanted){.out = "."};
    for (int i = 1; i < argc; i++) {
        bool *flag = !strcmp(argv[i], "ceilings")  ? &wanted->ceilings
                     : !strcmp(argv[i], "key")     ? &wanted->key
                     : !strcmp(argv[i], "ops")     ? &wanted->ops
                     : !strcmp(argv[i], "steps")   ? &wanted->steps
                     : !strcmp(argv[i], "table")   ? &wanted->table
                     : !strcmp(argv[i], "summary") ? &wanted->summary
                     : !strcmp(argv[i], "--again") ? &wanted->again
                     : !strcmp(argv[i], "--tiny")  ? &b->tiny
                                                   : NULL;
        const char **value =
            flag || i + 1 == argc ? NULL : value_of(wanted, b, &seconds, &each, argv[i]);
        if (flag)
            *flag = true;
        else if (value)
            *value = argv[++i];
        else
            return usage(argv[i]);
    }
    if (seconds) b->seconds = atof(seconds);
    if (each) b->each = (unsigned)atoi(each);
    if (!wanted->ceilings && !wanted->key && !wanted->ops && !wanted->steps && !wanted->table &&
        !wanted->summary && !wanted->added && !wanted->state && !wanted->died && !wanted->profile)
        wanted->ceilings = wanted->ops = wanted->steps = wanted->table = true;
    if (wanted->key || wanted->ops || wanted->steps) wanted->ceilings = true;
    return 0;
}

static int open_device(Bench *b) {
    if (device_open() || device_info(&b->info)) return -1;
    b->stream = stream_create();
    return b->stream ? 0 : -1;
}

int bench_save(Bench *b) {
    b->saved_ms = bench_now_ms();
    return results_save(&b->results, 1e-3 * (b->saved_ms - b->start_ms));
}

int bench_begin(Bench *b, const Row *rows, int count) {
    int begun = 0;
    results_drop_running(&b->results);
    for (int i = 0; i < count; i++) {
        Row row = rows[i];
        if (results_find(&b->results, &row)) continue;
        strcpy(row.failed, RUNNING);
        if (results_add(&b->results, &row)) return -1;
        begun++;
    }
    if (begun && bench_save(b)) return -1;
    alarm(begun ? b->each : 0);
    return begun;
}

int bench_add(Bench *b, Row *row) {
    const double often = 5000;
    alarm(0); /* what comes until the next row begins is the host's work */
    row->predicted = b->tiny ? 0 : prediction_of(row, b->info.name);
    if (results_add(&b->results, row)) return -1;
    return bench_now_ms() - b->saved_ms > often ? bench_save(b) : 0;
}

/* An error of the device stays: every later call would report it again. */
static bool device_works(const Bench *b) {
    void *memory = device_alloc(1);
    if (memory) fill_zero(b->stream, memory, 1);
    bool works = memory && !device_wait(b->stream);
    device_free(memory);
    return works && !device_wait(b->stream);
}

/* Makes the rows that run failures, and returns how many they are. */
static int fail_running(Results *r, const char *why) {
    int count = 0;
    for (size_t i = 0; i < r->rows; i++) {
        Row *row = &r->row[i];
        if (strcmp(row->failed, RUNNING)) continue;
        snprintf(row->failed, sizeof row->failed, "%.127s", why);
        printf("FAILED: %s %s, %s, %s, %s, %d samples, version %d: %s\n", row->part, row->work,
               row->what, row->how, row->precision, row->n, row->version, why);
        count++;
    }
    return count;
}

int bench_failure(Bench *b) {
    if (b->lost) return -1;
    alarm(0);
    int rows = fail_running(&b->results, error_message());
    if (!rows) printf("FAILED: %s\n", error_message());
    b->failed += rows ? rows : 1;
    if (bench_save(b)) return -1;
    /* Where no row failed, a new process would not get further. */
    b->lost = rows && !device_works(b);
    return b->lost ? -1 : 0;
}

static int open_results(Bench *b, const Wanted *wanted) {
    char path[H5_PATH];
    Provenance p;
    if (mkdir(wanted->out, 0777) && errno != EEXIST)
        return error_set("%s: %s", wanted->out, strerror(errno));
    provenance_fill(&p, 1);
    if (b->stream) provenance_set_device(&p, b->device, b->tiny ? "tiny" : "each", &b->info);
    snprintf(path, sizeof path, "%s/results.h5", wanted->out);
    if (results_open(&b->results, path, &p, wanted->again)) return -1;
    for (int i = 0; i < wanted->added; i++)
        if (results_add_lines(&b->results, wanted->add[i])) return -1;
    if (wanted->died && !fail_running(&b->results, wanted->died))
        return error_set("%s: nothing was being measured", path);
    size_t length = strlen(b->results.state);
    if (wanted->state)
        snprintf(b->results.state + length, sizeof b->results.state - length, "%s%s",
                 length ? "; " : "", wanted->state);
    return wanted->added || wanted->state || wanted->died ? bench_save(b) : 0;
}

/* Runs a part if it is wanted. The results are saved after each part, whether it failed or not. */
static int part(Bench *b, bool wanted, int (*run)(Bench *)) {
    if (!wanted) return 0;
    int status = run(b), saved = 0;
    char message[512];
    snprintf(message, sizeof message, "%s", error_message());
    (void)bench_begin(b, NULL, 0); /* not even what there was no time for, once it was begun */
    saved = bench_save(b);
    if (status) return error_set("%s", message);
    return saved;
}

static int run(Bench *b, Wanted wanted) {
    bool measures = wanted.ceilings || wanted.profile;
    if ((measures && open_device(b)) || open_results(b, &wanted)) return -1;
    if (wanted.profile) return profile_step(b, wanted.profile);
    if (wanted.ceilings)
        printf("%s, compute capability %d.%d, %d multiprocessors, %.0f MB of cache, %.1f GB\n",
               b->info.name, b->info.major, b->info.minor, b->info.multiprocessors,
               (double)b->info.cache_bytes * 1e-6, (double)b->info.memory_bytes * 1e-9);
    int status = part(b, wanted.ceilings, measure_ceilings);
    if (b->tune) {
        library_matmul_tune(true);
        results_drop_how(&b->results, TUNED);
    }
    if (!status) status = part(b, wanted.key, measure_key_steps);
    if (!status) status = part(b, wanted.steps, measure_steps);
    if (!status) status = part(b, wanted.ops, measure_ops);
    if (wanted.table) results_print(&b->results);
    if (wanted.summary) results_print_summary(&b->results);
    if (b->tiny && measures) printf("\ntiny sizes: the times mean nothing\n");
    if (!status && b->skipped) printf("%d pieces skipped for lack of time\n", b->skipped);
    return status;
}

int main(int argc, char **argv) {
    Bench b = {.device = BENCH_DEVICE, .seconds = 480, .start_ms = bench_now_ms()};
    Wanted wanted;
    setvbuf(stdout, NULL, _IOLBF, 0);
    provenance_remember(argc, argv);
    int status = parse(&wanted, &b, argc, argv);
    if (status) return status;
    status = run(&b, wanted);
    if (status) fprintf(stderr, "bench: %s\n", error_message());
    fill_free();
    if (b.stream) stream_free(b.stream);
    results_free(&b.results);
    if (b.lost) return LOST;
    return status || b.failed ? 1 : b.skipped ? TRY_AGAIN : 0;
}
