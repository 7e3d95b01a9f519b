/* bench-cuda [ceilings|ops|steps|table]... [OPTION]...: how fast the device is, beside what it can
 * do.  Everything by default; `table` prints what is in DIR.
 *
 *   --out DIR     results go to DIR/bench.h5; an interrupted run goes on from it  (default: .)
 *   --again       measure anew what is there
 *   --seconds S   start no more work after so long                                (default: 480)
 *   --tiny        sizes that show that all works, and measure nothing
 *
 * Exit status 75 when the time was too short for all. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../../../ref/error.h"
#include "../../bench/bench.h"
#include "bench.h"

enum { TRY_AGAIN = 75 };

typedef struct {
    bool ceilings, ops, steps, table, again;
    const char *out;
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
            "usage: bench-%s [ceilings|ops|steps|table]... [--out DIR] [--again] [--seconds S] "
            "[--tiny]\n",
            wrong, BENCH_DEVICE);
    return 2;
}

static int parse(Wanted *wanted, Bench *b, int argc, char **argv) {
    *wanted = (Wanted){.out = "."};
    for (int i = 1; i < argc; i++) {
        bool *flag = !strcmp(argv[i], "ceilings")  ? &wanted->ceilings
                     : !strcmp(argv[i], "ops")     ? &wanted->ops
                     : !strcmp(argv[i], "steps")   ? &wanted->steps
                     : !strcmp(argv[i], "table")   ? &wanted->table
                     : !strcmp(argv[i], "--again") ? &wanted->again
                     : !strcmp(argv[i], "--tiny")  ? &b->tiny
                                                   : NULL;
        if (flag)
            *flag = true;
        else if (i + 1 < argc && !strcmp(argv[i], "--out"))
            wanted->out = argv[++i];
        else if (i + 1 < argc && !strcmp(argv[i], "--seconds"))
            b->seconds = atof(argv[++i]);
        else
            return usage(argv[i]);
    }
    if (!wanted->ceilings && !wanted->ops && !wanted->steps && !wanted->table)
        wanted->ceilings = wanted->ops = wanted->steps = wanted->table = true;
    if (wanted->ops || wanted->steps) wanted->ceilings = true;
    return 0;
}

static int open_device(Bench *b) {
    if (device_open() || device_info(&b->info)) return -1;
    b->stream = stream_create();
    return b->stream ? 0 : -1;
}

static int open_results(Bench *b, const Wanted *wanted) {
    char path[H5_PATH];
    Provenance p;
    if (mkdir(wanted->out, 0777) && errno != EEXIST)
        return error_set("%s: %s", wanted->out, strerror(errno));
    provenance_fill(&p, 1);
    provenance_set_device(&p, b->device, b->tiny ? "tiny" : "each", &b->info);
    snprintf(path, sizeof path, "%s/bench.h5", wanted->out);
    if (results_open(&b->results, path, &p, wanted->again)) return -1;
    snprintf(path, sizeof path, "%s/peers.tsv", wanted->out);
    return results_add_peers(&b->results, path);
}

/* Saved after each part, whatever became of it. */
static int part(Bench *b, bool wanted, int (*run)(Bench *)) {
    if (!wanted) return 0;
    int status = run(b), saved = 0;
    char message[512];
    snprintf(message, sizeof message, "%s", error_message());
    saved = results_save(&b->results, 1e-3 * (bench_now_ms() - b->start_ms));
    if (status) return error_set("%s", message);
    return saved;
}

static int run(Bench *b, Wanted wanted) {
    if (open_device(b) || open_results(b, &wanted)) return -1;
    printf("%s, compute capability %d.%d, %d multiprocessors, %.0f MB of cache, %.1f GB\n",
           b->info.name, b->info.major, b->info.minor, b->info.multiprocessors,
           (double)b->info.cache_bytes * 1e-6, (double)b->info.memory_bytes * 1e-9);
    int status = part(b, wanted.ceilings, measure_ceilings);
    if (!status) status = part(b, wanted.steps, measure_steps);
    if (!status) status = part(b, wanted.ops, measure_ops);
    if (!status) status = results_save(&b->results, 1e-3 * (bench_now_ms() - b->start_ms));
    if (wanted.table) results_print(&b->results);
    if (b->tiny) printf("\ntiny sizes: the times mean nothing\n");
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
    return status ? 1 : b.skipped ? TRY_AGAIN : 0;
}
