/* Pipelines task by task: where the bubbles of a full update are, and of BCD. */
#include "../tables/timeline.h"

#include "paper.h"
#include "steps.h"

typedef struct {
    const char *name, *title;
    int submodels;
    PlacementKind placement;
    ScheduleKind schedule;
} Shown;

static const Shown shown[] = {
    {"timeline_full", "G-1.6B on 4 GPUs, full update, 1F1B", 1, PLACEMENT_PLAIN, SCHEDULE_1F1B},
    {"timeline_plain", "G-1.6B on 4 GPUs, BCD-1/3, submodel 2, plain, 1F1B", 3, PLACEMENT_PLAIN,
     SCHEDULE_1F1B},
    {"timeline_virtual", "G-1.6B on 4 GPUs, BCD-1/3, submodel 2, virtual stages, zero bubble", 3,
     PLACEMENT_VIRTUAL, SCHEDULE_ZERO_BUBBLE},
};

static int add_one(Tables *tables, const Efficiency *efficiency, const Model *model,
                   const Shown *s) {
    enum { GPUS = 4, MICRO_BATCHES = 8 };
    bool deferred = s->schedule == SCHEDULE_ZERO_BUBBLE;
    Configuration c = {.model = model,
                       .cluster = {gpu_find("rtx4090"), GPUS, 1, NETWORK_2X25G, *efficiency},
                       .stage = {.batch = 1,
                                 .optimizer = optimizer_defaults(OPTIMIZER_ADAM),
                                 .deferred = deferred},
                       .placement = s->placement,
                       .schedule = s->schedule,
                       .slack = deferred ? GPUS : 0,
                       .submodels = s->submodels,
                       .pipeline = GPUS,
                       .replicas = 1,
                       .micro_batches = MICRO_BATCHES};
    return timeline_add(tables, s->name, s->title, &c, s->submodels / 2);
}

int paper_add_timelines(Tables *tables) {
    const Efficiency *calibrated = paper_efficiency("rtx4090", SETTING_CALIBRATED);
    Model *model = calibrated ? model_create("G-1.6B") : NULL;
    int failed = !model;
    for (size_t i = 0; i < sizeof shown / sizeof *shown && !failed; i++)
        failed = add_one(tables, calibrated, model, &shown[i]);
    model_free(model);
    return failed ? -1 : 0;
}
