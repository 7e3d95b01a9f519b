#include "progress.h"

#include <stdarg.h>
#include <stdio.h>

#include "../base/text.h"

static void wipe_line(Progress *p) {
    if (p->line_open) printf("\r\033[K");
    p->line_open = false;
}

static void rewrite_line(Progress *p, Text line) {
    wipe_line(p);
    printf("%s%s", line.text, p->terminal ? "" : "\n");
    p->line_open = p->terminal;
    fflush(stdout);
}

static void show(Progress *p, uint64_t step, int submodel, int submodels) {
    Text part = {""};
    if (submodels > 1) part = text_of("  submodel %d of %d", submodel + 1, submodels);
    rewrite_line(p, text_of("step %llu/%llu  loss %s%s  %s %s/s  %s left", (unsigned long long)step,
                            (unsigned long long)p->total, format_loss(p->loss / p->weight).text,
                            part.text, format_count(p->rate * p->per_step).text, p->unit,
                            format_time((double)(p->total - step) / p->rate).text));
}

void progress_step(Progress *p, uint64_t step, double loss, double seconds, int submodel,
                   int submodels) {
    if (p->quiet || !(seconds > 0)) return;
    bool first = p->rate == 0;
    p->rate = first ? 1 / seconds : 1 / (0.95 / p->rate + 0.05 * seconds);
    p->loss = 0.95 * p->loss + 0.05 * loss;
    p->weight = 0.95 * p->weight + 0.05;
    double now = clock_seconds(), every = p->terminal ? 0.2 : 10;
    if (!first && step < p->total && now - p->shown < every) return;
    p->shown = now;
    show(p, step, submodel, submodels);
}

void progress_infer(Progress *p, int done, int samples, double seconds) {
    const double now = clock_seconds(), every = p->terminal ? 0.2 : 10;
    if (p->quiet || !(seconds > 0) || now - p->shown < every) return;
    p->shown = now;
    rewrite_line(p, text_of("pre-inference %d/%d samples  %s samples/s  %s left", done, samples,
                            format_count(done / seconds).text,
                            format_time((samples - done) / (done / seconds)).text));
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
