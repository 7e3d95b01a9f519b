/* Calls page.py, which makes the page from a scratch file that is written here: the trainings with
 * their order and names, their tables, and those of the files, with each cell as it is printed. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../ref/error.h"
#include "../alloc.h"
#include "../study/converge.h"
#include "report.h"

/* ---- the scratch file ------------------------------------------------------------------------ */

typedef struct {
    int64_t training; /* row of the study */
    char of[H5_NAME]; /* name of the case, a newline, and its number, which makes it unique */
    char method[H5_NAME];
} OrderRow;

static void store_order(H5File *file, const Cases *cases) {
    static const H5Column columns[] = {
        {H5_FIELD(OrderRow, training, H5_INT64)},
        {.name = "case", .kind = H5_TEXT, .offset = offsetof(OrderRow, of)},
        {H5_FIELD(OrderRow, method, H5_TEXT)},
    };
    OrderRow *row = xcalloc((size_t)cases->study->rows + 1, sizeof *row), *next = row;
    for (int m = 0; m < cases->methods; m++) {
        const CaseMethod *method = &cases->method[m];
        const Text name = case_name(method->row[0]), how = case_method(method);
        for (int s = 0; s < method->seeds; s++, next++) {
            next->training = method->row[s] - cases->study->row;
            snprintf(next->method, H5_NAME, "%.119s", how.text);
            snprintf(next->of, H5_NAME, "%.116s\n%d", name.text, (int)(method->of - cases->item));
        }
    }
    h5_write_table(file, "/order", NULL, columns, 3, row, sizeof *row, (size_t)(next - row));
    free(row);
}

static int write_scratch(const Report *report, const char *path) {
    H5File file;
    if (h5_create(&file, path)) return -1;
    h5_set_text(&file, "/", "unfinished", report->study.unfinished.text);
    h5_set_text(&file, "/", "convergence", study_convergence_rule);
    if (report->study.rows) {
        study_store(&file, &report->study);
        store_order(&file, &report->cases);
    }
    for (int f = 0; f < report->files; f++) {
        const Tables *tables = &report->file[f];
        const Text group = text_of("/files/%d", f);
        h5_set(&file, group.text, "number", H5_INT, &f);
        h5_set_fields(&file, text_of("%s/provenance", group.text).text, provenance_fields,
                      PROVENANCE_FIELDS, &tables->provenance);
        tables_store(&file, group.text, tables, true);
    }
    return h5_commit(&file);
}

/* ---- running Python -------------------------------------------------------------------------- */

/* Draws from a scratch file that has the report or the tables. */
static PythonResult draw(const char *path, const char *what, const Report *report,
                         const Tables *tables) {
    const CommandLine none = {.options.command = COMMAND_TRACE};
    const char *parent = getenv("TMPDIR");
    if (!parent || !*parent) parent = "/tmp";
    Text scratch = text_of("%s/bcd-report-XXXXXX", parent);
    const char *const arguments[] = {path, what, scratch.text};
    PythonResult end = PYTHON_FAILED;
    int file = mkstemp(scratch.text);
    if (file < 0) {
        error_set("report: no file can be made in %s", parent);
        return PYTHON_FAILED;
    }
    close(file);
    if (!(report ? write_scratch(report, scratch.text) : tables_write(tables, &none, scratch.text)))
        end = python_run("experiments/report/page.py", arguments, 3, NULL);
    remove(scratch.text);
    if (end == PYTHON_MISSING)
        error_set(
            "figures need Python with h5py, matplotlib and jinja2; type: apt-get install "
            "--no-install-recommends python3-h5py python3-matplotlib python3-jinja2");
    return end;
}

PythonResult page_write(const Report *report, const char *path, const char *figures) {
    return draw(path, figures, report, NULL);
}

PythonResult page_draw_cycle(const Tables *tables, const char *path) {
    return draw(path, "cycle", NULL, tables);
}
