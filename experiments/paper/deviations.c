/* The mean deviation of the simulator over the published cells that it was not calibrated with. */
#include <math.h>
#include <string.h>

#include "paper.h"

static const struct {
    const char *label, *table, *prefix; /* of the models' names */
} sets[] = {{"Table 4 and section 4.4.2", "table4", ""},
            {"of these LLaMA alone", "table4", "L-"},
            {"Table 3", "table3", ""},
            {"Tables 15 and 16", "tables15and16", ""}};

/* table_find does not do, because two rows of Table 4 have the same label. */
static const Cell *cell(const Table *table, int row, const char *column) {
    int c = 0;
    while (strcmp(table->column[c].name, column)) c++;
    return &table->cell[row * table->columns + c];
}

void paper_add_deviations(Tables *tables) {
    static const TableColumn columns[] = {
        {"cells", "cells", "", COLUMN_NUMBER, 0, SOURCE_NONE},
        {"roofline", "roofline", "", COLUMN_PERCENT, 1, SOURCE_SIMULATED},
        {"calibrated", "calibrated", "", COLUMN_PERCENT, 1, SOURCE_SIMULATED},
    };
    Table *summary = tables_add(tables, "deviations", "How far the simulated steps are off",
                                "published in", columns, 3);
    for (size_t s = 0; s < sizeof sets / sizeof *sets; s++) {
        const Table *table = tables_find(tables, sets[s].table);
        double roofline = 0, calibrated = 0;
        int cells = 0;
        for (int r = 0; table && r < table->rows; r++) {
            double off = cell(table, r, "calibrated_deviation")->value;
            if (strncmp(table->label[r], sets[s].prefix, strlen(sets[s].prefix)) || isnan(off) ||
                cell(table, r, "calibrated")->source != SOURCE_SIMULATED)
                continue;
            cells++;
            calibrated += fabs(off);
            roofline += fabs(cell(table, r, "roofline_deviation")->value);
        }
        table_row(summary, "%s", sets[s].label);
        table_put(summary, 0, cells, roofline / cells, calibrated / cells);
    }
    table_note(summary,
               "Means of absolute deviations over the cells that nothing was calibrated with.");
}
