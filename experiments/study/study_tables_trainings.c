/* Each training with what tells it from all others. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "study_tables_parts.h"

enum { SEED, COMMIT, CHECKSUM, WHERE, THREADS, UPDATES, SECONDS, COLUMNS };

static const TableColumn columns[COLUMNS] = {
    [SEED] = {"seed", "seed", "", COLUMN_TEXT, 0, SOURCE_NONE},
    [COMMIT] = {"commit", "commit", "", COLUMN_TEXT, 0, SOURCE_NONE},
    [CHECKSUM] = {"checksum", "data checksum", "", COLUMN_TEXT, 0, SOURCE_NONE},
    [WHERE] = {"where", "device", "", COLUMN_TEXT, 0, SOURCE_NONE},
    [THREADS] = {"threads", "threads", "", COLUMN_TEXT, 0, SOURCE_NONE},
    [UPDATES] = {"updates", "updates", "", COLUMN_NUMBER, 0, SOURCE_NONE},
    [SECONDS] = {"seconds", "time", "s", COLUMN_NUMBER, 1, SOURCE_NONE},
};

static void put_training(Table *table, const StudyRow *row, const char *what) {
    table_row(table, "%s", what);
    table_text(table, SEED, SOURCE_NONE, "%" PRId64, row->seed);
    table_text(table, COMMIT, SOURCE_NONE, "%.16s", row->commit);
    table_text(table, CHECKSUM, SOURCE_NONE, "%.16s", row->checksum);
    table_text(table, WHERE, SOURCE_NONE, "%.20s %.20s", row->device, row->precision);
    table_text(table, THREADS, SOURCE_NONE, "%" PRId64, row->threads);
    table_number(table, UPDATES, (double)row->steps, SOURCE_MEASURED);
    table_number(table, SECONDS, row->seconds, SOURCE_MEASURED);
}

/* The first method whose seeds did not all come from one program and machine; false: there is none.
 */
static bool find_mixed(char name[2 * CASE_NAME], const Cases *cases) {
    char network[CASE_NAME], how[CASE_NAME];
    for (int c = 0; c < cases->cases; c++)
        for (int m = 0; m < cases->item[c].methods; m++) {
            const CaseMethod *method = &cases->item[c].method[m];
            const StudyRow *first = case_first(cases, method);
            for (int s = 1; s < method->seeds; s++) {
                const StudyRow *row = &cases->study->row[method->row[s]];
                if (!strcmp(row->commit, first->commit) && study_same_clock(row, first)) continue;
                snprintf(name, 2 * CASE_NAME, "%s %s", case_name(first, network),
                         case_method(cases, &cases->item[c], method, how));
                return true;
            }
        }
    return false;
}

int study_add_trainings(Tables *tables, const Cases *cases) {
    char name[CASE_NAME], how[CASE_NAME], what[2 * CASE_NAME];
    Table *table = tables_add(tables, "trainings", "The trainings", "training", columns, COLUMNS);
    if (!table) return -1;
    for (int c = 0; c < cases->cases; c++)
        for (int m = 0; m < cases->item[c].methods; m++) {
            const Case *item = &cases->item[c];
            const CaseMethod *method = &item->method[m];
            snprintf(what, sizeof what, "%s %s", case_name(case_first(cases, method), name),
                     case_method(cases, item, method, how));
            for (int s = 0; s < method->seeds; s++)
                put_training(table, &cases->study->row[method->row[s]], what);
        }
    if (cases->left_out)
        table_note(table,
                   "Left out: %d with the settings and seed of another one here, but other losses; "
                   "of these the one read first counts.",
                   cases->left_out);
    if (find_mixed(what, cases))
        table_note(
            table,
            "Means are over trainings of different commits, processors or numbers of threads: "
            "of %s, for one.",
            what);
    table_note(table,
               "Time: of training, evaluations left out.  Everything needed to repeat one is in "
               "its file.");
    return 0;
}
