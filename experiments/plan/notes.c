/* Notes below a table of plans: what its numbers leave out. */
#include <math.h>

#include "plan.h"

/* Notes whose price is not known, of which the columns of dollars are empty. */
static void note_prices(Table *table, const Plan *plans) {
    for (int row = 0; row < table->rows; row++) {
        const Plan *plan = &plans[row];
        if (!plan->gpus || !plan->prediction.fits || !isnan(plan->price)) continue;
        const char *key = plan->configuration.cluster.gpu->key;
        table_note(table, "cost of %s: no price is known; --price %s=DOLLARS gives one.", key, key);
        return;
    }
}

/* Notes that gradients are simulated on another way than they take. */
static void note_gradients(Table *table, const PlanQuestion *q, const Plan *plans) {
    bool replicas = false, tied = false;
    for (int row = 0; row < table->rows; row++) {
        const Plan *plan = &plans[row];
        if (!plan->gpus || !plan->prediction.fits) continue;
        replicas = replicas || plan->configuration.replicas > 1;
        tied = tied || plan->prediction.tied_s > 0;
    }
    if (replicas || tied)
        table_note(table,
                   "Gradients of %s are simulated as if the %ss exchanged them; the program adds "
                   "them up in host memory, whose time is not simulated.",
                   !tied       ? "replicas"
                   : !replicas ? "a tied head on another rank than the embedding"
                               : "replicas, and of a tied head on another rank than the embedding",
                   plan_unit(q->gpu));
}

void plan_notes(Table *table, const PlanQuestion *q, const Plan *plans) {
    note_prices(table, plans);
    note_gradients(table, q, plans);
    if (!q->machine.key)
        table_note(table,
                   "memory: without what the program takes on a GPU in addition: a batch's inputs, "
                   "workspace of the kernels and of cuBLASLt, and lists of what an update writes.");
}
