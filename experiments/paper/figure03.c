/* Figure 3, pre-inference: the outputs of the frozen prefix are computed once in a phase and kept.
 * The figure has no numbers; here a cycle of long phases is trained without --cache and with it. */
#include <stdio.h>
#include <string.h>

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

enum { PARTS = 3 };

/* Trains, or continues an earlier call, and reads the run.  Returns 1 if a signal stopped it. */
static int train(RunFile *run, const CommandLine *asked, const LongPhase *what, bool kept) {
    Options o;
    const Text dir = text_of("%.300s/rows/%.80s-%s", rundir_results(asked).text,
                             what->network.model, kept ? "cached" : "computed");
    if (measured_options(&o, &asked->options, &what->network, PARTS) ||
        options_set_all(&o, "limit=%d epochs=%d switch-every=%de threads=1%s", what->samples,
                        PARTS * what->phase_epochs, what->phase_epochs, kept ? " cache=1G" : ""))
        return -1;
    strcpy(rundir_holds_run(dir.text) ? o.resume : o.out, dir.text);
    o.quiet = true;
    const int status = train_run(&o);
    return status ? status : runfile_read(run, rundir_path(dir.text, "run.h5").text);
}

/* Returns 0, -1 and an error, or the exit status when interrupted. */
static int put(Table *table, const CommandLine *asked, const LongPhase *what) {
    double seconds[2], valid[2], trained[2]; /* the losses of validation and of training */
    for (int kept = 0; kept < 2; kept++) {
        const char *how = kept ? "kept" : "computed";
        RunFile run = {.curve = NULL};
        const int status = train(&run, asked, what, kept);
        if (status) {
            runfile_free(&run);
            return status == 1 ? interrupt_status() : -1;
        }
        seconds[kept] = run.curve[run.curve_rows - 1].seconds;
        valid[kept] = run.evaluations[run.evaluation_rows - 1].loss;
        trained[kept] = runfile_smooth(&run, run.curve_rows - 1, run.curve_rows);
        if (!asked->options.quiet)
            printf("%s, outputs of the prefix %s: a cycle in %.0f s\n", what->network.model, how,
                   seconds[kept]);
        fflush(stdout);
        table_row(table, "%s %s", what->network.model, how);
        table_put(table, 0, seconds[kept], seconds[kept] / seconds[0],
                  (double)run.memory[MEM_ROLES].peak / MIB, valid[kept]);
        runfile_free(&run);
    }
    if (valid[0] == valid[1] && trained[0] == trained[1]) return 0;
    return error_set("%s: the losses with --cache differ from those without", what->network.model);
}

int paper_add_figure3(Tables *tables, const CommandLine *asked) {
    static const TableColumn columns[] = {
        {"seconds", "a cycle", "s", COLUMN_NUMBER, 1, SOURCE_MEASURED},
        {"share", "of computed", "", COLUMN_NUMBER, 3, SOURCE_MEASURED},
        {"peak", "peak memory", "MiB", COLUMN_NUMBER, 1, SOURCE_MEASURED},
        {"loss", "valid. loss", "", COLUMN_NUMBER, 6, SOURCE_MEASURED},
    };
    const LongPhase *first = asked->experiment.preset == PRESET_SMOKE ? smoke : laptop;
    Table *table = tables_add(tables, "figure3", "Figure 3: the frozen prefix, computed or kept",
                              "outputs of the prefix", columns, 4);
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
