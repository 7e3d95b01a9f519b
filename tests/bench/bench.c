/* bench [ops|steps|tokens] [gpt2|resnet] [--quick] [--cpu-time]: prints how fast each op, each
 * training step and the tokenizer is, next to what this machine can do. By default it measures
 * everything, in about five minutes. */
#include "bench.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/base/error.h"

typedef struct {
    const char *family, *spec, *optimizer;
    int batch;
    bool ops;          /* its ops are listed one by one */
    int rounds, steps; /* of each part: the full update and the thirds, in turn */
} Job;

/* The last two are jobs of --quick only, which shows that everything works and measures little. */
static const Job jobs[] =
    {
        {"gpt2", "gpt2:context=64", "adamw", 4, true, 3, 2},
        {"resnet", "resnet20", "sgd", 128, true, 4, 5},
        {"resnet", "resnet14", "sgd", 128, false, 4, 5},
        {"resnet", "resnet8", "sgd", 128, false, 4, 5},
},
                 quick_jobs[] = {
                     {"gpt2", "gpt:layers=3,width=192,heads=3,context=64,vocabulary=2000", "adamw",
                      4, true, 2, 2},
                     {"resnet", "resnet:depth=8,width=8", "sgd", 16, true, 2, 2},
};
enum { JOBS = sizeof jobs / sizeof *jobs, QUICK_JOBS = sizeof quick_jobs / sizeof *quick_jobs };

typedef struct {
    bool ops, steps, tokens, gpt2, resnet, quick, cpu_time;
} Wanted;

static int usage(const char *wrong) {
    fprintf(stderr,
            "bench: unknown \"%s\"\n"
            "usage: bench [ops|steps|tokens] [gpt2|resnet] [--quick] [--cpu-time]\n"
            "       bench serve MODEL OPTIMIZER BATCH [--cpu-time]\n"
            "--cpu-time: one thread, processor time; for a machine that others use too\n",
            wrong);
    return 2;
}

static int parse(Wanted *wanted, int argc, char **argv) {
    *wanted = (Wanted){0};
    for (int i = 1; i < argc; i++) {
        bool *flag = !strcmp(argv[i], "ops")          ? &wanted->ops
                     : !strcmp(argv[i], "steps")      ? &wanted->steps
                     : !strcmp(argv[i], "tokens")     ? &wanted->tokens
                     : !strcmp(argv[i], "gpt2")       ? &wanted->gpt2
                     : !strcmp(argv[i], "resnet")     ? &wanted->resnet
                     : !strcmp(argv[i], "--quick")    ? &wanted->quick
                     : !strcmp(argv[i], "--cpu-time") ? &wanted->cpu_time
                                                      : NULL;
        if (!flag) return usage(argv[i]);
        *flag = true;
    }
    if (!wanted->ops && !wanted->steps && !wanted->tokens)
        wanted->ops = wanted->steps = wanted->tokens = true;
    if (!wanted->gpt2 && !wanted->resnet) wanted->gpt2 = wanted->resnet = true;
    return 0;
}

static int run(Wanted wanted) {
    if (wanted.cpu_time) bench_cpu_time();
    double min_ms = wanted.quick ? 10 : 150;
    Machine machine = bench_machine(2 * min_ms);
    printf("%d threads; %.0f GFLOP/s of multiply-adds, %.1f GB/s copying (read + written)\n",
           omp_get_max_threads(), machine.gflops, machine.gigabytes);
    const Job *job = wanted.quick ? quick_jobs : jobs;
    int count = wanted.quick ? QUICK_JOBS : JOBS;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < count; i++) {
            const Job *j = &job[i];
            if (!(strcmp(j->family, "gpt2") ? wanted.resnet : wanted.gpt2)) continue;
            int status = 0;
            if (pass == 0 && wanted.ops && j->ops)
                status = bench_ops(j->spec, j->batch, machine, min_ms);
            if (pass == 1 && wanted.steps)
                status = bench_steps(j->spec, j->optimizer, j->batch, machine, j->rounds, j->steps);
            if (status) return -1;
        }
    const char *data = getenv("BCD_DATA");
    return wanted.tokens ? bench_tokens(data ? data : "datasets", min_ms) : 0;
}

int main(int argc, char **argv) {
    Wanted wanted;
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc >= 5 && !strcmp(argv[1], "serve")) {
        if (argc > 5 && !strcmp(argv[5], "--cpu-time")) bench_cpu_time();
        if (!bench_serve(argv[2], argv[3], atoi(argv[4]))) return 0;
    } else {
        int status = parse(&wanted, argc, argv);
        if (status) return status;
        if (!run(wanted)) return 0;
    }
    fprintf(stderr, "bench: %s\n", error_message());
    return 1;
}
