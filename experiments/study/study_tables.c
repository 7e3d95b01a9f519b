#include "study_tables.h"

#include <inttypes.h>
#include <string.h>

#include "../paper/trainings.h"
#include "measures.h"

/* ---- each training with what tells it from all others ---------------------------------------- */

static void put_training(Table *table, const StudyRow *row, const char *what) {
    table_row(table, "%s", what);
    table_text(table, 0, SOURCE_NONE, "%" PRId64, row->seed);
    table_text(table, 1, SOURCE_NONE, "%.16s", row->commit);
    table_text(table, 2, SOURCE_NONE, "%.16s", row->checksum);
    table_text(table, 3, SOURCE_NONE, "%.20s %.20s", row->device, row->precision);
    table_text(table, 4, SOURCE_NONE, "%" PRId64, row->threads);
    table_put(table, 5, (double)row->steps, row->seconds);
}

/* Whether the seeds of a method did not all come from one program and machine. */
static bool is_mixed(const Cases *cases, const CaseMethod *method) {
    const StudyRow *first = case_first(cases, method);
    for (int s = 1; s < method->seeds; s++) {
        const StudyRow *row = &cases->study->row[method->row[s]];
        if (strcmp(row->commit, first->commit) || !study_same_clock(row, first)) return true;
    }
    return false;
}

static int add_trainings(Tables *tables, const Cases *cases) {
    static const TableColumn columns[] = {
        {"seed", "seed", "", COLUMN_TEXT, 0, SOURCE_NONE},
        {"commit", "commit", "", COLUMN_TEXT, 0, SOURCE_NONE},
        {"checksum", "data checksum", "", COLUMN_TEXT, 0, SOURCE_NONE},
        {"where", "device", "", COLUMN_TEXT, 0, SOURCE_NONE},
        {"threads", "threads", "", COLUMN_TEXT, 0, SOURCE_NONE},
        {"updates", "updates", "", COLUMN_NUMBER, 0, SOURCE_MEASURED},
        {"seconds", "time", "s", COLUMN_NUMBER, 1, SOURCE_MEASURED},
    };
    char what[CASE_LABEL], mixed[CASE_LABEL] = "";
    const Case *item;
    Table *table = tables_add(tables, "trainings", "The trainings", "training", columns, 7);
    if (!table) return -1;
    for (const CaseMethod *m = NULL; (m = cases_next(cases, m, &item));) {
        case_label(cases, item, m, what);
        for (int s = 0; s < m->seeds; s++) put_training(table, &cases->study->row[m->row[s]], what);
        if (!*mixed && is_mixed(cases, m)) strcpy(mixed, what);
    }
    if (cases->left_out)
        table_note(table,
                   "Left out: %d with the settings and seed of another one here, but other losses; "
                   "of these the one read first counts.",
                   cases->left_out);
    if (*mixed)
        table_note(
            table,
            "Means are over trainings of different commits, processors or numbers of threads: "
            "of %s, for one.",
            mixed);
    table_note(table,
               "Time: of training, evaluations left out.  Everything needed to repeat one is in "
               "its file.");
    return 0;
}

/* ---- all ------------------------------------------------------------------------------------- */

int study_tables(Tables *tables, const Study *study) {
    static int (*const add[])(Tables *, const Cases *) = {
        paper_add_table2,    paper_add_table9_10, paper_add_table11, paper_add_multipliers,
        study_add_converged, study_add_same_loss, study_add_budgets, paper_add_finetuned,
        study_add_switching, paper_add_ufp,       add_trainings};
    Cases cases;
    if (!study->rows) return 0;
    if (cases_make(&cases, study)) return -1;
    int failed = 0;
    for (size_t a = 0; a < sizeof add / sizeof *add && !failed; a++)
        failed = add[a](tables, &cases);
    cases_free(&cases);
    return failed ? -1 : 0;
}
