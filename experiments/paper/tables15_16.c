/* Tables 15 and 16: a step of BCD against UFP, the unfrozen part. */
#include <math.h>

#include "paper.h"

enum { MIN = PAPER_MIN_UFP };

double timing_flop_ratio(int k, int submodels, bool cached) {
    double sum = 0, up = (submodels - k + 1.0) / submodels;
    if (k) return ((cached ? up : 1) + up + 1.0 / submodels) / 3;
    for (k = 1; k <= submodels; k++) sum += timing_flop_ratio(k, submodels, cached);
    return sum / submodels;
}

static void add_step(Table *table, const PaperStep *step) {
    PaperStep cached = *step;
    cached.method = TIMED_CACHED;
    double share = timing_flop_ratio(0, step->submodels, false) / timing_flop_ratio(0, MIN, false);
    double flops = step->submodels > MIN ? paper_bcd_ms(step->model) * share : NAN;
    table_row(table, "%s 1/%d", step->model, step->submodels);
    paper_put_step(table, 0, step);
    table_put(table, 5, paper_step_ms(table, &cached, SETTING_CALIBRATED), flops,
              flops / step->ms - 1);
}

void paper_add_table15_16(Tables *tables) {
    static const TableColumn columns[] = {
        {"published", "published", "ms", COLUMN_NUMBER, 1, SOURCE_PUBLISHED},
        {"roofline", "roofline", "ms", COLUMN_NUMBER, 1, SOURCE_SIMULATED},
        {"roofline_deviation", "off", "", COLUMN_DEVIATION, 1, SOURCE_NONE},
        {"calibrated", "calibrated", "ms", COLUMN_NUMBER, 1, SOURCE_SIMULATED},
        {"calibrated_deviation", "off", "", COLUMN_DEVIATION, 1, SOURCE_NONE},
        {"cached", "cached", "ms", COLUMN_NUMBER, 1, SOURCE_SIMULATED},
        {"flops", "FLOP model", "ms", COLUMN_NUMBER, 1, SOURCE_RECOMPUTED},
        {"flops_deviation", "off", "", COLUMN_DEVIATION, 1, SOURCE_NONE},
    };
    Table *table = tables_add(tables, "tables15and16",
                              "Tables 15 and 16: a step of BCD against UFP, the unfrozen part",
                              "model, UFP", columns, 8);
    for (const PaperStep *step = paper_steps; step->model; step++)
        if (step->table == 15 || step->table == 16) add_step(table, step);
    table_note(
        table,
        "Means over the submodels; settings as in Table 4.  \"cached\": with the outputs of the "
        "frozen prefix kept (pre-inference), which fits the published times less well.  \"FLOP "
        "model\": the published time at 1/3, times (3/2 + 3/(2M)) / 2.");
}
