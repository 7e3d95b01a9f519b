/* A study's HDF5 file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/error.h"
#include "../options/settings.h"
#include "study.h"

enum { GROUP = H5_NAME + 32, VERSION = 1 };

static const H5Column training_columns[] = {
    {"step", H5_UINT64, offsetof(CurveRow, step), NULL},
    {"samples", H5_UINT64, offsetof(CurveRow, samples), NULL},
    {"loss", H5_DOUBLE, offsetof(CurveRow, loss), "nats per target"},
    {"lr", H5_DOUBLE, offsetof(CurveRow, lr), NULL},
    {"submodel", H5_INT, offsetof(CurveRow, submodel), NULL},
    {"seconds", H5_DOUBLE, offsetof(CurveRow, seconds), "s"},
};
static const H5Column evaluation_columns[] = {
    {"step", H5_UINT64, offsetof(EvaluationRow, step), NULL},
    {"loss", H5_DOUBLE, offsetof(EvaluationRow, loss), "nats per target"},
    {"accuracy", H5_DOUBLE, offsetof(EvaluationRow, accuracy), NULL},
    {"perplexity", H5_DOUBLE, offsetof(EvaluationRow, perplexity), NULL},
    {"seconds", H5_DOUBLE, offsetof(EvaluationRow, seconds), "s"},
};
#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

static H5Column *table_columns(void) {
    H5Column *columns = malloc((size_t)study_column_count * sizeof *columns);
    if (!columns) error_set("study: out of memory");
    for (int c = 0; columns && c < study_column_count; c++) columns[c] = study_columns[c].column;
    return columns;
}

static void write_row(H5File *file, const StudyRow *row) {
    char group[GROUP], part[GROUP + 16];
    snprintf(group, sizeof group, "/curves/%s", row->name);
    snprintf(part, sizeof part, "%s/training", group);
    h5_write_table(file, part, training_columns, COUNT(training_columns), row->curve,
                   sizeof *row->curve, row->curve_rows);
    snprintf(part, sizeof part, "%s/evaluation", group);
    h5_write_table(file, part, evaluation_columns, COUNT(evaluation_columns), row->evaluation,
                   sizeof *row->evaluation, row->evaluation_rows);
    h5_set_text(file, group, "spec", row->spec);
    h5_set_text(file, group, "command", row->command);
    snprintf(part, sizeof part, "%s/settings", group);
    settings_write(file, part, &row->settings, OPTION_FREE);
}

int study_write(const Study *study, const char *path) {
    H5Column *columns = table_columns();
    H5File file;
    if (!columns || h5_create(&file, path)) {
        free(columns);
        return -1;
    }
    h5_set_text(&file, "/", "format", "bcd study");
    h5_set_int(&file, "/", "version", VERSION);
    h5_set_text(&file, "/", "convergence", study_convergence_rule);
    h5_write_table(&file, "/table", columns, study_column_count, study->row, sizeof *study->row,
                   (size_t)study->rows);
    free(columns);
    for (int c = 0; c < study_column_count; c++) {
        char name[GROUP];
        snprintf(name, sizeof name, "/table/%s", study_columns[c].column.name);
        h5_set_text(&file, name, "what", study_columns[c].what);
    }
    for (int r = 0; r < study->rows; r++) write_row(&file, &study->row[r]);
    return h5_commit(&file);
}

static int read_row(const H5File *file, StudyRow *row) {
    char group[GROUP], part[GROUP + 16];
    snprintf(group, sizeof group, "/curves/%s", row->name);
    snprintf(part, sizeof part, "%s/training", group);
    row->curve = h5_read_table(file, part, training_columns, COUNT(training_columns),
                               sizeof *row->curve, &row->curve_rows);
    if (!row->curve) return -1;
    snprintf(part, sizeof part, "%s/evaluation", group);
    row->evaluation = h5_read_table(file, part, evaluation_columns, COUNT(evaluation_columns),
                                    sizeof *row->evaluation, &row->evaluation_rows);
    if (!row->evaluation) return -1;
    options_defaults(&row->settings, COMMAND_TRAIN);
    snprintf(part, sizeof part, "%s/settings", group);
    if (settings_read(file, part, &row->settings)) return -1;
    return h5_get_text(file, group, "spec", row->spec, sizeof row->spec) ||
                   h5_get_text(file, group, "command", row->command, sizeof row->command)
               ? -1
               : 0;
}

static int read_study(Study *study, const H5File *file) {
    H5Column *columns = table_columns();
    if (!columns) return -1;
    size_t count;
    StudyRow *rows =
        h5_read_table(file, "/table", columns, study_column_count, sizeof *rows, &count);
    free(columns);
    if (!rows) return -1;
    int failed = 0;
    for (size_t r = 0; r < count && !failed; r++) {
        StudyRow *row = study_add(study);
        if (row) *row = rows[r];
        failed = !row || read_row(file, row);
    }
    free(rows);
    return failed ? -1 : 0;
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
    runfile_free(&run);
    return failed ? -1 : 0;
}

int study_read(Study *study, const char *path) {
    H5File file;
    char format[64] = "";
    if (h5_open(&file, path)) return -1;
    if (h5_has(&file, "/", "format") && h5_get_text(&file, "/", "format", format, sizeof format)) {
        h5_close(&file);
        return -1;
    }
    bool is_study = strcmp(format, "bcd study") == 0;
    int failed = is_study ? read_study(study, &file) : 0;
    h5_close(&file);
    if (is_study) return failed;
    if (strcmp(format, "bcd run") == 0) return read_run(study, path);
    return error_set("report: %s: neither a study (validity.h5) nor a run (run.h5)", path);
}
