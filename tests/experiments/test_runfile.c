/* The rows of run.h5: in memory, in the file and back, cut at a step, and averaged. */
#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../../experiments/store/runfile.h"
#include "../../ref/base/error.h"
#include "../data/scratch.h"
#include "../test.h"

/* Returns a row of the curve that differs from the others in every field. */
static CurveRow curve_row(size_t i) {
    double x = (double)i;
    return (CurveRow){i + 1, 4 * i + 1, 1 / (x + 1), x / 1000, (int)(i % 3), x / 8};
}

static void add_curve(RunFile *run, size_t end) {
    for (size_t i = run->curve_rows; i < end; i++) {
        CurveRow row = curve_row(i);
        runfile_add(run, RUN_CURVE, &row);
    }
}

static void check_curve(const RunFile *run, size_t count, const char *what) {
    CHECK(run->curve_rows == count, "%s: %zu rows, not %zu", what, run->curve_rows, count);
    for (size_t i = 0; i < run->curve_rows; i++) {
        CurveRow a = run->curve[i], b = curve_row(i);
        CHECK(a.step == b.step && a.samples == b.samples && a.loss == b.loss && a.lr == b.lr &&
                  a.submodel == b.submodel && a.seconds == b.seconds,
              "%s: row %zu", what, i);
    }
}

/* Rows are allocated by 256, 512, ...: at these counts, one less and one more, a table comes back
 * and can grow further. */
static void rows_come_back(void) {
    static const size_t counts[] = {0, 1, 255, 256, 257, 511, 512, 513, 1500};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        RunFile run = {.status = "running"}, back;
        char path[512];
        snprintf(path, sizeof path, "%s", scratch_path("rows.h5"));
        options_defaults(&run.settings, COMMAND_TRAIN);
        run.settings.batch = 4;
        run.resident = 3ULL << 32; /* its lowest bytes are 0 */
        provenance_fill(&run.provenance, 5);
        add_curve(&run, counts[c]);
        check_curve(&run, counts[c], "in memory");
        CHECK(runfile_write(&run, path) == 0, "%s", error_message());
        runfile_free(&run);
        if (!CHECK(runfile_read(&back, path) == 0, "%s", error_message())) continue;
        check_curve(&back, counts[c], "read");
        CHECK(back.resident == 3ULL << 32, "resident %llu", (unsigned long long)back.resident);
        add_curve(&back, counts[c] + 600);
        check_curve(&back, counts[c] + 600, "grown");
        runfile_free(&back);
    }
}

/* Each table loses its rows after the step, and keeps all others. */
static void a_cut_keeps_what_was_done(void) {
    static const struct {
        uint64_t step;
        size_t left[RUN_PARTS]; /* the rows that each table keeps */
    } rows[] = {
        {9, {9, 4, 3, 2}}, {8, {8, 4, 2, 2}}, {7, {7, 3, 2, 2}}, {4, {4, 2, 2, 2}},
        {3, {3, 1, 1, 1}}, {1, {1, 0, 1, 1}}, {0, {0, 0, 1, 1}},
    };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        RunFile run = {.status = "running"};
        add_curve(&run, 9); /* steps 1 to 9 */
        for (uint64_t step = 2; step <= 8; step += 2)
            runfile_add(&run, RUN_EVALUATIONS, &(EvaluationRow){.step = step});
        for (uint64_t step = 0; step <= 9; step += step ? 5 : 4)
            runfile_add(&run, RUN_SWITCHES, &(SwitchRow){.step = step});
        runfile_add_session(&run, 0, 0);
        runfile_add_session(&run, 4, 0);
        runfile_cut(&run, rows[r].step);
        const size_t left[] = {run.curve_rows, run.evaluation_rows, run.switch_rows,
                               run.session_rows};
        for (int p = 0; p < RUN_PARTS; p++)
            CHECK(left[p] == rows[r].left[p], "after step %d: %zu rows in %s, not %zu",
                  (int)rows[r].step, left[p], run_parts[p].group, rows[r].left[p]);
        check_curve(&run, rows[r].step, "what is left");
        runfile_free(&run);
    }
}

/* Returns a curve of twelve updates, whose loss is the number of the update. */
static RunFile counting(void) {
    RunFile run = {.status = "running"};
    for (uint64_t step = 1; step <= 12; step++)
        runfile_add(&run, RUN_CURVE, &(CurveRow){.step = step, .loss = (double)step});
    return run;
}

static void smooth_is_a_mean(void) {
    static const struct {
        size_t row, window;
        double mean;
    } rows[] = {{0, 1, 1}, {0, 4, 1},   {1, 2, 1.5},   {2, 2, 2.5},  {2, 3, 2},
                {2, 4, 2}, {11, 1, 12}, {11, 4, 10.5}, {11, 12, 6.5}};
    RunFile run = counting();
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        double mean = runfile_smooth(&run, rows[r].row, rows[r].window);
        CHECK(mean == rows[r].mean, "row %zu, window %zu: %g", rows[r].row, rows[r].window, mean);
    }
    runfile_free(&run);
}

/* A phase from `begin` to `end` has whole windows from its beginning on. */
static void windows_by_hand(void) {
    static const struct {
        uint64_t begin, end;
        int window;
        double earlier, last; /* NAN: the phase had no two windows */
    } rows[] = {
        {0, 12, 3, 8, 11},    {0, 11, 3, 5, 8},      {0, 6, 3, 2, 5},     {0, 5, 3, NAN, NAN},
        {2, 12, 3, 7, 10},    {2, 8, 3, 4, 7},       {2, 7, 3, NAN, NAN}, {6, 12, 3, 8, 11},
        {7, 12, 3, NAN, NAN}, {11, 12, 1, NAN, NAN}, {10, 12, 1, 11, 12}, {0, 12, 6, 3.5, 9.5},
        {0, 12, 7, NAN, NAN},
    };
    RunFile run = counting();
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        double earlier, last;
        runfile_windows(&run, rows[r].begin, rows[r].end, rows[r].window, &earlier, &last);
        bool none = isnan(rows[r].last) && isnan(last) && isnan(earlier);
        CHECK(none || (earlier == rows[r].earlier && last == rows[r].last),
              "%d to %d by %d: %g, %g", (int)rows[r].begin, (int)rows[r].end, rows[r].window,
              earlier, last);
    }
    runfile_free(&run);
}

/* A curve that begins after the phase, as in a run whose file was lost, has no windows. */
static void windows_of_half_a_curve(void) {
    RunFile run = {.status = "running"};
    double earlier, last;
    for (uint64_t step = 8; step <= 12; step++)
        runfile_add(&run, RUN_CURVE, &(CurveRow){.step = step, .loss = 1});
    runfile_windows(&run, 0, 12, 3, &earlier, &last);
    CHECK(isnan(earlier) && isnan(last), "%g, %g", earlier, last);
    runfile_free(&run);
}

static void check_sessions(const RunFile *run, size_t count, bool moved, const char *what) {
    CHECK(run->session_rows == count, "%s: %zu sessions", what, run->session_rows);
    CHECK(runfile_moved(run) == moved, "%s: moved %d", what, !moved);
}

/* A session that did nothing is replaced; another device or precision starts a new one. */
static void sessions_are_told_apart(void) {
    RunFile run = {.status = "running"};
    Provenance *now = &run.provenance;
    provenance_fill(now, 5);
    check_sessions(&run, 0, false, "none");
    runfile_add_session(&run, 0, 0);
    check_sessions(&run, 1, false, "one");
    runfile_add_session(&run, 0, 0);
    check_sessions(&run, 1, false, "at the same step");
    runfile_add_session(&run, 3, 0);
    check_sessions(&run, 2, false, "the same device");
    provenance_set_device(now, "plain", "fp32", NULL);
    runfile_add_session(&run, 4, 0);
    check_sessions(&run, 3, true, "another device");
    provenance_set_device(now, "plain", "bf16", NULL);
    now->threads = 7;
    runfile_add_session(&run, 5, 3);
    check_sessions(&run, 4, true, "another precision");
    const SessionRow *last = &run.sessions[3];
    CHECK(last->step == 5 && strcmp(last->device, "plain") == 0 &&
              strcmp(last->precision, "bf16") == 0 && strcmp(last->commit, now->commit) == 0 &&
              strcmp(last->started, now->started) == 0 && strcmp(last->computer, now->cpu) == 0,
          "%s on %s, commit %s, of %s", last->precision, last->device, last->commit, last->started);
    CHECK(last->threads == 7 && last->ranks == 3, "%d threads, %d ranks", last->threads,
          last->ranks);
    runfile_free(&run);
}

/* A run's arrays grow before a row is added, so no row lies outside of the allocated memory. */
static void rows_fit_their_array(void) {
    RunFile run = {0};
    uint64_t count = 0;
    for (bool fits = true; fits && count < 1030; count++) {
        runfile_add(&run, RUN_CURVE, &(CurveRow){.step = count});
        fits = run.curve_rows * sizeof *run.curve <= malloc_usable_size(run.curve);
        CHECK(fits, "%zu rows in %zu bytes", run.curve_rows, malloc_usable_size(run.curve));
    }
    for (uint64_t i = 0; i < count; i++)
        CHECK(run.curve[i].step == i, "row %d is %d", (int)i, (int)run.curve[i].step);
    runfile_free(&run);
}

void test_runfile(void) {
    RUN(rows_fit_their_array);
    RUN(rows_come_back);
    RUN(a_cut_keeps_what_was_done);
    RUN(smooth_is_a_mean);
    RUN(windows_by_hand);
    RUN(windows_of_half_a_curve);
    RUN(sessions_are_told_apart);
}
