/* `bcd plan`: prints what the command line asks for. */
#include "plan.h"

#include "../commands.h"

static int answer(Tables *tables, const CommandLine *line) {
    PlanQuestion q;
    int failed = question_open(&q, line) ||
                 (line->plan.search ? plan_search(tables, &q) : plan_cluster(tables, &q));
    question_free(&q);
    return failed;
}

int command_plan(const CommandLine *line) {
    const char *out = line->options.out;
    Tables tables = {0};
    provenance_fill(&tables.provenance, 0);
    int status = answer(&tables, line) ? -WRONG_USE : 0;
    for (int t = 0; t < tables.tables && !status; t++)
        status = table_print(stdout, tables.table[t]);
    if (!status && *out) status = tables_write(&tables, line, out);
    tables_free(&tables);
    return status;
}
