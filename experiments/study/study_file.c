#include "study_file.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/error.h"
#include "../store/settings.h"
#include "converge.h"

enum { PATH = 2 * H5_NAME, VERSION = 2 };

static H5Column *table_columns(void) {
    H5Column *columns = calloc((size_t)study_column_count, sizeof *columns);
    if (!columns) error_set("study: out of memory");
    for (int c = 0; columns && c < study_column_count; c++) columns[c] = study_columns[c].column;
    return columns;
}

/* ---- the parts of all trainings, one behind the other ------------------------------------------
 *
 * A thousand trainings with data sets of their own would take longer to open than to read. */

typedef struct {
    const char *name;
    const RunTable *table;
    size_t row_size, rows_at, number_at; /* offsets in StudyRow: the pointer, how many */
} StudyPart;

#define PART(name, table, field, count)                                          \
    {                                                                            \
        name, &table, sizeof *((StudyRow *)0)->field, offsetof(StudyRow, field), \
            offsetof(StudyRow, count)                                            \
    }
static const StudyPart parts[] = {
    PART("/training", run_curve, curve, curve_rows),
    PART("/evaluation", run_evaluation, evaluation, evaluation_rows),
    PART("/switches", run_switches, switches, switch_rows),
};
enum { PARTS = sizeof parts / sizeof *parts };

static char **rows_of(const StudyPart *part, const StudyRow *row) {
    return (char **)(void *)((char *)row + part->rows_at);
}

static size_t *number_of(const StudyPart *part, const StudyRow *row) {
    return (size_t *)(void *)((char *)row + part->number_at);
}

/* How many rows all trainings have together; begin[r], count[r]: of each. */
static size_t count_rows(const Study *study, const StudyPart *part, uint64_t *begin,
                         uint64_t *count) {
    size_t total = 0;
    for (int r = 0; r < study->rows; r++) {
        begin[r] = total;
        count[r] = *number_of(part, &study->row[r]);
        total += count[r];
    }
    return total;
}

/* All of them in memory first: each column is one data set. */
static void write_part(H5File *file, const Study *study, const StudyPart *part) {
    H5Dim dim = {"row", (size_t)study->rows, "/table/row"};
    char path[PATH];
    uint64_t *begin = calloc(2 * dim.size + 1, sizeof *begin), *count = begin + dim.size;
    size_t total = begin ? count_rows(study, part, begin, count) : 0;
    char *rows = malloc(total * part->row_size + 1);
    for (int r = 0; r < study->rows && begin && rows; r++)
        if (count[r])
            memcpy(rows + begin[r] * part->row_size, *rows_of(part, &study->row[r]),
                   count[r] * part->row_size);
    if (begin && rows) {
        snprintf(path, sizeof path, "/curves/%s_first", part->name + 1);
        h5_write(file, path, H5_UINT64, begin, 1, &dim, NULL);
        snprintf(path, sizeof path, "/curves/%s_rows", part->name + 1);
        h5_write(file, path, H5_UINT64, count, 1, &dim, NULL);
        h5_write_table(file, part->name, part->table->column, part->table->columns, rows,
                       part->row_size, total);
    } else {
        h5_fail(file, part->name);
    }
    free(begin);
    free(rows);
}

/* Longer than a column of the table may be. */
static void write_specifications(H5File *file, const Study *study) {
    H5Dim dim = {"row", (size_t)study->rows, "/table/row"};
    char *values = calloc(dim.size + 1, H5_PATH);
    for (int r = 0; r < study->rows && values; r++)
        strcpy(values + (size_t)r * H5_PATH, study->row[r].spec);
    if (values)
        h5_write(file, "/curves/spec", H5_LINE, values, 1, &dim, NULL);
    else
        h5_fail(file, "/curves/spec");
    free(values);
}

void study_store(H5File *file, const Study *study) {
    H5Column *columns = table_columns();
    size_t rows = (size_t)study->rows;
    if (!columns) {
        h5_fail(file, "/table");
        return;
    }
    h5_write_table(file, "/table", columns, study_column_count, study->row, sizeof *study->row,
                   rows);
    free(columns);
    for (int c = 0; c < study_column_count; c++) {
        char name[PATH];
        snprintf(name, sizeof name, "/table/%s", study_columns[c].column.name);
        h5_set_text(file, name, "what", study_columns[c].what);
    }
    for (int p = 0; p < PARTS; p++) write_part(file, study, &parts[p]);
    write_specifications(file, study);
    if (!rows) return;
    settings_write_columns(file, "/settings", "/table/row", &study->row->settings,
                           sizeof *study->row, rows);
    provenance_write_columns(file, "/provenance", "/table/row", &study->row->provenance,
                             sizeof *study->row, rows);
}

int study_write(const Study *study, const char *path) {
    H5File file;
    if (h5_create(&file, path)) return -1;
    h5_set_text(&file, "/", "format", "bcd study");
    h5_set_int(&file, "/", "version", VERSION);
    h5_set_text(&file, "/", "convergence", study_convergence_rule);
    study_store(&file, study);
    return h5_commit(&file);
}

/* Where each training begins is how many rows those before it have: only the latter is read. */
static int share_out(const H5File *file, const Study *study, int first, const StudyPart *part,
                     const char *all, size_t total) {
    char path[PATH];
    size_t rows = (size_t)(study->rows - first), used = 0;
    uint64_t *count = calloc(rows + 1, sizeof *count);
    snprintf(path, sizeof path, "/curves/%s_rows", part->name + 1);
    int failed = count ? h5_read(file, path, H5_UINT64, count, 1, &rows) : -1;
    for (size_t r = 0; r < rows && !failed; r++) {
        StudyRow *row = &study->row[first + (int)r];
        if (count[r] > total - used) {
            failed = error_set("%s: %s: more rows than %s has", file->path, path, part->name);
            break;
        }
        char *own = *rows_of(part, row) = malloc(count[r] * part->row_size + 1);
        if (!own) {
            failed = error_set("%s: out of memory", file->path);
            break;
        }
        memcpy(own, all + used * part->row_size, count[r] * part->row_size);
        *number_of(part, row) = count[r];
        used += count[r];
    }
    free(count);
    if (!failed && used < total)
        failed = error_set("%s: %s: more rows than expected", file->path, part->name);
    return failed;
}

static int read_part(const H5File *file, const Study *study, int first, const StudyPart *part) {
    size_t total;
    char *all = h5_read_table(file, part->name, part->table->column, part->table->columns,
                              part->row_size, &total);
    int failed = all ? share_out(file, study, first, part, all, total) : -1;
    free(all);
    return failed;
}

/* The columns to read: what is computed from the curves may be missing. */
static int drop_missing(H5Column *columns, const H5File *file) {
    int kept = 0;
    for (int c = 0; c < study_column_count; c++) {
        char path[PATH];
        snprintf(path, sizeof path, "/table/%s", columns[c].name);
        if (!study_columns[c].computed || h5_exists(file, path)) columns[kept++] = columns[c];
    }
    return kept;
}

static void forget_computed(StudyRow *row) {
    for (int c = 0; c < study_column_count; c++)
        if (study_columns[c].computed)
            *(double *)(void *)((char *)row + study_columns[c].column.offset) = NAN;
}

static int read_rows(Study *study, const H5File *file) {
    H5Column *columns = table_columns();
    if (!columns) return -1;
    size_t count;
    int kept = drop_missing(columns, file);
    StudyRow *rows = h5_read_table(file, "/table", columns, kept, sizeof *rows, &count);
    free(columns);
    if (!rows) return -1;
    int failed = 0;
    for (size_t r = 0; r < count && !failed; r++) {
        StudyRow *row = study_add(study);
        failed = !row;
        if (!row) break;
        *row = rows[r];
        if (kept < study_column_count) forget_computed(row);
        options_defaults(&row->settings, COMMAND_TRAIN);
    }
    free(rows);
    return failed ? -1 : 0;
}

static int read_specifications(const H5File *file, const Study *study, int first) {
    size_t rows = (size_t)(study->rows - first);
    char *values = malloc(rows * H5_PATH + 1);
    int failed = values ? h5_read(file, "/curves/spec", H5_LINE, values, 1, &rows)
                        : error_set("%s: out of memory", file->path);
    for (size_t r = 0; r < rows && !failed; r++) {
        StudyRow *row = &study->row[first + (int)r];
        snprintf(row->spec, sizeof row->spec, "%s", values + r * H5_PATH);
    }
    free(values);
    return failed;
}

static int read_study(Study *study, const H5File *file) {
    int64_t version;
    int first = study->rows;
    if (h5_get_int(file, "/", "version", &version)) return -1;
    if (version != VERSION)
        return error_set(
            "%s: version %lld; this program reads version %d; the same bcd experiment with --out "
            "makes it again from the trainings that are there",
            file->path, (long long)version, VERSION);
    if (read_rows(study, file)) return -1;
    for (int p = 0; p < PARTS; p++)
        if (read_part(file, study, first, &parts[p])) return -1;
    size_t rows = (size_t)(study->rows - first);
    if (!rows) return 0; /* there may be no array then */
    StudyRow *row = study->row + first;
    return read_specifications(file, study, first) ||
                   settings_read_columns(file, "/settings", &row->settings, sizeof *row, rows) ||
                   provenance_read_columns(file, "/provenance", &row->provenance, sizeof *row, rows)
               ? -1
               : 0;
}

/* "runs/a/run.h5" -> "a" */
static void directory_name(char name[H5_NAME], const char *path) {
    const char *end = strrchr(path, '/');
    const char *begin = end;
    while (begin && begin > path && begin[-1] != '/') begin--;
    if (end && end > begin)
        snprintf(name, H5_NAME, "%.*s", (int)(end - begin), begin);
    else
        snprintf(name, H5_NAME, "%.100s", path);
}

static int read_run(Study *study, const char *path) {
    char name[H5_NAME];
    RunFile run;
    directory_name(name, path);
    int failed = runfile_read(&run, path) || study_add_run(study, &run, name);
    if (!failed && strcmp(run.status, "finished") != 0) {
        size_t used = strlen(study->unfinished);
        snprintf(study->unfinished + used, sizeof study->unfinished - used,
                 used ? ", %s (%s)" : "not at its end: %s (%s)", name, run.status);
    }
    runfile_free(&run);
    return failed ? -1 : 0;
}

/* ---- whether what a file says can be a training: a report is made of nothing else ---------------
 */

/* Its losses are numbers (a training that comes to another one stops), its updates come in order.
 */
static int check_curve(const StudyRow *row, const char *path) {
    for (size_t i = 0; i < row->curve_rows; i++) {
        const CurveRow *here = &row->curve[i];
        if (!isfinite(here->loss))
            return error_set("%s: %s: damaged: the loss of update %" PRIu64 " is %g", path,
                             row->name, here->step, here->loss);
        if (here->step <= (i ? here[-1].step : 0) || !(here->seconds >= (i ? here[-1].seconds : 0)))
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
        return error_set("%s: %s: damaged: it tells %" PRId64 " submodels", path, row->name,
                         row->submodels);
    if (row->steps < 0 || row->batch < 1)
        return error_set("%s: %s: damaged: it tells %" PRId64 " updates of %" PRId64 " samples",
                         path, row->name, row->steps, row->batch);
    return check_curve(row, path);
}

/* All trainings of a file have the same columns.  One file's line is enough to tell. */
static int note_lacking(Study *study, int first, const char *path) {
    char text[600];
    if (study->rows == first) return 0;
    if (settings_missing(text, sizeof text, &study->row[first].settings, path)) return -1;
    if (*text && !*study->lacking)
        snprintf(study->lacking, sizeof study->lacking, "%.80s does not say %s", path, text);
    return 0;
}

int study_read(Study *study, const char *path) {
    H5File file;
    char format[64] = "";
    if (h5_open(&file, path)) return -1;
    if (h5_has(&file, "/", "format") && h5_get_text(&file, "/", "format", format, sizeof format)) {
        h5_close(&file);
        return -1;
    }
    int first = study->rows, failed;
    bool is_study = strcmp(format, "bcd study") == 0;
    failed = is_study ? read_study(study, &file) : 0;
    h5_close(&file);
    if (!is_study && strcmp(format, "bcd run") != 0)
        return error_set("report: %s: neither a study (validity.h5) nor a run (run.h5)", path);
    if (!is_study) failed = read_run(study, path);
    for (int r = first; r < study->rows && !failed; r++) failed = study_check(&study->row[r], path);
    return failed || note_lacking(study, first, path) ? -1 : 0;
}
