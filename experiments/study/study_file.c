/* A study's HDF5 file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/error.h"
#include "../options/settings.h"
#include "study.h"

enum { GROUP = H5_NAME + 32, PART = GROUP + 16, VERSION = 2 };

static H5Column *table_columns(void) {
    H5Column *columns = malloc((size_t)study_column_count * sizeof *columns);
    if (!columns) error_set("study: out of memory");
    for (int c = 0; columns && c < study_column_count; c++) columns[c] = study_columns[c].column;
    return columns;
}

/* "/curves/NAME/PART" */
static void part_of(char path[PART], const StudyRow *row, const char *part) {
    snprintf(path, PART, "/curves/%s/%s", row->name, part);
}

static void write_part(H5File *file, const StudyRow *row, const char *part, const RunTable *table,
                       const void *rows, size_t row_size, size_t count) {
    char path[PART];
    part_of(path, row, part);
    h5_write_table(file, path, table->column, table->columns, rows, row_size, count);
}

static void write_row(H5File *file, const StudyRow *row) {
    char group[GROUP], path[PART];
    write_part(file, row, "training", &run_curve, row->curve, sizeof *row->curve, row->curve_rows);
    write_part(file, row, "evaluation", &run_evaluation, row->evaluation, sizeof *row->evaluation,
               row->evaluation_rows);
    write_part(file, row, "switches", &run_switches, row->switches, sizeof *row->switches,
               row->switch_rows);
    snprintf(group, sizeof group, "/curves/%s", row->name);
    h5_set_text(file, group, "spec", row->spec);
    part_of(path, row, "provenance");
    provenance_write(file, path, &row->provenance);
    part_of(path, row, "settings");
    settings_write(file, path, &row->settings, OPTION_FREE);
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

static void *read_part(const H5File *file, const StudyRow *row, const char *part,
                       const RunTable *table, size_t row_size, size_t *count) {
    char path[PART];
    part_of(path, row, part);
    return h5_read_table(file, path, table->column, table->columns, row_size, count);
}

static int read_row(const H5File *file, StudyRow *row) {
    char group[GROUP], path[PART];
    row->curve = read_part(file, row, "training", &run_curve, sizeof *row->curve, &row->curve_rows);
    if (!row->curve) return -1;
    row->evaluation = read_part(file, row, "evaluation", &run_evaluation, sizeof *row->evaluation,
                                &row->evaluation_rows);
    if (!row->evaluation) return -1;
    row->switches =
        read_part(file, row, "switches", &run_switches, sizeof *row->switches, &row->switch_rows);
    if (!row->switches) return -1;
    part_of(path, row, "provenance");
    if (provenance_read(file, path, &row->provenance)) return -1;
    options_defaults(&row->settings, COMMAND_TRAIN);
    part_of(path, row, "settings");
    if (settings_read(file, path, &row->settings)) return -1;
    snprintf(group, sizeof group, "/curves/%s", row->name);
    return h5_get_text(file, group, "spec", row->spec, sizeof row->spec);
}

static int read_study(Study *study, const H5File *file) {
    int64_t version;
    if (h5_get_int(file, "/", "version", &version)) return -1;
    if (version != VERSION)
        return error_set(
            "%s: version %lld; this program reads version %d; the same bcd experiment with --out "
            "makes it again from the trainings that are there",
            file->path, (long long)version, VERSION);
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
