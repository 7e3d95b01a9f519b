#include "report.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../ref/base/error.h"
#include "../alloc.h"
#include "../commands.h"
#include "../study/converge.h"
#include "../study/measures.h"

typedef struct {
    Study study;
    Cases cases;
    bool only_runs; /* no files of experiments: the paper's tables are left out */
    int files;
    Tables *file; /* [files]; those of file[0] are made of the trainings */
} Report;

/* ---- files ----------------------------------------------------------------------------------- */

/* Takes run.h5 of a directory. */
static Text file_path(const char *given) {
    struct stat status;
    bool is_dir = stat(given, &status) == 0 && S_ISDIR(status.st_mode);
    size_t length = strlen(given);
    while (is_dir && length > 1 && given[length - 1] == '/') length--;
    return text_of("%.*s%s", (int)length, given, is_dir ? "/run.h5" : "");
}

/* Reads a file of tables, a study or a run. */
static int read_file(Report *report, const char *path) {
    char format[H5_NAME];
    if (h5_format(path, format)) return -1;
    if (strcmp(format, tables_format) != 0) {
        report->only_runs &= strcmp(format, "bcd run") == 0;
        return study_read(&report->study, path);
    }
    return tables_read(&report->file[report->files++], path);
}

static int read_files(Report *report, const CommandLine *line) {
    report->file = xcalloc((size_t)line->positionals + 1, sizeof *report->file);
    report->files = 1;
    report->only_runs = !*line->report.table; /* --table finds all tables */
    for (int i = 0; i < line->positionals; i++)
        if (read_file(report, file_path(line->positional[i]).text)) return -1;
    if (!report->study.rows && report->files == 1)
        return error_set("report: %s: no training has finished yet", line->positional[0]);
    return 0;
}

static void report_free(Report *report) {
    cases_free(&report->cases);
    study_free(&report->study);
    for (int f = 0; f < report->files; f++) tables_free(&report->file[f]);
    free(report->file);
}

/* ---- text ------------------------------------------------------------------------------------ */

/* Prints the tables, or that of --table; when there is none of that name, the error lists all
 * names. */
static int print_tables(const Report *report, const ReportFlags *flags) {
    char names[800] = "";
    int printed = 0;
    for (int f = 0; f < report->files; f++)
        for (int t = 0; t < report->file[f].tables; t++) {
            const Table *table = report->file[f].table[t];
            size_t used = strlen(names);
            snprintf(names + used, sizeof names - used, " %s", table->name);
            if (*flags->table && strcmp(flags->table, table->name)) continue;
            if (flags->markdown ? table_print_markdown(stdout, table) : table_print(stdout, table))
                return -1;
            printed++;
        }
    if (printed || !*flags->table) return 0;
    return error_set("report: --table %.60s: not in these files; they have%s", flags->table, names);
}

/* ---- the page -------------------------------------------------------------------------------- */

/* page.py makes it from a scratch file: the trainings with their order and names, their tables, and
 * those of the files, with each cell as it is printed. */

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

/* Calls page.py, which draws from a scratch file with the report or the tables.  Writes the whole
 * file or nothing.  `what`: "cycle", or a directory for each figure as SVG and PDF, or "". */
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

PythonResult page_draw_cycle(const Tables *tables, const char *path) {
    return draw(path, "cycle", NULL, tables);
}

/* --out, or else report.html in the directory of the first file. */
static Text page_path(const char *out, const char *first) {
    const char *slash = strrchr(first, '/');
    if (*out) return text_of("%s", out);
    return text_of("%.*sreport.html", slash ? (int)(slash - first) + 1 : 0, first);
}

/* Without Python there is no page, which is an error only if the command asks for one; the text has
 * been printed already. */
static int make_page(const Report *report, const CommandLine *line) {
    const Text path = page_path(line->options.out, file_path(line->positional[0]).text);
    PythonResult result = draw(path.text, line->report.figures, report, NULL);
    const bool asked = *line->options.out || *line->report.figures;
    if (result == PYTHON_FAILED || (result == PYTHON_MISSING && asked)) return -1;
    if (result == PYTHON_DONE)
        printf("page: %s\n", path.text);
    else
        printf("no page: %s\n", error_message());
    return 0;
}

/* ---- the command ----------------------------------------------------------------------------- */

/* Writes the study with what study_tables has computed anew. */
static int write_study(const Report *report, const char *path) {
    if (!report->study.rows)
        return error_set("report: --study %s: no trainings in these files", path);
    return study_write(&report->study, path);
}

static int make_report(Report *report, const CommandLine *line) {
    if (read_files(report, line)) return -1;
    if (report->study.rows &&
        study_tables(&report->file[0], &report->cases, &report->study, !report->only_runs))
        return -1;
    const char *unfinished = report->study.unfinished.text;
    if (*unfinished) fprintf(stderr, "bcd: %s\n", unfinished);
    if (*line->report.study) return write_study(report, line->report.study);
    if (print_tables(report, &line->report)) return -1;
    return line->report.markdown || *line->report.table ? 0 : make_page(report, line);
}

int command_report(const CommandLine *line) {
    Report report = {0};
    int status = make_report(&report, line);
    report_free(&report);
    return status;
}
