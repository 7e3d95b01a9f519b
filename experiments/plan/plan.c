#include "plan.h"

#include <stdio.h>
#include <stdlib.h>

#include "../commands.h"

/* Checks that there are possible settings for every method. */
static int check_spaces(const PlanQuestion *q) {
    for (PlanMethod m = 0; m < PLAN_METHODS; m++) {
        PlanSpace space;
        Plan *plans;
        if (question_space(&space, q, m, q->gpu, false)) return -1;
        choices_add(&space.gpus, q->options->per_node * q->options->nodes);
        if (plan_candidates(&plans, &space) < 0) return -1;
        free(plans);
    }
    return 0;
}

static int check_models(const Options *options) {
    const char *next = NULL;
    char spec[OPTION_TEXT];
    int failed = 0, count = 0;
    for (; !failed && plan_scale_next(spec, &next, options); count++) {
        PlanQuestion q;
        failed = question_open(&q, options, spec);
        question_free(&q);
    }
    return count ? failed : error_set("--models names none");
}

int plan_check(const Options *options) {
    PlanQuestion q;
    if (options->search && options->scale)
        return error_set("--search and --scale are two questions; give one");
    if (options_given(options, "budget") && !(options->budget > 0))
        return error_set("--budget 0 buys no GPU");
    if (options->scale) return check_models(options);
    int failed = question_open(&q, options, options->model);
    failed = failed || (!options->search && check_spaces(&q));
    question_free(&q);
    return failed ? -1 : 0;
}

static int answer(Tables *tables, const Options *options) {
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
    int failed = answer(&tables, options);
    for (int t = 0; t < tables.tables && !failed; t++)
        failed = table_print(stdout, tables.table[t]);
    failed = failed || (*options->out && tables_write(&tables, options, options->out));
    tables_free(&tables);
    return failed ? -1 : 0;
}
