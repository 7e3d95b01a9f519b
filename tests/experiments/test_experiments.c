/* `bcd experiment memory` and `cost`, through the program: their tables, number by number. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../experiments/tables/table.h"
#include "cli.h"

/* The number of a cell, which must come from there; NAN after a failed CHECK. */
static double number(const Tables *tables, const char *table, const char *row, const char *column,
                     Source source) {
    const Table *found = tables_find(tables, table);
    const Cell *cell = found ? table_find(found, row, column) : NULL;
    if (!CHECK(cell, "no cell %s, %s, %s", table, row, column)) return NAN;
    CHECK(cell->source == source, "%s, %s, %s: %s", table, row, column, source_names[cell->source]);
    return cell->value;
}

/* Runs an experiment into a directory and reads its tables; false after a failed CHECK. */
static bool open_tables(Tables *tables, const char *line, const char *file) {
    const Printed *printed = run(0, "%s", line);
    for (const char *at = printed->out; *at; at += strcspn(at, "\n") + 1)
        CHECK(strcspn(at, "\n") <= 120, "%zu columns: %.130s", strcspn(at, "\n"), at);
    CHECK(!strstr(printed->out, "nan"), "a NaN is shown");
    *tables = (Tables){0};
    return CHECK(tables_read(tables, scratch_path(file)) == 0, "%s", error_message());
}

/* ---- memory ----------------------------------------------------------------------------------
 */

/* 16 N and 8 N, in GiB of 2^30 bytes, to the digit; and which published ones they meet. */
static void check_closed_forms(const Tables *tables) {
    static const struct {
        const char *model;
        double parameters, full, full_published, bcd, bcd_published;
    } audit[] = {{"G-1.6B", 1615775744, 24.0769, 24.077, 12.0385, 12.038},
                 {"G-5.4B", 5495263360, 81.8858, 81.881, 40.9429, 40.942},
                 {"G-10B", 10787035776, 160.7394, 160.738, 80.3697, 80.370},
                 {"G-20B", 20992596864, 312.8141, 312.805, 156.4070, 156.402},
                 {"L-1.5B", 1565329408, 23.3252, 24.632, 11.6626, 11.662},
                 {"L-6.0B", 6027481088, 89.8165, 89.815, 44.9082, 44.908},
                 {"L-11B", 11792814080, 175.7266, 175.714, 87.8633, 87.858},
                 {"L-23B", 23323480064, 347.5469, 347.539, 173.7735, 173.769}};
    for (size_t i = 0; i < sizeof audit / sizeof *audit; i++) {
        const char *m = audit[i].model;
        double full = number(tables, "table8", m, "full_closed_form", SOURCE_CLOSED_FORM);
        double bcd = number(tables, "table8", m, "bcd3_closed_form", SOURCE_CLOSED_FORM);
        double plan = number(tables, "table8", m, "bcd3_plan", SOURCE_CLOSED_FORM);
        CHECK(
            number(tables, "table8", m, "parameters", SOURCE_CLOSED_FORM) == audit[i].parameters &&
                fabs(full - audit[i].full) <= 5.001e-5 && fabs(bcd - audit[i].bcd) <= 5.001e-5,
            "%s: %.4f, %.4f", m, full, bcd);
        CHECK(number(tables, "table8", m, "full_published", SOURCE_PUBLISHED) ==
                      audit[i].full_published &&
                  number(tables, "table8", m, "bcd3_published", SOURCE_PUBLISHED) ==
                      audit[i].bcd_published,
              "%s: published", m);
        CHECK((fabs(full / audit[i].full_published - 1) <= 1e-4) == (strcmp(m, "L-1.5B") != 0),
              "%s: %g, published %g", m, full, audit[i].full_published);
        CHECK(plan >= bcd && plan <= 1.06 * bcd, "%s: planned %g", m, plan);
    }
    double twice = number(tables, "table8", "L-1.5B", "full_recomputed", SOURCE_RECOMPUTED);
    CHECK(fabs(twice - 23.324) <= 1e-9, "%g", twice);
    CHECK(isnan(number(tables, "table8", "L-8.0B", "full_closed_form", SOURCE_NONE)) &&
              number(tables, "table8", "L-8.0B", "full_published", SOURCE_PUBLISHED) == 120.327,
          "L-8.0B");
}

/* The memory of Tables 9 to 11 follows from that of their full updates; ResNet-14 is ours. */
static void check_small(const Tables *tables) {
    const Table *table = tables_find(tables, "tables9to11");
    if (!CHECK(table && table->rows == 17, "Tables 9 to 11")) return;
    for (int r = 0; r < table->rows; r++) {
        const char *row = table->label[r];
        double published = number(tables, "tables9to11", row, "published", SOURCE_PUBLISHED);
        double own = number(tables, "tables9to11", row, "recomputed", SOURCE_RECOMPUTED);
        double ours = number(tables, "tables9to11", row, "closed_form", SOURCE_CLOSED_FORM);
        CHECK(fabs(own - published) <= 0.0101, "%s: %g, published %g", row, own, published);
        if (strncmp(row, "10:", 3) == 0)
            CHECK(fabs(ours - published) <= 0.0101, "%s: %g, published %g", row, ours, published);
    }
}

/* Two networks, fully and in two and three parts: peaks meet the plan to the byte. */
static void check_measured(const Tables *tables) {
    int found = 0;
    for (int t = 0; t < tables->tables; t++) {
        const Table *table = tables->table[t];
        if (strncmp(table->name, "measured", 8)) continue;
        CHECK(table->rows == 3, "%s: %d rows", table->name, table->rows);
        for (int r = 0; r < table->rows; r++, found++) {
            const char *row = table->label[r], *name = table->name;
            double peak = number(tables, name, row, "trained", SOURCE_MEASURED);
            double closed = number(tables, name, row, "closed_form", SOURCE_CLOSED_FORM);
            CHECK(peak == number(tables, name, row, "trained_plan", SOURCE_CLOSED_FORM) &&
                      number(tables, name, row, "all", SOURCE_MEASURED) ==
                          number(tables, name, row, "all_plan", SOURCE_CLOSED_FORM),
                  "%s %s: %g", name, row, peak);
            CHECK(peak >= closed && (r > 0 || peak == closed), "%s %s: %g, closed form %g", name,
                  row, peak, closed);
        }
    }
    CHECK(found == 6, "%d measured rows", found);
}

static void check_figure5(const Tables *tables) {
    const Table *table = tables_find(tables, "figure5");
    if (!CHECK(table && table->figure == FIGURE_LINES && table->rows == 5, "Figure 5")) return;
    static const double equal[] = {1, 0.625, 0.5, 0.4375, 0.4};
    for (int r = 0; r < table->rows; r++)
        for (int c = 0; c < table->columns; c++) {
            double value = table->cell[r * table->columns + c].value;
            CHECK(c ? value >= equal[r] - 1e-12 && value <= 1.05 * equal[r] : value == equal[r],
                  "%s %s: %g", table->column[c].name, table->label[r], value);
        }
}

static void case_memory(void) {
    Tables tables;
    if (open_tables(&tables, "experiment memory --preset smoke --threads 1 --out all",
                    "all/memory.h5")) {
        check_closed_forms(&tables);
        check_small(&tables);
        check_measured(&tables);
        check_figure5(&tables);
        CHECK(strstr(tables.provenance.command, "experiment memory --preset smoke"), "%s",
              tables.provenance.command);
    }
    tables_free(&tables);
    const Printed *printed = run(0,
                                 "experiment memory --models resnet:depth=14,width=2 --threads "
                                 "1 --preset smoke --out other");
    CHECK(strstr(printed->out, "Measured, MiB: resnet:depth=14,width=2, sgd") &&
              !strstr(printed->out, "Measured, MiB: gpt"),
          "--models");
    check_error(run(1, "experiment memory --preset huge"), "--preset huge: it takes smoke");
    check_error(run(1, "experiment memory --models resnet9 --out other"), "resnet9");
}

static void case_report(void) {
    const Printed *printed = run(0, "report all/memory.h5 --markdown");
    CHECK(strstr(printed->out, "| G-1.6B | 1615775744 c | 24.077 p | 24.076 r |"), "%s",
          printed->out);
    CHECK(!file_exists(scratch_path("all/report.html")), "a page beside Markdown");
    printed = run(0, "report all/memory.h5");
    CHECK(strstr(printed->out, "12.038 p") && strstr(printed->out, "page: all/report.html"), "%s",
          printed->out);
    CHECK(file_exists(scratch_path("all/report.html")), "no page");
}

void test_experiments(void) {
    RUN(case_memory);
    RUN(case_report);
}
