/* `bcd experiment NAME`: every experiment is a row of a table. */
#include <stdio.h>
#include <string.h>

#include "../ref/base/error.h"
#include "commands.h"
#include "store/rundir.h"
#include "study/cases.h"
#include "study/trainings.h"
#include "train/interrupt.h"

static const struct {
    const char *name;
    const TrainingKind *trainings; /* NULL: `run` does it */
    int (*run)(const CommandLine *line);
    const char *what;
    bool beyond; /* beyond the paper, and not in `all` */
} experiments[] = {
    {"validity", &training_validity, NULL,
     "trains models fully and by BCD: steps to converge, quality, memory (Table 2)", false},
    {"compression", &training_compression, NULL,
     "the same with nine tenths of the data for each submodel (Tables 9, 10)", false},
    {"ufp", &training_ufp, NULL, "the same in 1 to 4 submodels (Table 11)", false},
    {"finetune", NULL, experiment_finetune,
     "fine-tunes a model (--init, or one it pretrains) fully and by BCD", false},
    {"switching", &training_switching, NULL,
     "when to switch, in what order, with what optimizer state", true},
    {"converged-pilot", &training_converged_pilot, NULL,
     "chooses the rates, phases and norms that `converged` uses: hours", true},
    {"converged", &training_converged, NULL,
     "trains fully and by BCD, each to its own convergence: many hours", true},
    {"remedies", &training_remedies, NULL, "what might bring BCD closer to the full update: hours",
     true},
    {"memory", NULL, experiment_memory,
     "bytes: closed form, planned and measured (Tables 4, 8 to 11, Figure 5)", false},
    {"cost", NULL, experiment_cost,
     "dollars and GPU hours saved, by published times (Tables 1, 5 to 7, 12 to 14)", false},
    {"timing", NULL, experiment_timing,
     "steps, simulated and measured (Tables 3, 4, 15, 16, Figures 3, 4 and 6)", false},
};
enum { EXPERIMENTS = sizeof experiments / sizeof *experiments };

void experiment_print_list(void) {
    for (int beyond = 0; beyond < 2; beyond++) {
        printf(beyond ? "\nBeyond the paper\n" : "\nTables of the paper\n");
        for (int e = 0; e < EXPERIMENTS; e++)
            if (experiments[e].beyond == beyond)
                printf("  %-15s %s\n", experiments[e].name, experiments[e].what);
        if (!beyond) printf("  %-15s all of these in turn\n", "all");
    }
}

/* Runs an experiment.  With `all` the B-F multiplier that `validity` measured goes into the
 * costs. */
static int run_one(int e, const CommandLine *line, bool all) {
    CommandLine own = *line;
    char *multiplier = own.cost.multiplier;
    if (all && !*multiplier) {
        snprintf(multiplier, sizeof own.cost.multiplier, "%.480s/validity.h5",
                 rundir_results(line).text);
        double value;
        if (multiplier_read(&value, multiplier)) *multiplier = 0; /* none measured */
    }
    return experiments[e].trainings ? trainings_run(experiments[e].trainings, &own)
                                    : experiments[e].run(&own);
}

int command_experiment(const CommandLine *line) {
    const Options *options = &line->options;
    const char *name = line->positional[0];
    bool all = strcmp(name, "all") == 0;
    Text known = {""};
    int status = 0, found = 0;
    double multiplier;
    /* Checked before anything is trained, though it is needed last. */
    if (multiplier_read(&multiplier, line->cost.multiplier)) return -1;
    if (options_given(options, "minutes")) interrupt_after(60 * line->experiment.minutes);
    for (int e = 0; e < EXPERIMENTS && !status; e++) {
        text_add(&known, "%s, ", experiments[e].name);
        if (all ? experiments[e].beyond : strcmp(name, experiments[e].name) != 0) continue;
        if (all && !options->quiet) printf("== %s\n", experiments[e].name);
        /* The first experiment runs even if time is up already, so that every call makes
         * progress. */
        status = found++ && interrupt_signal() ? interrupt_status() : run_one(e, line, all);
    }
    const Text dir = rundir_results(line);
    if (found && all && !status && !options->quiet)
        printf("all tables are in %s; see them on one page with: bcd report %s/*.h5\n", dir.text,
               quoted(dir.text).text);
    if (found) return status;
    error_set("experiment %.40s: no such experiment; there are %sand all", name, known.text);
    return -WRONG_USE;
}
