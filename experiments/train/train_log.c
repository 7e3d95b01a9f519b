/* Logs of a training for other tools: log.csv and --log-samples. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../ref/base/error.h"
#include "../base/alloc.h"
#include "train_parts.h"

static const char log_head[] = "step,loss,rate,submodel,validation_loss,accuracy\n";

/* Returns the number with a NaN that has no sign. */
static double plain(double number) { return isnan(number) ? NAN : number; }

/* Makes what was written visible.  A log that cannot be written does not stop the training. */
static void flush_log(Training *t) {
    if (fflush(t->log) == 0) return;
    fprintf(stderr, "bcd: log.csv: cannot write: %s; the training goes on without it\n",
            strerror(errno));
    fclose(t->log);
    t->log = NULL;
}

void train_log_curve(Training *t, const CurveRow *row) {
    if (!t->log) return;
    fprintf(t->log, "%llu,%.9g,%.9g,%d,,\n", (unsigned long long)row->step, plain(row->loss),
            row->lr, row->submodel + 1);
    flush_log(t);
}

void train_log_evaluation(Training *t, const EvaluationRow *row) {
    if (!t->log) return;
    fprintf(t->log, "%llu,,,,%.9g,%.9g\n", (unsigned long long)row->step, plain(row->loss),
            row->accuracy);
    flush_log(t);
}

/* Writes the rows of earlier sessions, from run.h5. */
static void write_past(Training *t) {
    const RunFile *run = &t->run;
    size_t e = 0;
    fprintf(t->log, "%s", log_head);
    for (size_t i = 0; i < run->curve_rows; i++) {
        while (e < run->evaluation_rows && run->evaluations[e].step < run->curve[i].step)
            train_log_evaluation(t, &run->evaluations[e++]);
        train_log_curve(t, &run->curve[i]);
    }
    while (e < run->evaluation_rows) train_log_evaluation(t, &run->evaluations[e++]);
}

static int refuse_samples(const char *path) {
    return error_set("--log-samples %s: cannot write: %s", path, strerror(errno));
}

/* Returns the samples of an update as a line of the log has them behind its number: " 3 0 7". The
 * caller frees it. */
static char *samples_of(Training *t, uint64_t update, uint64_t phase) {
    enum { DIGITS = 12 };
    const BcdSettings *bcd = &t->setup.bcd;
    const size_t batch = (size_t)bcd->batch;
    int *ids = xmalloc(batch * sizeof *ids);
    char *text = xmalloc(batch * DIGITS + 1), *end = text;
    sampler_draw(&t->sampler, bcd->fraction < 1 ? phase : 0);
    sampler_ids(&t->sampler, ids, (update - 1) * batch, bcd->batch);
    for (size_t i = 0; i < batch; i++) end += sprintf(end, " %d", ids[i]);
    free(ids);
    return text;
}

/* Returns the phase of an update that is done, as run.h5 says. */
static uint64_t phase_of(const RunFile *run, uint64_t update) {
    size_t row = run->switch_rows;
    while (row && run->switches[row - 1].step >= update) row--;
    return row ? run->switches[row - 1].phase : 0;
}

/* Returns true unless the curves were lost, and with them when the first phases began. */
static bool knows_phases(const RunFile *run) {
    return run->switch_rows && run->switches[0].step == 0;
}

/* Reads to the end of a line of numbers, and clears *same unless it is `want`.  Returns its last
 * character, EOF where the line has no end, or what is no part of a number. */
static int end_line(FILE *file, const char *want, bool *same) {
    int c = getc(file);
    if (c != ' ') return c == EOF ? EOF : 0;
    for (; c == ' ' || (c >= '0' && c <= '9'); c = getc(file)) {
        *same = *same && c == *want;
        want += *want != 0;
    }
    *same = *same && !*want;
    return c;
}

/* Goes behind the line of the last update that is done.  A session that was killed may have written
 * lines for later updates, which are done again; one without this file has left a gap.  A file is
 * cut only if all of it is such a log: lines of numbers that begin with one update after the other,
 * and up to the last that is done are of the samples of this training. */
static int go_behind(Training *t, const char *path) {
    const uint64_t step = t->state.step;
    unsigned long long number, before = 0, last = 0;
    bool same = true;
    long end = 0;
    int found, c = '\n';
    while (c == '\n' && (found = fscanf(t->samples, "%llu", &number)) == 1) {
        const bool follows = before ? number == before + 1 : number > 0 && number <= step + 1;
        const bool is_done = follows && number <= step;
        char *want = is_done ? samples_of(t, number, phase_of(&t->run, number)) : NULL;
        bool as_here = true;
        c = end_line(t->samples, want ? want : "", &as_here);
        free(want);
        if ((c != EOF && c != '\n') || !follows) found = c = 0;
        before = number;
        if (c != '\n' || !is_done) continue;
        same = same && as_here;
        end = ftell(t->samples);
        last = number;
    }
    if (!found) return error_set("--log-samples %s: it is there, and has something else", path);
    if (last && last < step)
        return error_set(
            "--log-samples %s: it ends with update %llu, and %llu are done; give another name",
            path, last, (unsigned long long)step);
    if (!same)
        return error_set("--log-samples %s: it is of another training; give another name", path);
    return fseek(t->samples, end, SEEK_SET) || ftruncate(fileno(t->samples), end)
               ? refuse_samples(path)
               : 0;
}

/* Opens the file of --log-samples, behind what it holds already.  Only a resume goes on with one
 * that holds something. */
static int open_samples(Training *t, const char *path) {
    struct stat status;
    const bool old = stat(path, &status) == 0 && S_ISREG(status.st_mode);
    if (old && status.st_size && !t->resumed)
        return error_set(
            "--log-samples %s: it is there, and is not empty; give another name, or remove it",
            path);
    if (old && t->setup.bcd.fraction < 1 && t->state.step && !knows_phases(&t->run))
        return error_set(
            "--log-samples %s: run.h5 was lost, and with it which phases had which samples; give "
            "another name",
            path);
    t->samples = fopen(path, old ? "r+" : "a");
    if (!t->samples) return refuse_samples(path);
    return old ? go_behind(t, path) : 0;
}

/* Where run.h5 is lost, only log.csv still has the curves: it gets another name. */
static int keep_log(const Training *t) {
    const unsigned long long step = t->state.step;
    const Text log = rundir_path(t->dir, "log.csv"), name = text_of("log-until-%llu.csv", step);
    const Text kept = rundir_path(t->dir, name.text);
    /* One that is there has more: the resume that made it came to nothing. */
    if (access(kept.text, F_OK) && rename(log.text, kept.text) && errno != ENOENT)
        return error_set("%s: cannot rename: %s", log.text, strerror(errno));
    if (!t->setup.options.quiet)
        printf("run.h5 is missing: the curves begin after update %llu; the log until then is %s\n",
               step, name.text);
    return 0;
}

/* Refuses a log.csv that a new training would overwrite: any but one that ended before its first
 * update. */
static int check_no_log(const char *path) {
    char line[256];
    FILE *file = fopen(path, "r");
    bool other = false;
    for (int n = 0; file && !other && fgets(line, sizeof line, file); n++)
        other = strncmp(line, n ? "0," : log_head, n ? 2 : strlen(log_head)) != 0;
    if (file) fclose(file);
    return other ? error_set("%s: is there already, and no run.h5; choose another --out", path) : 0;
}

int train_log_open(Training *t) {
    const Setup *s = &t->setup;
    const char *samples = s->options.log_samples;
    if (*samples && (sampler_init(&t->sampler, s->bcd.seed, s->train->samples, s->bcd.fraction) ||
                     open_samples(t, samples)))
        return -1;
    if (t->lost_curves && keep_log(t)) return -1;
    const Text path = rundir_path(t->dir, "log.csv");
    if (!t->resumed && check_no_log(path.text)) return -1;
    t->log = fopen(path.text, "w");
    if (!t->log) return error_set("%s: cannot write: %s", path.text, strerror(errno));
    write_past(t);
    return 0;
}

int train_log_samples(Training *t, const BcdState *state) {
    if (!t->samples) return 0;
    char *ids = samples_of(t, state->step, bcd_phase_done(state));
    fprintf(t->samples, "%llu%s\n", (unsigned long long)state->step, ids);
    free(ids);
    if (fflush(t->samples) == 0 && !ferror(t->samples)) return 0;
    return refuse_samples(t->setup.options.log_samples);
}

void train_log_close(Training *t) {
    if (t->log) fclose(t->log);
    if (t->samples) fclose(t->samples);
    sampler_free(&t->sampler);
}
