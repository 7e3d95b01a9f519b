#include "report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../../ref/error.h"
#include "../commands.h"
#include "../study/operations.h"
#include "../study/study_file.h"
#include "../study/study_tables.h"

/* DIR/report.html beside the first file, unless told otherwise. */
static void page_path(char path[OPTION_TEXT], const Options *options, const char *first) {
    const char *slash = strrchr(first, '/');
    if (*options->out)
        snprintf(path, OPTION_TEXT, "%s", options->out);
    else
        snprintf(path, OPTION_TEXT, "%.*sreport.html", slash ? (int)(slash - first) + 1 : 0, first);
}

/* A directory stands for the run in it. */
static void file_path(char path[OPTION_TEXT], const char *given) {
    struct stat status;
    bool is_dir = stat(given, &status) == 0 && S_ISDIR(status.st_mode);
    size_t length = strlen(given);
    while (is_dir && length > 1 && given[length - 1] == '/') length--;
    snprintf(path, OPTION_TEXT, "%.*s%s", (int)length, given, is_dir ? "/run.h5" : "");
}

static bool is_run(const char *path) {
    H5File file;
    char format[16] = "";
    if (h5_open(&file, path)) return false;
    bool run = h5_get_text(&file, "/", "format", format, sizeof format) == 0 &&
               strcmp(format, "bcd run") == 0;
    h5_close(&file);
    return run;
}

/* A file is one of tables, a study or a run. */
static int read_file(Report *report, const char *path) {
    int tables = tables_recognise(path);
    if (tables < 0) return -1;
    if (!tables) {
        report->runs_alone &= is_run(path);
        return study_read(&report->study, path);
    }
    snprintf(report->path[report->files], OPTION_TEXT, "%s", path);
    return tables_read(&report->file[report->files++], path);
}

static int read_files(Report *report, const Options *options) {
    char path[OPTION_TEXT];
    size_t capacity = (size_t)options->positionals + 1; /* one more for the trainings' tables */
    report->file = calloc(capacity, sizeof *report->file);
    report->path = calloc(capacity, sizeof *report->path);
    report->runs_alone = !*options->table; /* asked for by name, every table is there */
    if (!report->file || !report->path) return error_set("report: out of memory");
    for (int i = 0; i < options->positionals; i++) {
        file_path(path, options->positional[i]);
        if (read_file(report, path)) return -1;
    }
    if (!report->study.rows && !report->files)
        return error_set("report: %s: no training has finished yet", options->positional[0]);
    return 0;
}

static bool is_empty(const Table *table) {
    double sum = 0;
    for (int i = 0; i < table->rows * table->columns; i++) sum += table->cell[i].value;
    return !(sum > 0);
}

/* What says nothing here: verdicts that nobody has; beside one's own runs, what the paper published
 * of others. */
static bool is_idle(const Report *report, const Table *table) {
    if (strcmp(table->name, "verdicts") == 0) return is_empty(table);
    return report->runs_alone &&
           (strncmp(table->title, "Table", 5) == 0 || strcmp(table->name, "multipliers") == 0);
}

static void drop_idle(const Report *report, Tables *tables) {
    Tables idle = {0};
    int kept = 0;
    for (int t = 0; t < tables->tables; t++) {
        Table *table = tables->table[t];
        if (is_idle(report, table))
            idle.table[idle.tables++] = table;
        else
            tables->table[kept++] = table;
    }
    tables->tables = kept;
    tables_free(&idle);
}

/* Puts the tables made of the trainings before the files' own. */
static int add_trainings(Report *report) {
    size_t files = (size_t)report->files;
    Tables *file = realloc(report->file, (files + 1) * sizeof *file);
    if (file) report->file = file;
    char(*path)[OPTION_TEXT] = realloc(report->path, (files + 1) * sizeof *path);
    if (path) report->path = path;
    if (!file || !path) return error_set("report: out of memory");
    memmove(file + 1, file, files * sizeof *file);
    memmove(path + 1, path, files * sizeof *path);
    file[0] = (Tables){0};
    *path[0] = 0;
    report->files++;
    answer_add(file, &report->cases);
    if (study_tables(file, &report->study)) return -1;
    drop_idle(report, file);
    return 0;
}

int report_prepare(Report *report) {
    if (!report->study.rows) return 0;
    if (study_prepare(&report->study)) return -1;
    return cases_make(&report->cases, &report->study) || add_trainings(report) ? -1 : 0;
}

void report_free(Report *report) {
    cases_free(&report->cases);
    study_free(&report->study);
    for (int f = 0; f < report->files; f++) tables_free(&report->file[f]);
    free(report->file);
    free(report->path);
    *report = (Report){0};
}

/* ---- text -------------------------------------------------------------------------------------
 */

static int print_table(const Table *table, const Options *options) {
    if (options->markdown) return table_print_markdown(stdout, table);
    if (strcmp(table->name, "answer") || *options->table) return table_print(stdout, table);
    answer_print(stdout, table);
    return 0;
}

/* The number printed; -1 and an error. */
static int print_tables(const Report *report, const Options *options) {
    int printed = 0;
    for (int f = 0; f < report->files; f++)
        for (int t = 0; t < report->file[f].tables; t++) {
            const Table *table = report->file[f].table[t];
            if (*options->table && strcmp(options->table, table->name)) continue;
            if (print_table(table, options)) return -1;
            printed++;
        }
    return printed;
}

/* Fails with the names that there are. */
static int no_table(const Report *report, const Options *options) {
    char names[800] = "";
    for (int f = 0; f < report->files; f++)
        for (int t = 0; t < report->file[f].tables; t++) {
            size_t used = strlen(names);
            snprintf(names + used, sizeof names - used, " %s", report->file[f].table[t]->name);
        }
    return error_set("report: --table %.60s: not in these files; they have%s", options->table,
                     names);
}

/* Without Python the text that was printed is the report. */
static int make_page(const Report *report, const Options *options) {
    char path[OPTION_TEXT], first[OPTION_TEXT];
    file_path(first, options->positional[0]);
    page_path(path, options, first);
    PageResult result = page_write(report, path, options->figures);
    if (result == PAGE_FAILED) return -1;
    if (result == PAGE_WRITTEN)
        printf("page: %s\n", path);
    else
        printf("no page: %s\n", error_message());
    return 0;
}

/* What is computed from the curves is computed anew; what was trained stays as it was. */
static int write_study(const Report *report, const char *path) {
    if (!report->study.rows)
        return error_set("report: --study %s: no trainings in these files", path);
    return study_write(&report->study, path);
}

static int make_report(Report *report, const Options *options) {
    if (read_files(report, options) || report_prepare(report)) return -1;
    if (*report->study.lacking) fprintf(stderr, "bcd: %s\n", report->study.lacking);
    if (*report->study.unfinished) fprintf(stderr, "bcd: %s\n", report->study.unfinished);
    if (*options->study) return write_study(report, options->study);
    int printed = print_tables(report, options);
    if (printed < 0) return -1;
    if (*options->table && !printed) return no_table(report, options);
    return options->markdown || *options->table ? 0 : make_page(report, options);
}

int command_report(const Options *options) {
    Report report = {0};
    int status = make_report(&report, options);
    report_free(&report);
    return status;
}
