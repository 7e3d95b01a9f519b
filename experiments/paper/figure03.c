/* Figure 3, pre-inference: the outputs of the frozen prefix are computed once in a phase and kept.
 * The figure has no numbers; here a cycle of long phases is trained without --cache and with it. */
#include <stdio.h>

#include "../store/rundir.h"
#include "../train/interrupt.h"
#include "../train/train.h"
#include "paper.h"

typedef struct {
    MeasuredNetwork network;
    int samples, phase_epochs;
} LongPhase;

static const LongPhase smoke[] = {
    {{"gpt:layers=4,width=16,heads=2,context=16", "text", "adam", "8"}, 64, 2},
    {.network.model = NULL}};
static const LongPhase laptop[] = {
    {{"gpt:layers=10,width=96,heads=4,context=64", "text", "adam", "16"}, 1600, 4},
    {{"resnet20", "synthetic", "sgd", "128"}, 3840, 4},
    {.network.model = NULL}};

enum { PARTS = 3, COLUMNS = 4 };

static int train(RunSummary *summary, const CommandLine *asked, const LongPhase *what, bool kept) {
    Options o;
    if (measured_options(&o, &asked->options, &what->network, PARTS) ||
        options_set_all(&o, "limit=%d epochs=%d switch-every=%de threads=1%s", what->samples,
                        PARTS * what->phase_epochs, what->phase_epochs, kept ? " cache=1G" : ""))
        return -1;
    snprintf(o.out, sizeof o.out, "%.300s/rows/%.80s-%s", rundir_results(asked).text,
             what->network.model, kept ? "cached" : "computed");
    o.go_on = o.quiet = true;
    return train_run(&o, summary);
}

static void print_cycle(const RunSummary *summary, const CommandLine *asked, const LongPhase *what,
                        bool kept) {
    if (asked->options.quiet) return;
    printf("%s, outputs of the prefix %s: a cycle in %.0f s\n", what->network.model,
           kept ? "kept" : "computed", summary->seconds);
    fflush(stdout);
}

/* Returns 0, -1 and an error, or the exit status when interrupted. */
static int put(Table *table, const CommandLine *asked, const LongPhase *what) {
    RunSummary summary[2];
    for (int kept = 0; kept < 2; kept++) {
        if (train(&summary[kept], asked, what, kept)) return -1;
        if (summary[kept].interrupted) return interrupt_status();
        print_cycle(&summary[kept], asked, what, kept);
        table_row(table, "%s %s", what->network.model, kept ? "kept" : "computed");
        table_put(table, 0, summary[kept].seconds, summary[kept].seconds / summary->seconds,
                  (double)summary[kept].peak_bytes / MIB, summary[kept].valid.loss);
    }
    if (summary[0].valid.loss == summary[1].valid.loss &&
        summary[0].train_loss == summary[1].train_loss)
        return 0;
    return error_set("%s: the losses with --cache differ from those without", what->network.model);
}

int paper_add_figure3(Tables *tables, const CommandLine *asked) {
    static const TableColumn columns[COLUMNS] = {
        {"seconds", "a cycle", "s", COLUMN_NUMBER, 1, SOURCE_MEASURED},
        {"share", "of computed", "", COLUMN_NUMBER, 3, SOURCE_MEASURED},
        {"peak", "peak memory", "MiB", COLUMN_NUMBER, 1, SOURCE_MEASURED},
        {"loss", "valid. loss", "", COLUMN_NUMBER, 6, SOURCE_MEASURED},
    };
    const LongPhase *first = asked->experiment.preset == PRESET_SMOKE ? smoke : laptop;
    Table *table = tables_add(tables, "figure3", "Figure 3: the frozen prefix, computed or kept",
                              "outputs of the prefix", columns, COLUMNS);
    for (const LongPhase *what = first; what->network.model; what++) {
        const int status = put(table, asked, what);
        if (status) return status;
    }
    table_note(table,
               "BCD-1/3, a cycle of three phases of %d epochs, one thread, without evaluations.  "
               "The first epoch of a phase computes the outputs that the others reuse.  The losses "
               "have the same bits.",
               first->phase_epochs);
    return 0;
}
