#include "plan.h"

#include <stdio.h>

#include "../../ref/error.h"
#include "../commands.h"

/* Refuses flags that would be ignored. */
static int check_kind(const CommandLine *line) {
    static const char *const searched[] = {"budget", "gpus"};
    for (int i = 0; i < 2 && !line->plan.search; i++)
        if (options_given(&line->options, searched[i]))
            return error_set("--%s needs --search", searched[i]);
    return 0;
}

static int answer(Tables *tables, const CommandLine *line) {
    if (check_kind(line)) return -1;
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
