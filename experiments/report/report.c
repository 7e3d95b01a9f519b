#include "report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/error.h"
#include "../commands.h"
#include "../study/operations.h"
#include "../study/study_tables.h"

static void print_line(FILE *out, const ReportLine *line) {
    int last = REPORT_CELLS - 1;
    while (last > 0 && !*line->cell[last]) last--;
    for (int c = 0; c <= last; c++)
        fprintf(out, "%s%*s", c ? " " : "", report_columns[c].width, line->cell[c]);
    putc('\n', out);
}

static void print_head(FILE *out, bool images) {
    ReportLine head, unit;
    for (int c = 0; c < REPORT_CELLS; c++) {
        snprintf(head.cell[c], sizeof head.cell[c], "%s", report_columns[c].head);
        snprintf(unit.cell[c], sizeof unit.cell[c], "%s", report_columns[c].unit);
        if (!strcmp(head.cell[c], "score"))
            snprintf(head.cell[c], sizeof head.cell[c], images ? "accuracy" : "perplex.");
    }
    print_line(out, &head);
    print_line(out, &unit);
    for (int c = 0; c < REPORT_CELLS; c++)
        fprintf(out, "%s%.*s", c ? " " : "", abs(report_columns[c].width), "------------");
    putc('\n', out);
}

static void print_group(FILE *out, const ReportGroup *report) {
    print_wrapped(out, report->title);
    print_wrapped(out, report->subtitle);
    putc('\n', out);
    print_head(out, study_is_images(report->row[0]));
    for (int i = 0; i < report->lines; i++) {
        if (i && strcmp(report->line[i].cell[0], report->line[i - 1].cell[0])) putc('\n', out);
        print_line(out, &report->line[i]);
    }
    if (report->findings) putc('\n', out);
    for (int f = 0; f < report->findings; f++) {
        print_wrapped(out, report->finding[f]);
        print_wrapped(out, report->comparison[f]);
    }
    if (*report->published || *report->imbalance) putc('\n', out);
    if (*report->imbalance) print_wrapped(out, report->imbalance);
    if (*report->published) print_wrapped(out, report->published);
    if (report->left_out)
        fprintf(out, "%d more training%s of this group not shown.\n", report->left_out,
                report->left_out > 1 ? "s" : "");
    putc('\n', out);
}

static int for_each_group(FILE *out, const Study *study,
                          void (*print)(FILE *out, const ReportGroup *report)) {
    int *group = calloc((size_t)study->rows + 1, sizeof *group);
    ReportGroup *report = malloc(sizeof *report);
    int groups = group && report ? study_groups(study, group) : 0;
    for (int g = 0; g < groups; g++) {
        report_group(report, study, group, g);
        print(out, report);
    }
    bool failed = !group || !report;
    free(group);
    free(report);
    return failed ? error_set("report: out of memory") : 0;
}

int report_terminal(FILE *out, const Study *study) {
    char line[REPORT_MEANS][160];
    if (for_each_group(out, study, print_group)) return -1;
    int lines = report_means(study, line);
    fprintf(out, "Mean B-F multipliers (published: recomputed from the rows of Table 2)\n");
    for (int i = 0; i < lines; i++) fprintf(out, "  %s\n", line[i]);
    return 0;
}

/* ---- Markdown --------------------------------------------------------------------------------
 */

static void print_group_markdown(FILE *out, const ReportGroup *report) {
    bool images = study_is_images(report->row[0]);
    fprintf(out, "### %s\n\n%s\n\n", report->title, report->subtitle);
    for (int c = 0; c < REPORT_CELLS; c++) {
        const ReportColumn *column = &report_columns[c];
        const char *head = strcmp(column->head, "score") ? column->head
                           : images                      ? "accuracy"
                                                         : "perplexity";
        fprintf(out, "| %s%s%s ", head, *column->unit ? " " : "", column->unit);
    }
    fprintf(out, "|\n");
    for (int c = 0; c < REPORT_CELLS; c++) fputs(c < 2 ? "|---" : "|---:", out);
    fprintf(out, "|\n");
    for (int i = 0; i < report->lines; i++) {
        for (int c = 0; c < REPORT_CELLS; c++) fprintf(out, "| %s ", report->line[i].cell[c]);
        fprintf(out, "|\n");
    }
    for (int f = 0; f < report->findings; f++)
        fprintf(out, "\n%s %s\n", report->finding[f], report->comparison[f]);
    if (*report->imbalance) fprintf(out, "\n%s\n", report->imbalance);
    if (*report->published) fprintf(out, "\n%s\n", report->published);
    putc('\n', out);
}

int report_markdown(FILE *out, const Study *study) {
    return for_each_group(out, study, print_group_markdown);
}

/* ---- the command -----------------------------------------------------------------------------
 */

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
    /* Rows from several files may form new pairs; old files were made by another rule. */
    if (study_converge(&report->study)) return -1;
    /* A model that this program does not know has no operations, and the report does without. */
    for (int r = 0; r < report->study.rows; r++) study_operations(&report->study.row[r]);
    Tables *means = &report->file[report->files];
    if (study_tables(means, &report->study)) return -1;
    report->files += means->tables > 0;
    return 0;
}

static int print_report(const Report *report, bool markdown) {
    if (report->study.rows) {
        if (markdown ? report_markdown(stdout, &report->study)
                     : report_terminal(stdout, &report->study))
            return -1;
        if (report->files) putchar('\n');
    }
    for (int f = 0; f < report->files; f++)
        for (int t = 0; t < report->file[f].tables; t++) {
            const Table *table = report->file[f].table[t];
            if (markdown ? table_print_markdown(stdout, table) : table_print(stdout, table))
                return -1;
        }
    return 0;
}

static int make_report(Report *report, const Options *options) {
    char path[OPTION_TEXT];
    bool drawn;
    if (read_files(report, options) || print_report(report, options->markdown)) return -1;
    if (options->markdown) return 0;
    page_path(path, options);
    if (report_html(report, path, &drawn)) return -1;
    printf("\npage: %s%s\n", path,
           drawn ? "" : " (without figures: install gnuplot, e.g. apt-get install gnuplot-nox)");
    return 0;
}

int command_report(const Options *options) {
    Report report = {0};
    int status = make_report(&report, options);
    study_free(&report.study);
    for (int f = 0; f < report.files; f++) tables_free(&report.file[f]);
    free(report.file);
    return status;
}
