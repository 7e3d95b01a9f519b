#include "cli.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

const Printed *run(int status, const char *format, ...) {
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    const Printed *printed = program_run(line, 0);
    CHECK(printed->status == status, "bcd %s: status %d, expected %d: %s", line, printed->status,
          status, printed->error);
    return printed;
}

int run_python(const char *arguments, char text[4096]) {
    char command[4096];
    const char *interpreter = getenv("PYTHON");
    snprintf(command, sizeof command, "cd '%s' && '%s' %s 2>&1", scratch_path("."),
             interpreter ? interpreter : "/usr/bin/python3", arguments);
    FILE *out = popen(command, "r");
    if (!CHECK(out, "no shell")) return -1;
    text[fread(text, 1, 4095, out)] = 0;
    while (getc(out) != EOF) continue;
    return pclose(out);
}

void check_error(const Printed *printed, const char *expected) {
    size_t length = strlen(printed->error);
    CHECK(length > 0 && strchr(printed->error, '\n') == printed->error + length - 1,
          "not one line: \"%s\"", printed->error);
    CHECK(strstr(printed->error, expected), "says \"%s\", expected \"%s\"", printed->error,
          expected);
}

char *read_bytes(const char *name, size_t *count) {
    return scratch_read(scratch_path(name), count);
}

void copy_file(const char *to, const char *from) {
    size_t count;
    char *bytes = read_bytes(from, &count);
    scratch_file(to, bytes, count);
    free(bytes);
}

void check_same_checkpoint(const char *a, const char *b) {
    char name[128];
    size_t a_count, b_count;
    snprintf(name, sizeof name, "%s/checkpoint.h5", a);
    char *x = read_bytes(name, &a_count);
    snprintf(name, sizeof name, "%s/checkpoint.h5", b);
    char *y = read_bytes(name, &b_count);
    CHECK(a_count > 0 && a_count == b_count && memcmp(x, y, a_count) == 0,
          "checkpoints of %s and %s differ", a, b);
    free(x);
    free(y);
}

bool read_run(RunFile *file, const char *dir) {
    char name[128];
    snprintf(name, sizeof name, "%s/run.h5", dir);
    return CHECK(runfile_read(file, scratch_path(name)) == 0, "%s", error_message());
}

void make_words(void) {
    char text[6000];
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = i % 7 ? (char)('a' + i * i % 11 + i / 600) : ' ';
    scratch_file("words.txt", text, sizeof text);
    run(0, "tokenize words.txt --tokenizer bytes --out words.tokens");
}

/* CHECKs that no row is missing or doubled and that the numbers are the same; only the times may
 * differ. */
static void check_same_curves(const char *a, const char *b) {
    RunFile x, y;
    bool ok = read_run(&x, a);
    ok = read_run(&y, b) && ok;
    if (ok &&
        CHECK(x.curve_rows == y.curve_rows && x.evaluation_rows == y.evaluation_rows &&
                  x.switch_rows == y.switch_rows,
              "%zu and %zu steps, %zu and %zu evaluations, %zu and %zu switches", x.curve_rows,
              y.curve_rows, x.evaluation_rows, y.evaluation_rows, x.switch_rows, y.switch_rows)) {
        for (size_t i = 0; i < x.curve_rows; i++)
            CHECK(x.curve[i].step == i + 1 && y.curve[i].step == i + 1 &&
                      x.curve[i].loss == y.curve[i].loss &&
                      x.curve[i].submodel == y.curve[i].submodel &&
                      x.curve[i].samples == y.curve[i].samples && x.curve[i].lr == y.curve[i].lr &&
                      (i == 0 || y.curve[i].seconds >= y.curve[i - 1].seconds),
                  "row %zu of the curve", i);
        for (size_t i = 0; i < x.evaluation_rows; i++)
            CHECK(x.evaluations[i].step == y.evaluations[i].step &&
                      x.evaluations[i].loss == y.evaluations[i].loss &&
                      x.evaluations[i].perplexity == y.evaluations[i].perplexity &&
                      x.evaluations[i].accuracy == y.evaluations[i].accuracy,
                  "evaluation %zu", i);
        for (size_t i = 0; i < x.switch_rows; i++)
            CHECK(x.switches[i].step == y.switches[i].step &&
                      x.switches[i].submodel == y.switches[i].submodel &&
                      x.switches[i].phase == y.switches[i].phase &&
                      strcmp(x.switches[i].reason, y.switches[i].reason) == 0 &&
                      isnan(x.switches[i].window_loss) == isnan(y.switches[i].window_loss) &&
                      !(x.switches[i].window_loss > y.switches[i].window_loss) &&
                      !(x.switches[i].window_loss < y.switches[i].window_loss),
                  "switch %zu: step %d, %s, and step %d, %s", i, (int)x.switches[i].step,
                  x.switches[i].reason, (int)y.switches[i].step, y.switches[i].reason);
    }
    runfile_free(&x);
    runfile_free(&y);
}

void check_same_run(const char *a, const char *b) {
    check_same_checkpoint(a, b);
    check_same_curves(a, b);
}

ino_t inode_of(const char *name) {
    struct stat status;
    return stat(scratch_path(name), &status) == 0 ? status.st_ino : 0;
}

bool wait_for_saves(pid_t process, const char *name, ino_t last, int saves) {
    bool runs = true;
    while (saves && runs) {
        sleep_ms(1);
        runs = program_runs(process);
        ino_t now = inode_of(name);
        saves -= now != last;
        last = now;
    }
    return CHECK(!saves, "%s: it ended %d saves too early", name, saves);
}

int steps_beyond(const char *dir) {
    RunFile file;
    int steps = 0;
    if (read_run(&file, dir)) steps = (int)file.curve_rows + 20;
    runfile_free(&file);
    return steps;
}

bool has_device(const char *name) {
    static char listing[1 << 16];
    char line[16];
    if (!*listing) snprintf(listing, sizeof listing, "%s", run(0, "info --model resnet8")->out);
    snprintf(line, sizeof line, "\n%-10s ", name);
    const char *listed = strstr(listing, line);
    return CHECK(listed, "not listed") && strncmp(listed + strlen(line), "not available: ", 15);
}
