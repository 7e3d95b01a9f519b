/* The file and the figure that bcd trace writes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/base/error.h"
#include "cli.h"
#include "figures.h"
#include "tables_sample.h"

#define LINE "trace --model resnet:depth=8,width=2 --data synthetic --limit 32 --batch 4 "
#define PARTS LINE "--partition stem,block1/block2/block3,head "

/* Checks the part of each block, and that what the block stores follows from the part. */
static void parts_hold_what_they_should(void) {
    static const char *const parts[3][5] = {{"active", "active", "frozen", "frozen", "frozen"},
                                            {"prefix", "prefix", "active", "frozen", "frozen"},
                                            {"prefix", "prefix", "prefix", "active", "active"}};
    Tables tables = {0};
    run(0, PARTS "--out trace.h5");
    if (!read_tables(&tables, "trace.h5")) return;
    static const char *const ratios[] = {"step_ratio", "operations_ratio", "memory_ratio"};
    for (int i = 0; i < 3; i++)
        CHECK(table_find(tables_find(&tables, "steps"), "full update", ratios[i])->value == 1, "%s",
              ratios[i]);
    const char *note = tables.table[0]->note[0];
    CHECK(strstr(note, "the update takes 0.") && !strstr(note, " 0.000 ms"), "%s", note);
    for (int m = 0; m < 3; m++) {
        char name[16];
        snprintf(name, sizeof name, "submodel_%d", m + 1);
        const Table *table = tables_find(&tables, name);
        if (!CHECK(table && table->rows == 5, "%s", name)) break;
        for (int b = 0; b < 5; b++) {
            const char *block = table->label[b];
            const Cell *part = table_find(table, block, "part");
            bool active = strcmp(parts[m][b], "active") == 0;
            CHECK(part && strcmp(part->text, parts[m][b]) == 0, "%s, %s: %s", name, block,
                  part ? part->text : "");
            CHECK((table_find(table, block, "gradients")->value > 0) == active &&
                      (table_find(table, block, "state")->value > 0) == active,
                  "%s, %s: gradients or state", name, block);
        }
    }
    tables_free(&tables);
}

/* The figure of a cycle: every block trains once, so there are as many bars of gradients and of
 * state as blocks, and three times as many of parameters.  The legend has one more of each. */
static void draws_the_cycle(void) {
    enum { BLOCKS = 5 };
    static const struct {
        const char *bar;
        size_t count;
    } bars[] = {
        {"fill: #0072b2", 3 * BLOCKS}, {"fill: #e69f00", BLOCKS}, {"fill: #009e73", BLOCKS}};
    size_t count;
    if (!has_figures()) SKIP("no Python with h5py, matplotlib and jinja2");
    run(0, PARTS "--out trace.h5");
    run(0, "report trace.h5 --out page.html --figures drawn");
    char *svg = read_bytes("drawn/cycle.svg", &count);
    for (size_t i = 0; i < sizeof bars / sizeof *bars; i++)
        CHECK(count_of(svg, bars[i].bar) == bars[i].count + 1, "%zu of %s",
              count_of(svg, bars[i].bar), bars[i].bar);
    CHECK(count_of(svg, "is active") == 3 && count_of(svg, ">prefix<") == 5 &&
              count_of(svg, ">block3<") == 3 && !strstr(svg, "nan"),
          "words");
    CHECK(strncmp(svg, "<?xml", 5) == 0 && strstr(svg, "fill=\"#fff\""), "not a file of its own");
    free(svg);
    char *page = read_bytes("page.html", &count);
    CHECK(count_of(page, "<h2>One BCD cycle</h2>") == 1 && count_of(page, "<svg") == 1, "page");
    free(page);
}

static void what_is_printed(void) {
    const Printed *printed =
        run(0, "trace --model resnet:depth=8,width=4 --limit 32 --batch 8 --threads 1");
    static const char *const expected[] = {
        "stem",   "block1", "block2",     "block3",      "head",   "active",
        "frozen", "prefix", "submodel 3", "full update", "weight", "mean, most memory"};
    for (size_t e = 0; e < sizeof expected / sizeof *expected; e++)
        CHECK(strstr(printed->out, expected[e]), "\"%s\" is missing in\n%s", expected[e],
              printed->out);
    for (const char *line = printed->out; *line; line += strcspn(line, "\n") + 1)
        CHECK(strcspn(line, "\n") <= 100, "%zu columns: %.120s", strcspn(line, "\n"), line);
    check_error(run(1, "trace --model resnet8 --limit 32 --batch 8 --active 4"), "--active 4");
    check_error(run(1,
                    "trace --model gpt:layers=130,width=2,heads=1,context=4 --data text "
                    "--batch 2 --submodels 130"),
                "at most 126 submodels");
    check_error(run(1,
                    "trace --model gpt:layers=130,width=2,heads=1,context=4 --data text "
                    "--batch 2 --submodels 126 --pipeline local:1"),
                "at most 125 submodels");
}

/* The cells that follow from the shapes alone, as they are printed. */
static void closed_form_as_text(void) {
    static const char *const rows[] = {
        "full update            0.01 c     0.01 c  0.01 c       0.31 c  0.",
        "submodel 2             0.01 c     0.00 c  0.00 c       0.13 c  0.",
        "submodel 3             0.01 c     0.00 c  0.00 c       0.06 c  0.",
        "mean, most memory      0.01 c     0.00 c  0.00 c       0.14 c  0."};
    static const char *const operations[] = {"1.00      1.00 c\n", "      0.83 c\n",
                                             "      0.58 c\n", "      0.50 c\n", "      0.64 c\n"};
    const char *text = run(0, PARTS "--threads 1")->out;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        CHECK(strstr(text, rows[i]), "\"%s\" is missing in\n%s", rows[i], text);
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
        CHECK(strstr(text, operations[i]), "\"%s\" is missing in\n%s", operations[i], text);
}

/* A pipeline of one rank takes as long as the stage whose block times it is simulated from. */
static void simulates_a_pipeline(void) {
    Tables tables = {0};
    run(0, LINE "--pipeline local:1 --accumulate 2 --threads 1 --out one.h5");
    if (!read_tables(&tables, "one.h5")) return;
    const Table *pipeline = tables_find(&tables, "pipeline"),
                *steps = tables_find(&tables, "steps");
    double sum = 0;
    CHECK(pipeline && pipeline->rows == 4, "rows");
    for (int k = 0; k < 3 && pipeline; k++) {
        const double *whole = &table_find(steps, pipeline->label[k], "whole")->value,
                     *simulated = &table_find(pipeline, pipeline->label[k], "simulated")->value;
        CHECK(fabs(*simulated / *whole - 1) < 1e-9, "%s: %g ms, simulated %g", pipeline->label[k],
              *whole, *simulated);
        CHECK(*whole >= table_find(steps, pipeline->label[k], "step")->value, "%s: the whole step",
              pipeline->label[k]);
        sum += *simulated;
    }
    CHECK(fabs(table_find(pipeline, "mean", "simulated")->value / (sum / 3) - 1) < 1e-9 &&
              table_find(pipeline, "mean", "measured")->value > 0,
          "the mean");
    tables_free(&tables);
    const char *printed = run(0, LINE "--submodels 1 --pipeline local:2 --replicas 2")->out;
    CHECK(strstr(printed, "A step of 2 x 1 ranks, 1 micro-batches, plain, 1f1b") &&
              strstr(printed, "\nfull update  "),
          "%s", printed);
    run(0, LINE "--submodels 2 --placement figure2 --pipeline local:2");
    check_error(run(2, LINE "--pipeline mpi"), "bcd trace times local:N, threads of this process");
    check_error(run(1, LINE "--pipeline local:2 --active 1"), "with --pipeline all submodels");
    check_error(run(2, LINE "--placement plain"), "--placement needs --pipeline");
}

/* Nothing runs below the lowest active block when its input is in the cache. */
static void keeps_the_prefix(void) {
    Tables tables = {0};
    run(0, PARTS "--cache 16M --out cached.h5");
    if (!read_tables(&tables, "cached.h5")) return;
    const Table *last = tables_find(&tables, "submodel_3");
    const char *const prefix[] = {"stem", "block1", "block2"};
    for (int b = 0; b < 3; b++)
        CHECK(isnan(table_find(last, prefix[b], "forward")->value), "%s takes %g ms", prefix[b],
              table_find(last, prefix[b], "forward")->value);
    CHECK(table_find(last, "block3", "forward")->value > 0, "the active block");
    tables_free(&tables);
}

/* A time that was changed on the disk is refused by whoever reads it. */
static void damaged_times_are_refused(void) {
    Tables tables;
    size_t count, changed = 0;
    run(0, LINE "--submodels 1 --steps 1 --out cell.h5");
    if (!read_tables(&tables, "cell.h5")) return;
    const double was = cell(&tables, "full", "block1", "weight_gradient"), is = was + 1;
    tables_free(&tables);
    char *bytes = read_bytes("cell.h5", &count);
    for (size_t i = 0; i + sizeof was <= count; i++)
        if (memcmp(bytes + i, &was, sizeof was) == 0) {
            memcpy(bytes + i, &is, sizeof is);
            changed++;
        }
    scratch_file("cell.h5", bytes, count);
    free(bytes);
    CHECK(changed > 0, "no cell is %g", was);
    check_error(run(2, "plan --model gpt2 --trace cell.h5"),
                "cell.h5: /tables/full/weight_gradient: cannot be read; the file is damaged");
}

void test_trace(void) {
    RUN(simulates_a_pipeline);
    RUN(keeps_the_prefix);
    RUN(parts_hold_what_they_should);
    RUN(draws_the_cycle);
    RUN(what_is_printed);
    RUN(closed_form_as_text);
    RUN(damaged_times_are_refused);
}
