#include "report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/error.h"
#include "../commands.h"
#include "../study/operations.h"
#include "../study/study_tables.h"

/* DIR/report.html beside the first file, unless told otherwise. */
static void page_path(char path[OPTION_TEXT], const Options *options) {
    const char *first = options->positional[0], *slash = strrchr(first, '/');
    if (*options->out)
        snprintf(path, OPTION_TEXT, "%s", options->out);
    else
        snprintf(path, OPTION_TEXT, "%.*sreport.html", slash ? (int)(slash - first) + 1 : 0, first);
}

/* A file is one of tables, a study or a run. */
static int read_file(Report *report, const char *path) {
    int tables = tables_recognise(path);
    if (tables < 0) return -1;
    return tables ? tables_read(&report->file[report->files++], path)
                  : study_read(&report->study, path);
}

static int read_files(Report *report, const Options *options) {
    report->file = calloc((size_t)options->positionals + 1, sizeof *report->file);
    if (!report->file) return error_set("report: out of memory");
    for (int i = 0; i < options->positionals; i++)
        if (read_file(report, options->positional[i])) return -1;
    if (!report->study.rows && !report->files)
        return error_set("report: %s: no training has finished yet", options->positional[0]);
    return 0;
}

/* Puts the tables made of the trainings before the files' own. */
static int add_trainings(Report *report) {
    Tables *grown = realloc(report->file, (size_t)(report->files + 1) * sizeof *grown);
    if (!grown) return error_set("report: out of memory");
    report->file = grown;
    memmove(grown + 1, grown, (size_t)report->files * sizeof *grown);
    memset(grown, 0, sizeof *grown);
    report->files++;
    return study_tables(grown, &report->study);
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
    *report = (Report){0};
}

/* The number printed; -1 and an error. */
static int print_tables(const Report *report, const Options *options) {
    int printed = 0;
    for (int f = 0; f < report->files; f++)
        for (int t = 0; t < report->file[f].tables; t++) {
            const Table *table = report->file[f].table[t];
            if (*options->table && strcmp(options->table, table->name)) continue;
            if (options->markdown ? table_print_markdown(stdout, table)
                                  : table_print(stdout, table))
                return -1;
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

static int make_report(Report *report, const Options *options) {
    char path[OPTION_TEXT];
    bool drawn;
    if (read_files(report, options) || report_prepare(report)) return -1;
    if (*report->study.lacking) fprintf(stderr, "bcd: %s\n", report->study.lacking);
    if (*report->study.unfinished) fprintf(stderr, "bcd: %s\n", report->study.unfinished);
    int printed = print_tables(report, options);
    if (printed < 0) return -1;
    if (*options->table && !printed) return no_table(report, options);
    if (options->markdown || *options->table) return 0;
    page_path(path, options);
    if (report_html(report, path, &drawn)) return -1;
    printf("\npage: %s%s\n", path,
           drawn ? "" : " (without figures: install gnuplot, e.g. apt-get install gnuplot-nox)");
    return 0;
}

int command_report(const Options *options) {
    Report report = {0};
    int status = make_report(&report, options);
    report_free(&report);
    return status;
}
