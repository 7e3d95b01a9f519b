#include "study.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/base/error.h"
#include "../alloc.h"
#include "../store/settings.h"
#include "converge.h"

enum { VERSION = 2 };

/* ---- curves, evaluations and switches -------------------------------------------------------- */

/* A part of all trainings, concatenated: a thousand trainings with data sets of their own would
 * take longer to open than to read. */
typedef struct {
    const char *group, *first; /* the group; the column with each training's first row in it */
    const RunPart *part;
    size_t rows_at, count_at; /* offsets in StudyRow: the array, and the number of its rows */
} StudyPart;

static const StudyPart parts[] = {
    {"/training", "training_first", &run_parts[RUN_CURVE], offsetof(StudyRow, curve),
     offsetof(StudyRow, curve_rows)},
    {"/evaluation", "evaluation_first", &run_parts[RUN_EVALUATIONS], offsetof(StudyRow, evaluation),
     offsetof(StudyRow, evaluation_rows)},
    {"/switches", "switches_first", &run_parts[RUN_SWITCHES], offsetof(StudyRow, switches),
     offsetof(StudyRow, switch_rows)},
};
enum { PARTS = sizeof parts / sizeof *parts };

/* The other columns of /curves; the specification is too long for the table. */
static const H5Column curve_columns[] = {
    {.name = "training_rows", .kind = H5_UINT64, .offset = offsetof(StudyRow, curve_rows)},
    {.name = "evaluation_rows", .kind = H5_UINT64, .offset = offsetof(StudyRow, evaluation_rows)},
    {.name = "switches_rows", .kind = H5_UINT64, .offset = offsetof(StudyRow, switch_rows)},
    {H5_FIELD(StudyRow, spec, H5_LINE)},
};
enum { CURVE_COLUMNS = sizeof curve_columns / sizeof *curve_columns };

static char **rows_of(const StudyPart *part, const StudyRow *row) {
    return (char **)(void *)((char *)row + part->rows_at);
}

static uint64_t count_of(const StudyPart *part, const StudyRow *row) {
    return *(const uint64_t *)(const void *)((const char *)row + part->count_at);
}

/* Collects the rows of all trainings in memory first, because each column is one data set. */
static void write_part(H5File *file, const Study *study, const StudyPart *part) {
    const RunPart *of = part->part;
    H5Column column = {.name = part->first, .kind = H5_UINT64};
    size_t rows = (size_t)study->rows, total = 0;
    uint64_t *first = xcalloc(rows + 1, sizeof *first);
    for (size_t r = 0; r < rows; total += count_of(part, &study->row[r++])) first[r] = total;
    char *all = xmalloc(total * of->row_size + 1);
    for (size_t r = 0; r < rows; r++)
        if (count_of(part, &study->row[r]))
            memcpy(all + first[r] * of->row_size, *rows_of(part, &study->row[r]),
                   count_of(part, &study->row[r]) * of->row_size);
    h5_write_table(file, "/curves", "/table/row", &column, 1, first, sizeof *first, rows);
    h5_write_table(file, part->group, NULL, of->column, of->columns, all, of->row_size, total);
    free(first);
    free(all);
}

void study_store(H5File *file, const Study *study) {
    const StudyRow *row = study->row;
    size_t rows = (size_t)study->rows;
    h5_write_table(file, "/table", NULL, study_columns, study_column_count, row, sizeof *row, rows);
    for (int p = 0; p < PARTS; p++) write_part(file, study, &parts[p]);
    h5_write_table(file, "/curves", "/table/row", curve_columns, CURVE_COLUMNS, row, sizeof *row,
                   rows);
    if (!rows) return;
    settings_write_columns(file, "/table/row", &row->settings, sizeof *row, rows);
    h5_write_table(file, "/provenance", "/table/row", provenance_fields, PROVENANCE_FIELDS,
                   &row->provenance, sizeof *row, rows);
}

int study_write(const Study *study, const char *path) {
    H5File file;
    if (h5_create_format(&file, path, "bcd study", VERSION)) return -1;
    h5_set_text(&file, "/", "convergence", study_convergence_rule);
    study_store(&file, study);
    return h5_commit(&file);
}

/* A training's first row follows from the counts of those before it. */
static int read_part(const H5File *file, StudyRow *row, size_t rows, const StudyPart *part) {
    const RunPart *of = part->part;
    size_t left;
    char *all = h5_read_table(file, part->group, of->column, of->columns, of->row_size, &left);
    char *next = all;
    int failed = all ? 0 : -1;
    for (size_t r = 0; r < rows && !failed; r++) {
        size_t count = count_of(part, &row[r]), bytes = count * of->row_size;
        if (count > left) {
            failed = error_set("%s: /curves: more rows than %s has", file->path, part->group);
            break;
        }
        *rows_of(part, &row[r]) = memcpy(xmalloc(bytes + 1), next, bytes);
        next += bytes;
        left -= count;
    }
    free(all);
    if (!failed && left)
        failed = error_set("%s: %s: more rows than expected", file->path, part->group);
    return failed;
}

static int read_study(Study *study, const H5File *file) {
    int first = study->rows, version;
    size_t rows;
    if (h5_get(file, "/", "version", H5_INT, &version)) return -1;
    if (version != VERSION)
        return error_set(
            "%s: version %d; this program reads version %d; run the same bcd experiment "
            "again, which writes it from its trainings",
            file->path, version, VERSION);
    StudyRow *read =
        h5_read_table(file, "/table", study_columns, study_column_count, sizeof *read, &rows);
    if (!read) return -1;
    for (size_t r = 0; r < rows; r++) {
        StudyRow *row = study_add(study);
        *row = read[r];
        options_defaults(&row->settings);
    }
    free(read);
    if (!rows) return 0;
    StudyRow *row = study->row + first;
    if (h5_read_columns(file, "/curves", curve_columns, CURVE_COLUMNS, row, sizeof *row, rows))
        return -1;
    for (int p = 0; p < PARTS; p++)
        if (read_part(file, row, rows, &parts[p])) return -1;
    return settings_read_columns(file, &row->settings, sizeof *row, rows) ||
                   h5_read_columns(file, "/provenance", provenance_fields, PROVENANCE_FIELDS,
                                   &row->provenance, sizeof *row, rows)
               ? -1
               : 0;
}

/* "runs/a/run.h5" -> "a" */
static Text directory_name(const char *path) {
    const char *end = strrchr(path, '/');
    const char *begin = end;
    while (begin && begin > path && begin[-1] != '/') begin--;
    return end && end > begin ? text_of("%.*s", (int)(end - begin), begin)
                              : text_of("%.100s", path);
}

static int read_run(Study *study, const char *path) {
    const Text name = directory_name(path);
    RunFile run;
    int failed = runfile_read(&run, path) || study_add_run(study, &run, name.text);
    if (!failed && strcmp(run.status, "finished") != 0) {
        const char *before = *study->unfinished.text ? ", " : "not at its end: ";
        text_add(&study->unfinished, "%s%s (%s)", before, name.text, run.status);
    }
    runfile_free(&run);
    return failed ? -1 : 0;
}

/* ---- checks ---------------------------------------------------------------------------------- */

/* Losses must be finite (a training whose loss is not stops), and updates in order. */
static int check_curve(const StudyRow *row, const char *path) {
    for (size_t i = 0; i < row->curve_rows; i++) {
        const CurveRow *current = &row->curve[i];
        if (!isfinite(current->loss))
            return error_set("%s: %s: damaged: the loss of update %" PRIu64 " is %g", path,
                             row->name, current->step, current->loss);
        if (current->step <= (i ? current[-1].step : 0) ||
            !(current->seconds >= (i ? current[-1].seconds : 0)))
            return error_set("%s: %s: damaged: row %zu of its curve is before row %zu", path,
                             row->name, i + 1, i);
    }
    for (size_t e = 1; e < row->evaluation_rows; e++)
        if (row->evaluation[e].step < row->evaluation[e - 1].step)
            return error_set("%s: %s: damaged: evaluation %zu is before evaluation %zu", path,
                             row->name, e + 1, e);
    return 0;
}

int study_check(const StudyRow *row, const char *path) {
    if (row->submodels < 1 || row->submodels > INT_MAX)
        return error_set("%s: %s: damaged: it has %" PRId64 " submodels", path, row->name,
                         row->submodels);
    if (row->steps < 0 || row->batch < 1)
        return error_set("%s: %s: damaged: it has %" PRId64 " updates of %" PRId64 " samples", path,
                         row->name, row->steps, row->batch);
    return check_curve(row, path);
}

int study_read(Study *study, const char *path) {
    H5File file;
    char format[H5_NAME];
    int first = study->rows, failed;
    if (h5_format(path, format)) return -1;
    if (strcmp(format, "bcd run") == 0) {
        failed = read_run(study, path);
    } else if (strcmp(format, "bcd study") == 0) {
        if (h5_open(&file, path)) return -1;
        failed = read_study(study, &file);
        h5_close(&file);
    } else {
        failed = error_set("report: %s: neither a study (validity.h5) nor a run (run.h5)", path);
    }
    for (int r = first; r < study->rows && !failed; r++)
        failed = study_check(&study->row[r], path) || settings_check(&study->row[r].settings, path);
    return failed ? -1 : 0;
}
