/* `bcd experiment cost`: what a training costs by the published times and prices. */
#include <math.h>
#include <stdlib.h>

#include "../commands.h"
#include "../study/cases.h"
#include "paper.h"
#include "trainings.h"

int experiment_cost(const CommandLine *line) {
    const CostFlags *flags = &line->cost;
    char *end;
    Tables tables = {0};
    CostSettings settings = {.multiplier = {[MULTIPLIER_TABLES] = paper_table_multiplier(),
                                            [MULTIPLIER_AVERAGE] = paper_average_multiplier,
                                            [MULTIPLIER_TEXT] = paper_mean_multiplier("adam", 0),
                                            [MULTIPLIER_WORST] = paper_worst_multiplier},
                             .priced = *flags->price != 0};
    double *ours = &settings.multiplier[MULTIPLIER_OURS];
    bool failed = multiplier_read(ours, flags->multiplier) != 0;
    for (int g = 0; g < COST_GPUS && !failed; g++)
        failed = price_find(&settings.price[g], gpu_find(cost_gpus[g]), flags->price) != 0;
    strtod(flags->multiplier, &end);
    settings.ours = *end ? SOURCE_MEASURED : SOURCE_GIVEN; /* of files, or a number */
    settings.multipliers = MULTIPLIER_OURS + !isnan(*ours);
    if (!failed) {
        paper_add_table1(&tables);
        paper_add_reductions(&tables, &settings);
        paper_add_claims(&tables, &settings);
        paper_add_prices(&tables, &settings);
    }
    return paper_write(&tables, line, "cost", failed);
}
