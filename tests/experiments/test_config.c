/* Flags that are read from a file. */
#include <stdio.h>
#include <string.h>

#include "../../ref/base/error.h"
#include "../data/scratch.h"
#include "program.h"

/* Flags in a file count unless the command line has them, too. */
typedef struct {
    const char *text, *error;
} Row;

static const Row rows[] = {
    {"lr 0.5\n", NULL},
    {"# all of it\n\n  --batch = 7   # small\nkeep-state\n", NULL},
    {"steps 9\nlr=0.25\n", NULL},
    {"\xef\xbb\xbf"
     "batch 7\nkeep-state\n",
     NULL},
    {"batch 1\nbatch 2\n", ":2: --batch is given twice"},
    {"batch\n", ":1: --batch needs a value: --batch SAMPLES"},
    {"keep-state 1\n", ":1: --keep-state takes no value"},
    {"\nbatsh 3\n", ":2: bcd train has no flag --batsh; did you mean --batch?"},
    {"lr 0.25\nout \"runs/x\"\n", ":2: the value begins with a quote; values have none"},
    {"out = 'runs/x'\n", ":1: the value begins with a quote; values have none"},
    {"config other\n", ":1: --config cannot be given in a file of flags"},
};

static void reads_flags(const void *row) {
    const Row *w = row;
    CommandLine asked;
    const Options *o = &asked.options;
    char line[300];
    scratch_text("flags", w->text);
    snprintf(line, sizeof line, "train --lr 0.5 --epochs 2 --config %s", scratch_path("flags"));
    int failed = parse_line(&asked, line);
    CHECK(!failed == !w->error, "%s", error_message());
    if (w->error) CHECK(strstr(error_message(), w->error), "%s", error_message());
    if (w->error) return;
    CHECK(o->optimizer.lr == 0.5 && o->epochs == 2 && o->steps == 0, "the command line");
    CHECK(!strstr(w->text, "batch") || (o->batch == 7 && o->keep_state), "the file");
}

/* Within a word # begins no comment: the run would go to another directory. */
static void keeps_the_sign_of_comments_in_a_word(void) {
    char line[300];
    CommandLine asked;
    const Options *o = &asked.options;
    scratch_text("signs", "out runs/try#2\t# the second one\r\ndata my words#1.tokens\r\n");
    snprintf(line, sizeof line, "train --config %s", scratch_path("signs"));
    CHECK(parse_line(&asked, line) == 0, "%s", error_message());
    CHECK(!strcmp(o->out, "runs/try#2") && !strcmp(o->data, "my words#1.tokens"), "\"%s\", \"%s\"",
          o->out, o->data);
}

/* When a line is too long, its rest must not be read as another line. */
static void refuses_a_long_line(void) {
    char text[1300], line[300];
    CommandLine asked;
    const Options *o = &asked.options;
    memset(text, ' ', sizeof text);
    strcpy(text + sizeof text - 10, "batch 7\n");
    text[0] = '#';
    scratch_text("long", text);
    snprintf(line, sizeof line, "train --config %s", scratch_path("long"));
    CHECK(parse_line(&asked, line) == -1, "batch %d", o->batch);
    CHECK(strstr(error_message(), ":1: the line is longer than 1022 characters"), "%s",
          error_message());
}

/* What is behind a zero byte must not be left out in silence, also in a last line without an end.
 */
static void refuses_a_zero_byte(void) {
    static const char text[] = "batch 7\nlr 0.1\0 2\nsteps 3";
    char line[300];
    CommandLine asked;
    const Options *o = &asked.options;
    for (int i = 0; i < 2; i++) {
        scratch_file("zero", text, sizeof text - (i ? sizeof "\nsteps 3" : 1));
        snprintf(line, sizeof line, "train --config %s", scratch_path("zero"));
        CHECK(parse_line(&asked, line) == -1, "lr %g", o->optimizer.lr);
        CHECK(strstr(error_message(), ":2: the line has a zero byte; is the file text in UTF-8?"),
              "%s", error_message());
    }
}

void test_config(void) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        RUN_ROW(rows[i].error ? rows[i].error : "a file", reads_flags, &rows[i]);
    RUN(keeps_the_sign_of_comments_in_a_word);
    RUN(refuses_a_long_line);
    RUN(refuses_a_zero_byte);
}
