/* Tables 15 and 16, each submodel against theory, and the figures. */
#include <math.h>
#include <string.h>

#include "timing.h"

enum { LEAST_PARTS = PAPER_LEAST_UFP, MOST_PARTS = PAPER_LEAST_UFP + PAPER_UFPS - 1 };

static int simulated(double *ms, const TimingPractice *practice, const PaperStep *step,
                     PaperSetting setting) {
    return paper_step_ms(ms, NULL, step, setting, timing_practice(practice, step->gpu, setting));
}

double timing_theory(int k, int parts, bool cached) {
    double sum = 0, up = (parts - k + 1.0) / parts;
    if (k) return ((cached ? up : 1) + up + 1.0 / parts) / 3;
    for (k = 1; k <= parts; k++) sum += timing_theory(k, parts, cached);
    return sum / parts;
}

/* ---- Tables 15 and 16 ---------------------------------------------------------------------------
 */

enum {
    U_PUBLISHED,
    U_ROOFLINE,
    U_ROOFLINE_OFF,
    U_SIMULATED,
    U_OFF,
    U_CACHED,
    U_FILLED,
    U_FLOPS,
    U_FLOPS_OFF,
    U_COLUMNS
};
static const TableColumn ufp_columns[U_COLUMNS] = {
    [U_PUBLISHED] = {"published", "published", "ms", COLUMN_NUMBER, 1},
    [U_ROOFLINE] = {"roofline", "roofline", "ms", COLUMN_NUMBER, 1},
    [U_ROOFLINE_OFF] = {"roofline_deviation", "off", "", COLUMN_DEVIATION, 1},
    [U_SIMULATED] = {"calibrated", "calibrated", "ms", COLUMN_NUMBER, 1},
    [U_OFF] = {"calibrated_deviation", "off", "", COLUMN_DEVIATION, 1},
    [U_CACHED] = {"cached", "cached", "ms", COLUMN_NUMBER, 1},
    [U_FILLED] = {"filled", "filled", "ms/1k tok.", COLUMN_NUMBER, 1},
    [U_FLOPS] = {"flops", "FLOP model", "ms", COLUMN_NUMBER, 1},
    [U_FLOPS_OFF] = {"flops_deviation", "off", "", COLUMN_DEVIATION, 1},
};

static int put_ufp(Table *table, const TimingPractice *practice, const PaperUfp *u, int parts) {
    PaperStep step = {"rtx4090", u->model, {1, u->gpus}, TIMED_BCD, parts, 0};
    static const int column[SETTINGS] = {U_ROOFLINE, U_SIMULATED, U_FILLED};
    double ms;
    table_row(table, "%s 1/%d", u->model, parts);
    table_number(table, U_PUBLISHED, u->ms[parts - LEAST_PARTS], SOURCE_PUBLISHED);
    for (PaperSetting s = 0; s < SETTINGS; s++) {
        if (simulated(&ms, practice, &step, s)) return -1;
        table_number(table, column[s], ms, SOURCE_SIMULATED);
    }
    step.method = TIMED_CACHED;
    if (simulated(&ms, practice, &step, SETTING_CALIBRATED)) return -1;
    table_number(table, U_CACHED, ms, SOURCE_SIMULATED);
    double share = timing_theory(0, parts, false) / timing_theory(0, LEAST_PARTS, false);
    if (parts > LEAST_PARTS) table_number(table, U_FLOPS, u->ms[0] * share, SOURCE_RECOMPUTED);
    table_deviation(table, U_ROOFLINE_OFF, U_ROOFLINE, U_PUBLISHED);
    table_deviation(table, U_OFF, U_SIMULATED, U_PUBLISHED);
    table_deviation(table, U_FLOPS_OFF, U_FLOPS, U_PUBLISHED);
    return 0;
}

int timing_add_ufp(Tables *tables, const TimingPractice *practice) {
    Table *table = tables_add(tables, "tables15and16",
                              "Tables 15 and 16: a step of BCD against UFP, the part that trains",
                              "model, UFP", ufp_columns, U_COLUMNS);
    if (!table) return -1;
    double sum = 0;
    for (size_t i = 0; i < paper_ufp_count; i++)
        for (int parts = LEAST_PARTS; parts <= MOST_PARTS; parts++) {
            if (put_ufp(table, practice, &paper_ufp[i], parts)) return -1;
            double off = table->cell[(table->rows - 1) * U_COLUMNS + U_OFF].value;
            sum += i || parts > LEAST_PARTS ? fabs(off) : 0; /* the first cell is the calibrated */
        }
    table_note(
        table,
        "Means over the submodels; settings as in Table 4.  \"cached\": the outputs of the "
        "frozen prefix are kept (pre-inference); the published times fit better without.  "
        "\"FLOP model\": the published 1/3 times (3/2 + 3/(2M)) / 2.  Mean absolute deviation "
        "of the calibrated cells that are predictions: %.1f %%.",
        100 * sum / (double)(paper_ufp_count * PAPER_UFPS - 1));
    return 0;
}

/* ---- each submodel ------------------------------------------------------------------------------
 */

enum { S_THEORY, S_THEORY_CACHED, S_ONE, S_ONE_CACHED, S_MANY, S_MANY_CACHED, S_COLUMNS };
static const TableColumn submodel_columns[S_COLUMNS] = {
    [S_THEORY] = {"theory", "theory", "/ full", COLUMN_NUMBER, 3},
    [S_THEORY_CACHED] = {"theory_cached", "cached", "/ full", COLUMN_NUMBER, 3},
    [S_ONE] = {"one", "G-1.6B, 1 GPU", "/ full", COLUMN_NUMBER, 3},
    [S_ONE_CACHED] = {"one_cached", "cached", "/ full", COLUMN_NUMBER, 3},
    [S_MANY] = {"many", "G-10B, filled", "/ full", COLUMN_NUMBER, 3},
    [S_MANY_CACHED] = {"many_cached", "cached", "/ full", COLUMN_NUMBER, 3},
};

/* shares[k] of submodel k, shares[parts] the mean: of a full update on the same GPUs. */
static int shares(double *shares, const TimingPractice *practice, PaperStep step, int parts,
                  PaperSetting setting) {
    const Practice *fractions = timing_practice(practice, step.gpu, setting);
    PaperStep full = step;
    double full_ms;
    full.method = TIMED_FULL;
    step.submodels = parts;
    if (paper_step_ms(&full_ms, NULL, &full, setting, fractions) ||
        paper_step_ms(&shares[parts], shares, &step, setting, fractions))
        return -1;
    for (int k = 0; k <= parts; k++) shares[k] /= full_ms;
    return 0;
}

static int put_submodels(Table *table, const TimingPractice *practice, int parts) {
    PaperStep one = {"rtx4090", "G-1.6B", {1, 1}, TIMED_BCD, 0, 0};
    PaperStep many = {"rtx4090", "G-10B", {1, 8}, TIMED_BCD, 0, 0};
    double share[S_COLUMNS][MOST_PARTS + 1];
    for (int cached = 0; cached < 2; cached++) {
        one.method = many.method = cached ? TIMED_CACHED : TIMED_BCD;
        if (shares(share[S_ONE + cached], practice, one, parts, SETTING_CALIBRATED) ||
            shares(share[S_MANY + cached], practice, many, parts, SETTING_FILLED))
            return -1;
    }
    for (int k = 0; k <= parts; k++) {
        if (k < parts)
            table_row(table, "1/%d submodel %d", parts, k + 1);
        else
            table_row(table, "1/%d mean", parts);
        for (int cached = 0; cached < 2; cached++)
            table_number(table, S_THEORY + cached,
                         timing_theory(k == parts ? 0 : k + 1, parts, cached), SOURCE_CLOSED_FORM);
        for (int c = S_ONE; c < S_COLUMNS; c++)
            table_number(table, c, share[c][k], SOURCE_SIMULATED);
    }
    return 0;
}

int timing_add_submodels(Tables *tables, const TimingPractice *practice) {
    Table *table = tables_add(tables, "submodels",
                              "A step of each submodel, of a full update on the same GPUs", "UFP",
                              submodel_columns, S_COLUMNS);
    if (!table) return -1;
    for (int parts = LEAST_PARTS; parts <= MOST_PARTS; parts++)
        if (put_submodels(table, practice, parts)) return -1;
    table_note(table,
               "Submodels contiguous in depth, from the input side.  Theory: forward 1, input "
               "gradients 1, weight gradients 1, of equal parts; cached: a prefix that is kept and "
               "reused often.  The simulated ones add embedding, head, optimizer and transfers.");
    return 0;
}

/* ---- Figure 4 -----------------------------------------------------------------------------------
 */

enum {
    B_OFFLOAD,
    B_OFFLOAD_SIMULATED,
    B_FULL,
    B_FULL_SIMULATED,
    B_BCD,
    B_BCD_SIMULATED,
    B_COLUMNS
};
static const TableColumn figure4_columns[B_COLUMNS] = {
    [B_OFFLOAD] = {"offload", "offload", "ms", COLUMN_NUMBER, 0},
    [B_OFFLOAD_SIMULATED] = {"offload_simulated", "offload, sim.", "ms", COLUMN_NUMBER, 0},
    [B_FULL] = {"distributed", "distributed", "ms", COLUMN_NUMBER, 0},
    [B_FULL_SIMULATED] = {"distributed_simulated", "distrib., sim.", "ms", COLUMN_NUMBER, 0},
    [B_BCD] = {"bcd", "BCD x B-F", "ms", COLUMN_NUMBER, 0},
    [B_BCD_SIMULATED] = {"bcd_simulated", "BCD x B-F, sim.", "ms", COLUMN_NUMBER, 0},
};

static int put_pair(Table *table, const TimingPractice *practice, int column, const PaperStep *step,
                    double published, double times) {
    double ms;
    if (simulated(&ms, practice, step, SETTING_CALIBRATED)) return -1;
    table_number(table, column, published * times,
                 times == 1 ? SOURCE_PUBLISHED : SOURCE_RECOMPUTED);
    table_number(table, column + 1, ms * times, SOURCE_SIMULATED);
    return 0;
}

int timing_add_figure4(Tables *tables, const TimingPractice *practice, double multiplier) {
    Table *table = tables_add(tables, "figure4", "Figure 4: training time by method", "model",
                              figure4_columns, B_COLUMNS);
    if (!table) return -1;
    table->figure = FIGURE_BARS;
    snprintf(table->axis, sizeof table->axis, "ms a step, BCD x %.3g", multiplier);
    for (size_t i = 0; i < paper_distributed_count; i++) {
        const PaperDistributed *d = &paper_distributed[i];
        PaperStep full = {"rtx4090", d->model, d->full, TIMED_FULL, 1, 0};
        PaperStep bcd = {"rtx4090", d->model, d->bcd, TIMED_BCD, 3, 0};
        if (i && strcmp(d[-1].model, d->model) == 0) continue;
        table_row(table, "%s", d->model);
        if (put_pair(table, practice, B_FULL, &full, d->full_ms, 1) ||
            put_pair(table, practice, B_BCD, &bcd, d->bcd_ms, multiplier))
            return -1;
        for (size_t o = 0; o < paper_offload_count; o++) {
            PaperStep offload = {"rtx4090",     d->model, {1, paper_offload[o].gpus},
                                 TIMED_OFFLOAD, 1,        0};
            if (strcmp(paper_offload[o].model, d->model) == 0 &&
                put_pair(table, practice, B_OFFLOAD, &offload, paper_offload[o].offload_ms, 1))
                return -1;
        }
    }
    table_note(
        table,
        "Published (first of each pair, from Tables 3 and 4) and simulated, calibrated as in "
        "Table 4; BCD on half of the GPUs, its steps times the B-F multiplier %.3g "
        "(--multiplier), so that the bars compare whole trainings.",
        multiplier);
    return 0;
}

/* ---- Figure 6 -----------------------------------------------------------------------------------
 */

enum { FIGURE6_MODELS = 3, FIGURE6_COLUMNS = 1 + 2 * FIGURE6_MODELS };

/* Three models, of which the last has the FLOP model's line. */
static int put_figure6(Table *table, const TimingPractice *practice, const PaperUfp *ufp,
                       int parts) {
    double share = timing_theory(0, parts, false) / timing_theory(0, LEAST_PARTS, false);
    table_row(table, "1/%d", parts);
    table_number(table, 0, ufp[FIGURE6_MODELS - 1].ms[0] * share, SOURCE_RECOMPUTED);
    for (int i = 0; i < FIGURE6_MODELS; i++) {
        PaperStep step = {"rtx4090", ufp[i].model, {1, ufp[i].gpus}, TIMED_BCD, parts, 0};
        double ms;
        if (simulated(&ms, practice, &step, SETTING_CALIBRATED)) return -1;
        table_number(table, 1 + 2 * i, ufp[i].ms[parts - LEAST_PARTS], SOURCE_PUBLISHED);
        table_number(table, 2 + 2 * i, ms, SOURCE_SIMULATED);
    }
    return 0;
}

static void name_column(TableColumn *column, const char *model, bool simulation) {
    *column = (TableColumn){.unit = "ms", .kind = COLUMN_NUMBER};
    snprintf(column->name, sizeof column->name, "%s%s", model, simulation ? "_simulated" : "");
    for (char *c = column->name; *c; c++)
        if (*c == '-' || *c == '.') *c = '_';
    snprintf(column->head, sizeof column->head, "%s%s", model, simulation ? " sim." : "");
}

static int add_figure6(Tables *tables, const TimingPractice *practice, const PaperUfp *ufp,
                       const char *name, const char *title) {
    TableColumn columns[FIGURE6_COLUMNS] = {{"flops", "FLOP model", "ms", COLUMN_NUMBER, 0}};
    for (int i = 0; i < 2 * FIGURE6_MODELS; i++)
        name_column(&columns[1 + i], ufp[i / 2].model, i % 2);
    Table *table = tables_add(tables, name, title, "UFP", columns, FIGURE6_COLUMNS);
    if (!table) return -1;
    table->figure = FIGURE_LINES;
    strcpy(table->axis, "ms per iteration");
    for (int parts = LEAST_PARTS; parts <= MOST_PARTS; parts++)
        if (put_figure6(table, practice, ufp, parts)) return -1;
    table_note(table,
               "\"FLOP model\": what operations alone would make of the published %s at 1/3.",
               ufp[FIGURE6_MODELS - 1].model);
    return 0;
}

int timing_add_figure6(Tables *tables, const TimingPractice *practice) {
    return add_figure6(tables, practice, paper_ufp, "figure6",
                       "Figure 6: a step against UFP, GPT") ||
                   add_figure6(tables, practice, paper_ufp + FIGURE6_MODELS, "figure6_llama",
                               "Figure 6: a step against UFP, LLaMA")
               ? -1
               : 0;
}

/* ---- offload against tokens ---------------------------------------------------------------------
 */

enum { O_OFFLOAD, O_RESIDENT, O_TIMES, O_COLUMNS };
static const TableColumn offload_columns[O_COLUMNS] = {
    [O_OFFLOAD] = {"offload", "offload", "ms/1k tok.", COLUMN_NUMBER, 1},
    [O_RESIDENT] = {"resident", "resident", "ms/1k tok.", COLUMN_NUMBER, 1},
    [O_TIMES] = {"times", "offload", "x", COLUMN_NUMBER, 2},
};

int timing_add_offload(Tables *tables, const TimingPractice *practice) {
    Table *table = tables_add(tables, "offload", "Offload is paid per step, not per token: G-1.6B",
                              "tokens a step", offload_columns, O_COLUMNS);
    if (!table) return -1;
    for (int thousand = 1; thousand <= 512; thousand *= 2) {
        PaperStep step = {"rtx4090", "G-1.6B", {1, 1}, TIMED_OFFLOAD, 1, 0};
        double offload, resident;
        step.micro_batches = thousand;
        if (simulated(&offload, practice, &step, SETTING_CALIBRATED)) return -1;
        step.method = TIMED_FULL;
        if (simulated(&resident, practice, &step, SETTING_CALIBRATED)) return -1;
        table_row(table, "%dk", thousand);
        table_number(table, O_OFFLOAD, offload, SOURCE_SIMULATED);
        table_number(table, O_RESIDENT, resident, SOURCE_SIMULATED);
        table_number(table, O_TIMES, offload / resident, SOURCE_SIMULATED);
    }
    table_note(table,
               "One RTX 4090, calibrated as in Table 4, micro-batches of 1 x 1024 tokens.  "
               "\"resident\": the same full update with all state on the card, which would not fit "
               "there.  Table 3 has the first row only.");
    return 0;
}
