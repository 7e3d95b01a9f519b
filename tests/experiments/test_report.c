/* `bcd report`: what it prints of one's own runs, and the page that Python makes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../experiments/commands.h"
#include "../../experiments/report/report.h"
#include "../../experiments/study/study.h"
#include "../leak.h"
#include "cli.h"
#include "report_sample.h"
#include "tables_sample.h"

#define RESULTS BCD_SOURCE_DIR "/experiments/results/"
#define NO_PYTHON "no Python with h5py, matplotlib and jinja2"

/* Elements nest, every id is there once, and nothing is empty that must not be. */
static void check_page(const char *text) {
    static const char *const empty[] = {"meta", "path", "use", "br", "rect"};
    enum { DEEPEST = 64 };
    char open[DEEPEST][32];
    int depth = 0;
    for (const char *at = text; (at = strchr(at, '<')); at++) {
        char name[32];
        bool closes = at[1] == '/';
        if (at[1] == '!' || at[1] == '?') continue;
        size_t length = strcspn(at + 1 + closes, " \t\n/>");
        snprintf(name, sizeof name, "%.*s", (int)length, at + 1 + closes);
        const char *end = strchr(at, '>');
        bool single = !end || end[-1] == '/';
        for (size_t e = 0; e < sizeof empty / sizeof *empty; e++) single |= !strcmp(name, empty[e]);
        if (closes && !CHECK(depth && !strcmp(open[depth - 1], name), "</%s> closes <%s>", name,
                             depth ? open[depth - 1] : ""))
            return;
        if (closes) depth--;
        if (!closes && !single && CHECK(depth < DEEPEST, "too deep"))
            snprintf(open[depth++], sizeof open[0], "%s", name);
    }
    CHECK(depth == 0, "%d elements are not closed", depth);
    for (const char *at = text; (at = strstr(at, " id=")); at++) {
        char id[80];
        snprintf(id, sizeof id, "%.*s", (int)strcspn(at + 5, "'\"") + 6, at);
        CHECK(count_of(text, id) == 1, "%s %zu times", id, count_of(text, id));
    }
}

static void write_study(const char *name, Study study) {
    CHECK(study_write(&study, scratch_path(name)) == 0, "%s", error_message());
    study_free(&study);
}

static void write_tables(const char *name, const char *title) {
    Tables tables = sample_tables();
    CommandLine line;
    command_line_defaults(&line, COMMAND_REPORT);
    snprintf(tables.table[0]->title, sizeof tables.table[0]->title, "%s", title);
    snprintf(tables.provenance.command, sizeof tables.provenance.command, "bcd experiment sample");
    CHECK(tables_write(&tables, &line, scratch_path(name)) == 0, "%s", error_message());
    tables_free(&tables);
}

/* Makes a page; its text, to be freed. */
static char *page_of(const char *files) {
    size_t count;
    const Printed *printed = run(0, "report %s --out page.html", files);
    CHECK(strstr(printed->out, "\npage: page.html\n"), "%s", printed->out);
    char *text = read_bytes("page.html", &count);
    CHECK(count > 0, "no page");
    check_page(text);
    return text;
}

/* Trainings and tables on one page: answer and loss before all else, marks, escapes, figures; a
 * page that loads nothing. */
static void case_page(void) {
    static const char *const expected[] = {
        "<h2>Does BCD match the full update?</h2>",
        "<small>/ full, an update</small>",
        "<h2>resnet8 synthetic sgd</h2>",
        "<section id=\"notes\">",
        "results of these trainings</summary>",
        "<h3>BCD-1/3, seed 1</h3>",
        "<th scope=\"row\">--momentum</th>",
        "peak_state 1.04858e+06 bytes; ",
        "&lt;script&gt;&amp;",
        "<td class=\"p\">12.000<sup title=\"published\">p</sup></td>",
        "<td class=\"c\">12.345<sup title=\"closed form\">c</sup></td>",
        "<td class=\"\">+2.9 %</td>",
        "0.500 \u00B1 0.021<sup",
        "Made by <code>bcd experiment sample</code>",
        "<h2>Sample: times &amp; &#34;more&#34;</h2>",
        "G-&lt;small&gt;<small>ms</small>",
        "<p class=\"note\">A note.</p>",
        "ms per iteration \"; exit ' # &lt;b&gt;</text>",
        "p published"};
    if (!has_figures()) SKIP(NO_PYTHON);
    write_study("study.h5", sample_study());
    write_tables("tables.h5", "A <title> & more");
    char *text = page_of("study.h5 tables.h5");
    for (size_t e = 0; e < sizeof expected / sizeof *expected; e++)
        CHECK(strstr(text, expected[e]), "\"%s\" is missing", expected[e]);
    CHECK(!strstr(text, "<script>") && !strstr(text, "<title> &"), "not escaped");
    CHECK(!strstr(text, "src=") && count_of(text, "url(") == count_of(text, "url(#") &&
              !strstr(text, "<link") && !strstr(text, "@import"),
          "something is loaded");
    CHECK(count_of(text, "<svg") == 2 * 4 + 1, "%zu figures", count_of(text, "<svg"));
    const char *answer = strstr(text, "id=\"answer\""),
               *loss = strstr(text, ">training loss, nats"),
               *table = strstr(text, "<section id=\"table2_");
    CHECK(answer && loss && table && answer < loss && loss < table, "not the answer first");
    free(text);
}

/* Puts what HTML reserves as the page has it. */
static void escape(char out[512], const char *in) {
    size_t used = 0;
    for (; *in && used < 500; in++) {
        const char *entity = *in == '&'    ? "&amp;"
                             : *in == '<'  ? "&lt;"
                             : *in == '>'  ? "&gt;"
                             : *in == '"'  ? "&#34;"
                             : *in == '\'' ? "&#39;"
                                           : NULL;
        used += (size_t)(entity ? snprintf(out + used, 8, "%s", entity)
                                : snprintf(out + used, 2, "%c", *in));
    }
    out[used] = 0;
}

/* Every cell of a table is on the page as the text report prints it, one behind the other. */
static const char *check_cells(const char *at, const Table *table) {
    char escaped[512], element[600], id[80];
    snprintf(id, sizeof id, "<section id=\"%s\">", table->name);
    const char *begin = strstr(at, id);
    if (!CHECK(begin, "no table %s", table->name)) return at;
    at = begin;
    for (int r = 0; r < table->rows && table->figure != FIGURE_TIMELINE; r++)
        for (int c = 0; c < table->columns; c++) {
            escape(escaped, table_format(table, r, c).text);
            snprintf(element, sizeof element, "\">%s<", escaped);
            const char *td = strstr(at, "<td"), *found = td ? strstr(td, element) : NULL;
            if (!CHECK(found && found < strstr(td, "</td>"),
                       "%s, row %d, column %d: no %s in %.80s", table->name, r, c, element,
                       td ? td : ""))
                return at;
            at = found;
        }
    return at;
}

/* The committed results: the page has the tables' numbers, and a figure wherever one belongs. */
static void case_committed_results(void) {
    static const char *const files[] = {RESULTS "memory.h5", RESULTS "cost.h5",
                                        RESULTS "timing.h5"};
    char line[1024] = RESULTS "resnet8-cifar10-full.h5 " RESULTS "resnet8-cifar10-bcd3.h5";
    size_t figures = 4;
    if (!has_figures()) SKIP(NO_PYTHON);
    for (int f = 0; f < 3; f++) snprintf(line + strlen(line), 300, " %s", files[f]);
    char *text = page_of(line);
    const char *at = text;
    for (int f = 0; f < 3; f++) {
        Tables tables = {0};
        CHECK(tables_read(&tables, files[f]) == 0, "%s", error_message());
        for (int t = 0; t < tables.tables; t++) {
            at = check_cells(at, tables.table[t]);
            figures += tables.table[t]->figure != FIGURE_NONE;
        }
        tables_free(&tables);
    }
    CHECK(figures > 9 && count_of(text, "<svg") == figures, "%zu figures, not %zu",
          count_of(text, "<svg"), figures);
    free(text);
}

/* Of many cases the first sixteen are drawn, all are there. */
static void case_page_of_many(void) {
    enum { MORE = 18 };
    Study study = sample_study();
    if (!has_figures()) SKIP(NO_PYTHON);
    for (int i = 0; i < MORE; i++) {
        sample_seed(&study, 0, 1, 1);
        StudyRow *row = &study.row[study.rows - 1];
        row->batch = row->settings.batch = 100 + i;
        free(row->curve); /* only memory can be drawn */
        free(row->evaluation);
        row->curve = NULL;
        row->evaluation = NULL;
        row->curve_rows = row->evaluation_rows = 0;
    }
    write_study("many.h5", study);
    char *text = page_of("many.h5");
    CHECK(count_of(text, "<h2>resnet8 synthetic") == MORE + 1, "cases are missing");
    CHECK(count_of(text, "<svg") == 8 + 14 && count_of(text, "the first 16 networks") == 4,
          "%zu figures", count_of(text, "<svg"));
    free(text);
}

/* Without Python the text is the report, and says the line to type; nothing is written. */
static void case_without_python(void) {
    char keep[512];
    const char *old = getenv("PYTHON");
    snprintf(keep, sizeof keep, "%s", old ? old : "");
    write_study("plain.h5", sample_study());
    setenv("PYTHON", "/nowhere/python", 1);
    check_error(run(1, "report plain.h5 --out plain.html"), "figures need Python");
    const Printed *printed = run(0, "report plain.h5");
    if (old)
        setenv("PYTHON", keep, 1);
    else
        unsetenv("PYTHON");
    CHECK(strstr(printed->out, "\nno page: figures need Python") &&
              strstr(printed->out, "apt-get install") &&
              strstr(printed->out, "python3-matplotlib") &&
              !strncmp(printed->out, "Does BCD match the full update?", 31),
          "%s", printed->out);
    CHECK(!file_exists(scratch_path("plain.html")) && !file_exists(scratch_path("report.html")),
          "an empty page");
}

/* One's own two runs, by their directories: the answer first, nothing of the paper's. */
static void case_own_runs(void) {
    static const char line[] =
        "train --model resnet:depth=8,width=2 --data synthetic --limit 32 --batch 4 --threads 1 "
        "--steps 24 --quiet --eval-every 12 ";
    run(0, "%s --out mine/full", line);
    run(0, "%s --out b --submodels 3 --switch-every 4", line);
    const Printed *printed = run(0, "report mine/full b --out own.html");
    CHECK(!strncmp(printed->out, "resnet-8x2 synthetic[:32] sgd BCD-1/3: ", 39), "%s",
          printed->out);
    CHECK(strstr(printed->out, " x memory, ") && strstr(printed->out, " x time per update, ") &&
              strstr(printed->out, " x updates\n"),
          "%.300s", printed->out);
    CHECK(!strstr(printed->out, "Table 2") && !strstr(printed->out, "B-F multipliers"), "%s",
          printed->out);
    printed = run(0, "report mine/full b --table table2_images");
    CHECK(!strncmp(printed->out, "Table 2", 7), "%s", printed->out);
    check_error(run(1, "report mine"), "mine/run.h5");
    check_error(run(2, "report mine/full --out mine/full/../full/run.h5"),
                "it is one of the inputs");
    check_error(run(2,
                    "gradients --checkpoint mine/full/checkpoint.h5 --batch b/run.h5 --out "
                    "b/run.h5"),
                "it is one of the inputs");
    if (!has_figures()) SKIP(NO_PYTHON);
    size_t count;
    run(0, "report b/ --out b.html");
    char *page = read_bytes("b.html", &count);
    CHECK(strstr(page, "<td>b</td>"), "the page does not name a run by its directory");
    free(page);
}

/* A page that cannot be written is an error; what is no regular file is written to, not replaced.
 */
static void case_where_it_goes(void) {
    if (!has_figures()) SKIP(NO_PYTHON);
    write_tables("some.h5", "Some");
    check_error(run(1, "report some.h5 --out /nowhere/at/all.html"), "/nowhere/at/all.html");
    CHECK(symlink("linked.html", scratch_path("link.html")) == 0, "no link");
    run(0, "report some.h5 --out link.html --figures drawn");
    CHECK(inode_of("linked.html") && inode_of("link.html") == inode_of("linked.html"), "replaced");
    run(0, "report some.h5 --out /dev/null");
    CHECK(!file_exists("/dev/null") || fopen("/dev/full", "r"), "the device is a file now");
    size_t count;
    char *svg = read_bytes("drawn/second-Sample--times----more-.svg", &count);
    CHECK(count && strncmp(svg, "<?xml", 5) == 0, "no SVG");
    free(svg);
    char *pdf = read_bytes("drawn/second-Sample--times----more-.pdf", &count);
    CHECK(count && strncmp(pdf, "%PDF", 4) == 0, "no PDF");
    free(pdf);
}

/* A file may call any table "answer". */
static void case_foreign_answer(void) {
    static const TableColumn column = {"x", "x", "", COLUMN_NUMBER, 0, SOURCE_NONE};
    Tables tables = {0};
    CommandLine line;
    command_line_defaults(&line, COMMAND_REPORT);
    Table *table = tables_add(&tables, "answer", "Of something else", "row", &column, 1);
    table_row(table, "one");
    table_put(table, 0, 42);
    CHECK(tables_write(&tables, &line, scratch_path("foreign.h5")) == 0, "%s", error_message());
    tables_free(&tables);
    write_study("ours.h5", sample_study());
    const char *out = run(0, "report foreign.h5 ours.h5 --out foreign.html")->out;
    CHECK(strstr(out, "Of something else") && strstr(out, "42"), "%s", out);
    if (!has_figures()) return;
    size_t count;
    char *page = read_bytes("foreign.html", &count);
    CHECK(strstr(page, "Of something else") && strstr(page, ">42<"), "%s", page);
    free(page);
}

/* The command in this process, without its text. */
static void report_once(void) {
    CommandLine line;
    char words[512];
    int out = dup(STDOUT_FILENO);
    fflush(stdout);
    CHECK(out >= 0 && freopen("/dev/null", "w", stdout), "no /dev/null");
    snprintf(words, sizeof words, "report %s --markdown", scratch_path("once.h5"));
    int status = parse_line(&line, words) ? -1 : command_report(&line);
    fflush(stdout);
    CHECK(dup2(out, STDOUT_FILENO) >= 0 && close(out) == 0, "no output");
    CHECK(status == 0, "%s", error_message());
}

static void case_nothing_is_left(void) {
    write_study("once.h5", sample_study());
    CHECK(allocations_left(report_once) == 0, "memory of a report is not freed");
}

void test_report(void) {
    RUN(case_page);
    RUN(case_committed_results);
    RUN(case_page_of_many);
    RUN(case_without_python);
    RUN(case_own_runs);
    RUN(case_where_it_goes);
    RUN(case_foreign_answer);
    RUN(case_nothing_is_left);
}
