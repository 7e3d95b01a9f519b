/* `bcd plan`: prints what the command line asks for. */
#include "plan.h"

#include "../cli/commands.h"

int command_plan(const CommandLine *line) {
    const char *out = line->options.out;
    PlanQuestion q;
    Tables tables = {0};
    provenance_fill(&tables.provenance, 0);
    bool failed =
        question_open(&q, line) ||
        (line->options.plan.search ? plan_search(&tables, &q) : plan_cluster(&tables, &q));
    question_free(&q);
    int status = failed ? -WRONG_USE : 0;
    for (int t = 0; t < tables.tables && !status; t++)
        status = table_print(stdout, tables.table[t]);
    if (!status && *out) status = tables_write(&tables, line, out);
    tables_free(&tables);
    return status;
}
