#include "report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/error.h"
#include "../commands.h"
#include "../tables/table.h"

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
    for (int f = 0; f < report->findings; f++) print_wrapped(out, report->finding[f]);
    if (*report->published || *report->imbalance) putc('\n', out);
    if (*report->imbalance) print_wrapped(out, report->imbalance);
    if (*report->published) print_wrapped(out, report->published);
    if (report->left_out)
        fprintf(out, "%d more training%s of this group not shown.\n", report->left_out,
                report->left_out > 1 ? "s" : "");
    putc('\n', out);
}

int report_terminal(FILE *out, const Study *study) {
    int *group = calloc((size_t)study->rows + 1, sizeof *group);
    ReportGroup *report = malloc(sizeof *report);
    if (group && report) {
        int groups = study_groups(study, group);
        for (int g = 0; g < groups; g++) {
            report_group(report, study, group, g);
            print_group(out, report);
        }
        char line[REPORT_MEANS][160];
        int lines = report_means(study, line);
        fprintf(out, "Mean B-F multipliers (published: recomputed from the rows of Table 2)\n");
        for (int i = 0; i < lines; i++) fprintf(out, "  %s\n", line[i]);
    }
    bool failed = !group || !report;
    free(group);
    free(report);
    return failed ? error_set("report: out of memory") : 0;
}

/* DIR/report.html beside the first file, unless told otherwise. */
static void page_path(char path[OPTION_TEXT], const Options *options) {
    const char *first = options->positional[0], *slash = strrchr(first, '/');
    if (*options->out)
        snprintf(path, OPTION_TEXT, "%s", options->out);
    else
        snprintf(path, OPTION_TEXT, "%.*sreport.html", slash ? (int)(slash - first) + 1 : 0, first);
}

static bool converged(const Study *study) {
    for (int r = 0; r < study->rows; r++)
        if (isnan(study->row[r].level)) return false;
    return true;
}

static int make_report(Study *study, const Options *options) {
    for (int i = 0; i < options->positionals; i++)
        if (study_read(study, options->positional[i])) return -1;
    if (!study->rows)
        return error_set("report: %s: no training has finished yet", options->positional[0]);
    /* Rows from several files may form new groups. */
    if ((options->positionals > 1 || !converged(study)) && study_converge(study)) return -1;
    char path[OPTION_TEXT];
    bool drawn;
    page_path(path, options);
    if (report_terminal(stdout, study) || report_html(study, path, &drawn)) return -1;
    printf("\npage: %s%s\n", path,
           drawn ? "" : " (without figures: install gnuplot, e.g. apt-get install gnuplot-nox)");
    return 0;
}

int command_report(const Options *options) {
    Study study = {0};
    int status = make_report(&study, options);
    study_free(&study);
    return status;
}
