/* `bcd plan --cache`: pre-inference of a plan, by more and more ranks. */
#include <math.h>

#include "../../dist/simulate_infer.h"
#include "plan.h"

enum { COMPUTE, GATHER, SAVED, EPOCHS, PARAMETERS, ROOM, INFER_COLUMNS };

static int add_row(Table *table, const Configuration *c, int ranks) {
    Inference inference;
    if (simulate_inference(&inference, c, ranks)) return -1;
    const double cost = inference.compute_s + inference.gather_s;
    table_row(table, "%d", ranks * c->replicas);
    table_put(table, COMPUTE, 1e6 * inference.compute_s, 1e6 * inference.gather_s,
              1e6 * inference.saved_s, inference.saved_s > 0 ? cost / inference.saved_s : NAN,
              inference.parameters_s, inference.prefix_bytes / GIB);
    return 0;
}

int plan_inference(Tables *tables, const Plan *plan) {
    static const TableColumn columns[INFER_COLUMNS] = {
        [COMPUTE] = {"compute", "compute", "s", COLUMN_NUMBER, 2, SOURCE_SIMULATED},
        [GATHER] = {"gather", "gather", "s", COLUMN_NUMBER, 2, SOURCE_SIMULATED},
        [SAVED] = {"saved", "saved", "s an epoch", COLUMN_NUMBER, 2, SOURCE_SIMULATED},
        [EPOCHS] = {"pays_from", "pays from", "epochs", COLUMN_NUMBER, 2, SOURCE_SIMULATED},
        [PARAMETERS] = {"parameters", "parameters", "s a phase", COLUMN_NUMBER, 2,
                        SOURCE_SIMULATED},
        [ROOM] = {"prefix", "prefix", "GiB", COLUMN_NUMBER, 2, SOURCE_CLOSED_FORM},
    };
    const Configuration *c = &plan->configuration;
    Text title = text_of("Pre-inference of a million samples, %s", plan_method(plan).text);
    Table *table =
        tables_add(tables, "inference", title.text, "ranks that infer", columns, INFER_COLUMNS);
    for (int ranks = 1; ranks < c->pipeline; ranks *= 2)
        if (add_row(table, c, ranks)) return -1;
    if (add_row(table, c, c->pipeline)) return -1;
    table_note(table,
               "Means over the submodels, for bcd train --pre-infer.  compute and gather: before a "
               "phase.  saved: in each epoch of the phase, for the prefix is not run again.  pays "
               "from: epochs of a phase after which it has taken less time than running the prefix "
               "in each step.");
    table_note(table,
               "parameters: to bring those of the prefix to all ranks.  prefix: what a rank that "
               "infers needs in addition, before the phase trains.");
    return 0;
}
