/* What a plan would take on a rented GPU: simulated, step by step of each submodel. */
#include <math.h>
#include <stdio.h>

#include "../../dist/simulate.h"
#include "../cli/price.h"
#include "trainings.h"

int plan_rent(Rent *rent, const Setup *setup, double steps, const char *prices) {
    Prediction prediction;
    const Options *o = &setup->options;
    Configuration configuration = {
        .model = setup->model,
        .cluster = {.gpu = gpu_find(rent->gpu),
                    .per_node = 1,
                    .nodes = 1,
                    .efficiency = efficiency_default},
        .stage = setup->stage_settings,
        .placement = PLACEMENT_PLAIN,
        .submodels = o->submodels,
        .pipeline = 1,
        .replicas = 1,
        .micro_batches = o->accumulate,
    };
    if (!configuration.cluster.gpu ||
        price_find(&rent->dollars_per_hour, configuration.cluster.gpu, prices) ||
        simulate(&prediction, NULL, &configuration, NULL))
        return -1;
    rent->hours += steps * prediction.step_s / 3600;
    rent->too_large += !prediction.fits;
    return 0;
}

void plan_rent_print(const Rent *rent) {
    printf("on one %s, simulated: %.3g hours", gpu_find(rent->gpu)->name, rent->hours);
    if (rent->dollars_per_hour > 0)
        printf(", %.2f dollars at %.2f an hour", rent->hours * rent->dollars_per_hour,
               rent->dollars_per_hour);
    if (rent->too_large) printf("; %d trainings do not fit its memory", rent->too_large);
    printf("\n");
}
