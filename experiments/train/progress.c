#include "progress.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const char *format_time(double seconds, char text[32]) {
    long s = (long)(seconds + 0.5);
    if (s >= 3600)
        snprintf(text, 32, "%ld h %02ld min", s / 3600, s / 60 % 60);
    else if (s >= 60)
        snprintf(text, 32, "%ld min %02ld s", s / 60, s % 60);
    else
        snprintf(text, 32, "%ld s", s);
    return text;
}

static const char *scaled(double value, double base, const char *const units[4], char text[32]) {
    int unit = 0;
    while (value >= base && unit < 3) {
        value /= base;
        unit++;
    }
    snprintf(text, 32, unit == 0 ? "%.0f%s" : "%.1f%s", value, units[unit]);
    return text;
}

const char *format_count(double count, char text[32]) {
    static const char *const units[] = {"", "k", "M", "G"};
    return scaled(count, 1000, units, text);
}

const char *format_bytes(double bytes, char text[32]) {
    static const char *const units[] = {" B", " KiB", " MiB", " GiB"};
    return scaled(bytes, 1024, units, text);
}

/* The loss of a training that diverges has up to 300 digits, or is a NaN, which x86 makes with a
 * sign. */
const char *format_loss(double loss, char text[32]) {
    snprintf(text, 32, loss < 1e6 ? "%.4f" : "%.2g", isnan(loss) ? NAN : loss);
    return text;
}

void progress_start(Progress *p, bool quiet, uint64_t total, double per_step, const char *unit) {
    memset(p, 0, sizeof *p);
    p->quiet = quiet;
    p->terminal = isatty(STDOUT_FILENO);
    p->total = total;
    p->per_step = per_step;
    p->unit = unit;
}

static void wipe_line(Progress *p) {
    if (p->line_open) printf("\r\033[K");
    p->line_open = false;
}

static void show(Progress *p, uint64_t step, int submodel, int submodels) {
    char part[48] = "", loss[32], rate[32], left[32];
    if (submodels > 1) snprintf(part, sizeof part, "  submodel %d of %d", submodel + 1, submodels);
    wipe_line(p);
    printf("step %llu/%llu  loss %s%s  %s %s/s  %s left%s", (unsigned long long)step,
           (unsigned long long)p->total, format_loss(p->loss, loss), part,
           format_count(p->rate * p->per_step, rate), p->unit,
           format_time((double)(p->total - step) / p->rate, left), p->terminal ? "" : "\n");
    p->line_open = p->terminal;
    fflush(stdout);
}

void progress_step(Progress *p, uint64_t step, double loss, double seconds, int submodel,
                   int submodels) {
    if (p->quiet || !(seconds > 0)) return;
    bool first = p->rate == 0;
    p->rate = first ? 1 / seconds : 1 / (0.95 / p->rate + 0.05 * seconds);
    p->loss = first ? loss : 0.95 * p->loss + 0.05 * loss;
    double now = clock_seconds(), every = p->terminal ? 0.2 : 10;
    if (!first && step < p->total && now - p->shown < every) return;
    p->shown = now;
    show(p, step, submodel, submodels);
}

void progress_note(Progress *p, const char *format, ...) {
    if (p->quiet || p->brief) return;
    wipe_line(p);
    va_list arguments;
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf("\n");
    fflush(stdout);
}

void progress_end(Progress *p) {
    if (p->brief) wipe_line(p);
    if (p->line_open) printf("\n");
    p->line_open = false;
    fflush(stdout);
}
