/* `bcd plan --scale`: large models on many GPUs, on paper. */
#include <stdio.h>
#include <string.h>

#include "../train/progress.h"
#include "plan.h"

enum { FEWEST = 8, MOST = 4096, TIMES = 8 };

static int add_row(Table *table, const Question *q, Way way, int gpus) {
    Space space;
    Plan plan;
    char label[64], name[32];
    snprintf(label, sizeof label, "%d, %s", gpus, way_names[way]);
    if (question_space(&space, q, way, q->gpu, false)) return -1;
    choices_add(&space.gpus, gpus);
    int found = plan_choose(&plan, &space, CHEAPEST);
    if (found >= 0) snprintf(label, sizeof label, "%d, %s", gpus, plan_way(name, &plan));
    if (found >= 0)
        plan_row(table, q, label, &plan, found);
    else
        plan_row_without(table, label, "no setting has these sizes");
    return 0;
}

static int add_model(Tables *tables, const Options *options, const char *spec, int number) {
    Question q;
    char name[16], title[OPTION_TEXT + 160], count[32];
    int failed = question_open(&q, options, spec);
    Table *table = NULL;
    if (!failed) {
        snprintf(name, sizeof name, "scale%d", number);
        snprintf(title, sizeof title, "%s: %s parameters, %d samples per update, on %s", spec,
                 format_count((double)q.model->param_count, count), options->batch, q.gpu->name);
        table = plan_table(tables, &q, name, title, "GPUs, way");
        failed = !table;
    }
    for (int gpus = FEWEST; gpus <= MOST && !failed; gpus *= TIMES)
        for (Way way = 0; way < WAYS && !failed; way++)
            failed = plan_progress("%s on %d GPUs: %s", spec, gpus, way_names[way]) ||
                     add_row(table, &q, way, gpus);
    if (table) table_note(table, "The shape: %s.", q.model->spec);
    question_free(&q);
    return failed ? -1 : 0;
}

bool plan_scale_next(char spec[OPTION_TEXT], const char **next, const Options *options) {
    if (!*next) *next = *options->models ? options->models : "L-7B L-70B L-405B";
    *next += strspn(*next, " ");
    snprintf(spec, OPTION_TEXT, "%.*s", (int)strcspn(*next, " "), *next);
    *next += strlen(spec);
    return *spec;
}

int plan_scale(Tables *tables, const Options *options) {
    const char *next = NULL;
    char spec[OPTION_TEXT];
    for (int number = 0; plan_scale_next(spec, &next, options); number++)
        if (add_model(tables, options, spec, number)) return -1;
    return 0;
}
