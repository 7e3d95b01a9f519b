/* How long `bcd report` takes over a thousand trainings, in one file and in several. */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../experiments/commands.h"
#include "../../experiments/study/study.h"
#include "../../ref/base/error.h"
#include "bench.h"

enum { SEEDS = 5, PATH = 64, FILES_MOST = 8 };

/* Its loss falls to nothing, with noise; slower the more submodels it has. */
static int fill_curves(StudyRow *row, int steps) {
    enum { EVALUATIONS = 20 };
    row->curve = calloc((size_t)steps, sizeof *row->curve);
    row->evaluation = calloc(EVALUATIONS, sizeof *row->evaluation);
    if (!row->curve || !row->evaluation) return error_set("bench: out of memory");
    for (int s = 0; s < steps; s++) {
        double noise = 0.2 * sin(1.0 + 97.0 * s * (double)row->seed);
        row->curve[s] = (CurveRow){
            .step = (uint64_t)s + 1,
            .samples = (uint64_t)(row->batch * (s + 1)),
            .loss = (2.3 + noise) * exp(-4.0 * s / steps / (0.5 + 0.5 * (double)row->submodels)),
            .lr = row->settings.optimizer.lr,
            .submodel = s / 40 % (int)row->submodels,
            .seconds = 0.02 * (s + 1)};
    }
    for (int e = 0; e < EVALUATIONS; e++)
        row->evaluation[e] = (EvaluationRow){.step = (uint64_t)(steps * (e + 1) / EVALUATIONS),
                                             .loss = 2 - 0.05 * e,
                                             .accuracy = 0.3 + 0.02 * e,
                                             .perplexity = exp(2 - 0.05 * e),
                                             .seconds = 0.02 * steps * (e + 1) / EVALUATIONS};
    row->curve_rows = (size_t)steps;
    row->evaluation_rows = EVALUATIONS;
    return 0;
}

/* Row `number`: five seeds of full, BCD-1/2, 1/3 and 1/4, then the next training. */
static int add_training(Study *study, int number, int steps) {
    static const char *const models[] = {"resnet8", "resnet14", "resnet20", "resnet50"};
    static const char *const optimizers[] = {"sgd", "adam"};
    int method = number / SEEDS % 4, training = number / SEEDS / 4;
    StudyRow *row = study_add(study);
    snprintf(row->name, sizeof row->name, "row-%d", number);
    snprintf(row->model, sizeof row->model, "%s", models[training % 4]);
    snprintf(row->spec, sizeof row->spec, "%s", models[training % 4]);
    snprintf(row->optimizer, sizeof row->optimizer, "%s", optimizers[training / 4 % 2]);
    snprintf(row->data, sizeof row->data, "cifar10");
    snprintf(row->input, sizeof row->input, "images");
    snprintf(row->checksum, sizeof row->checksum, "%016d", training);
    snprintf(row->method, sizeof row->method, "%s", method ? "BCD" : "full");
    strcpy(row->provenance.device, "cpu");
    strcpy(row->provenance.precision, "fp32");
    snprintf(row->provenance.command, sizeof row->provenance.command, "bcd train --seed %d",
             number % SEEDS);
    options_defaults(&row->settings);
    row->settings.steps = (uint64_t)steps;
    row->settings.context = 1;
    row->settings.batch = 128;
    row->submodels = method + 1;
    row->parameters = 77850;
    row->batch = 128;
    row->steps = steps;
    row->seed = number % SEEDS + 1;
    row->settings.optimizer.lr = 0.1;
    row->settings.fraction = 1;
    row->epochs = steps * 128 / 50000.0;
    row->accuracy = 0.68;
    row->perplexity = exp(1.05);
    row->seconds = 0.02 * steps;
    row->rate = 6400;
    for (int role = 0; role <= MEM_ROLES; role++) row->peak[role] = 1e6 * (1 + role);
    row->closed_form = 9e5 * (1 + 2.0 / (double)row->submodels);
    return fill_curves(row, steps);
}

static int write_files(const char *directory, int files, int rows, int steps) {
    for (int f = 0; f < files; f++) {
        Study study = {0};
        char path[PATH];
        int failed = 0;
        for (int r = f * rows / files; r < (f + 1) * rows / files && !failed; r++)
            failed = add_training(&study, r, steps);
        snprintf(path, sizeof path, "%s/%d.h5", directory, f);
        failed = failed || study_write(&study, path);
        study_free(&study);
        if (failed) return -1;
    }
    return 0;
}

static double cpu_ms(const struct rusage *usage) {
    return 1e3 * (double)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) +
           1e-3 * (double)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec);
}

/* As the command does it, what it prints thrown away; *cpu: the processor time, Python's too. */
static int report_once(double *ms, double *cpu, const char *directory, int files) {
    CommandLine line;
    static char path[FILES_MOST][PATH];
    command_line_defaults(&line, COMMAND_REPORT);
    for (int f = 0; f < files; f++) {
        snprintf(path[f], PATH, "%s/%d.h5", directory, f);
        line.positional[line.positionals++] = path[f];
    }
    double begin = bench_now_ms();
    struct rusage usage;
    int status;
    pid_t child = fork();
    if (child == 0) {
        int null = open("/dev/null", O_WRONLY);
        status = null < 0 || dup2(null, 1) < 0 || command_report(&line);
        if (status) fprintf(stderr, "bench: %s\n", error_message());
        exit(status);
    }
    if (child < 0 || wait4(child, &status, 0, &usage) < 0 || status)
        return error_set("bench: the report failed");
    *ms = bench_now_ms() - begin;
    *cpu = cpu_ms(&usage);
    return 0;
}

static void remove_files(const char *directory, int files) {
    char path[PATH];
    for (int f = 0; f < files; f++) {
        snprintf(path, sizeof path, "%s/%d.h5", directory, f);
        remove(path);
    }
    snprintf(path, sizeof path, "%s/report.html", directory);
    remove(path);
    rmdir(directory);
}

int bench_report(int rows, int steps) {
    enum { ROUNDS = 5 };
    for (int files = 1; files <= FILES_MOST; files *= FILES_MOST) {
        char directory[] = "/tmp/bcd-bench-XXXXXX";
        Times times = {0}, cpu_times = {0};
        if (!mkdtemp(directory)) return error_set("bench: no directory can be made in /tmp");
        int failed = write_files(directory, files, rows, steps);
        for (int i = 0; i < ROUNDS && !failed; i++) {
            double ms = 0, cpu = 0;
            failed = report_once(&ms, &cpu, directory, files);
            if (failed) break;
            times_add(&times, ms);
            times_add(&cpu_times, cpu);
        }
        remove_files(directory, files);
        if (failed) return -1;
        printf(
            "report of %d trainings of %d steps in %d file%s: %.2f s (%.2f to %.2f), processor "
            "%.2f s\n",
            rows, steps, files, files > 1 ? "s" : "", 1e-3 * times_median(&times),
            1e-3 * times_least(&times), 1e-3 * times_most(&times), 1e-3 * times_median(&cpu_times));
    }
    return 0;
}
