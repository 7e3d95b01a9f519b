#include "plan.h"

#include <stdio.h>

#include "../commands.h"

static int answer(Tables *tables, const Options *options) {
    if (options->search && options->scale)
        return error_set("--search and --scale exclude each other; give one");
    if (options->scale) return plan_scale(tables, options);
    PlanQuestion q;
    int failed = question_open(&q, options, options->model) ||
                 (options->search ? plan_search(tables, &q) : plan_cluster(tables, &q));
    question_free(&q);
    return failed;
}

int command_plan(const Options *options) {
    Tables tables = {0};
    provenance_fill(&tables.provenance, 0);
    int status = answer(&tables, options) ? -WRONG_USE : 0;
    for (int t = 0; t < tables.tables && !status; t++)
        status = table_print(stdout, tables.table[t]);
    if (!status && *options->out) status = tables_write(&tables, options, options->out);
    tables_free(&tables);
    return status;
}
