/* The page: Python (page.py) makes it, from the files of tables and from what is written here for
 * it: the trainings, their tables, their order. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../ref/error.h"
#include "../paper/trainings.h"
#include "../study/converge.h"
#include "../study/study_file.h"
#include "../train/python.h"
#include "report.h"

enum { MOST_ARGUMENTS = PYTHON_ARGUMENTS };

static PageResult run_page(const char *const arguments[], int count) {
    switch (python_run("experiments/report/page.py", arguments, count, NULL)) {
        case PYTHON_DONE:
            return PAGE_WRITTEN;
        case PYTHON_MISSING:
            error_set(
                "figures need Python with h5py, matplotlib and jinja2; type: apt-get install "
                "--no-install-recommends python3-h5py python3-matplotlib python3-jinja2");
            return PAGE_NO_PYTHON;
        default:
            return PAGE_FAILED;
    }
}

/* ---- what Python is given ----------------------------------------------------------------------
 */

typedef struct {
    int64_t training; /* row of the study */
    char of[H5_NAME]; /* "resnet8 cifar10 sgd", and after a new line the case's number */
    char method[H5_NAME];
} OrderRow;

static void write_order(H5File *file, const Cases *cases) {
    static const H5Column columns[] = {
        {"training", H5_INT64, offsetof(OrderRow, training), NULL},
        {"case", H5_TEXT, offsetof(OrderRow, of), NULL},
        {"method", H5_TEXT, offsetof(OrderRow, method), NULL},
    };
    OrderRow *row = calloc((size_t)cases->study->rows + 1, sizeof *row);
    size_t rows = 0;
    for (int c = 0; row && c < cases->cases; c++)
        for (int m = 0; m < cases->item[c].methods; m++) {
            const CaseMethod *method = &cases->item[c].method[m];
            char name[CASE_NAME];
            for (int s = 0; s < method->seeds; s++, rows++) {
                row[rows].training = method->row[s] - cases->study->row;
                case_method(method, row[rows].method);
                case_name(method->row[0], name);
                snprintf(row[rows].of, H5_NAME, "%.116s\n%d", name, c);
            }
        }
    if (row)
        h5_write_table(file, "/order", columns, 3, row, sizeof *row, rows);
    else
        h5_fail(file, "/order");
    free(row);
}

/* Of all trainings one behind the other, as the curves in a study's file; NAN: unknown. */
static void write_operations(H5File *file, const Study *study) {
    size_t total = 0, at = 0;
    for (int r = 0; r < study->rows; r++) total += study->row[r].curve_rows;
    double *values = malloc((total + 1) * sizeof *values);
    for (int r = 0; values && r < study->rows; r++)
        for (size_t i = 0; i < study->row[r].curve_rows; i++)
            values[at++] = study_at(&study->row[r], i, AXIS_OPERATIONS);
    H5Dim dim = {"step", total, NULL};
    if (values)
        h5_write(file, "/operations", H5_DOUBLE, values, 1, &dim, NULL);
    else
        h5_fail(file, "/operations");
    free(values);
}

static void write_notes(H5File *file) {
    char notes[PAPER_NOTES * TABLE_NOTE] = "";
    for (int n = 0; paper_notes[n]; n++) {
        size_t used = strlen(notes);
        snprintf(notes + used, sizeof notes - used, "%s%s", used ? "\n" : "", paper_notes[n]);
    }
    h5_set_text(file, "/", "convergence", study_convergence_rule);
    h5_set_text(file, "/", "notes", notes);
}

static int write_page(const Report *report, const char *path) {
    H5File file;
    if (h5_create(&file, path)) return -1;
    h5_set_text(&file, "/", "format", "bcd page");
    h5_set_text(&file, "/", "lacking", report->study.lacking);
    h5_set_text(&file, "/", "unfinished", report->study.unfinished);
    write_notes(&file);
    write_order(&file, &report->cases);
    write_operations(&file, &report->study);
    return h5_commit(&file);
}

/* A directory that goes with what is in it. */
typedef struct {
    char dir[256], trainings[300], page[300], tables[300];
} Scratch;

static int open_scratch(Scratch *scratch) {
    const char *parent = getenv("TMPDIR");
    snprintf(scratch->dir, sizeof scratch->dir, "%.200s/bcd-report-XXXXXX",
             parent && *parent ? parent : "/tmp");
    if (!mkdtemp(scratch->dir))
        return error_set("report: no directory can be made in %s", parent ? parent : "/tmp");
    snprintf(scratch->trainings, sizeof scratch->trainings, "%s/trainings.h5", scratch->dir);
    snprintf(scratch->page, sizeof scratch->page, "%s/page.h5", scratch->dir);
    snprintf(scratch->tables, sizeof scratch->tables, "%s/tables.h5", scratch->dir);
    return 0;
}

static void close_scratch(const Scratch *scratch) {
    remove(scratch->trainings);
    remove(scratch->page);
    remove(scratch->tables);
    rmdir(scratch->dir);
}

PageResult page_write(const Report *report, const char *path, const char *figures) {
    const char *arguments[MOST_ARGUMENTS - 4] = {path, figures};
    const Options none = {.command = COMMAND_REPORT};
    PageResult result = PAGE_FAILED;
    Scratch scratch;
    int count = 2;
    if (open_scratch(&scratch)) return PAGE_FAILED;
    if (report->study.rows) {
        arguments[count++] = scratch.trainings;
        arguments[count++] = scratch.page;
    }
    for (int f = 0; f < report->files && f < OPTIONS_POSITIONAL; f++)
        arguments[count++] = *report->path[f] ? report->path[f] : scratch.tables;
    if (!report->study.rows || (study_write(&report->study, scratch.trainings) == 0 &&
                                write_page(report, scratch.page) == 0 &&
                                tables_write(&report->file[0], &none, scratch.tables) == 0))
        result = run_page(arguments, count);
    close_scratch(&scratch);
    return result;
}

PageResult page_draw_cycle(const Tables *tables, const char *path) {
    const Options none = {.command = COMMAND_TRACE};
    PageResult result = PAGE_FAILED;
    Scratch scratch;
    if (open_scratch(&scratch)) return PAGE_FAILED;
    const char *arguments[] = {path, "cycle", scratch.tables};
    if (tables_write(tables, &none, scratch.tables) == 0) result = run_page(arguments, 3);
    close_scratch(&scratch);
    return result;
}
