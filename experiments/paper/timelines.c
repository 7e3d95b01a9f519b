/* Pipelines task by task: where the bubbles of a full update are, and of BCD. */
#include "../tables/timeline.h"

#include "paper.h"
#include "steps.h"

typedef struct {
    const char *name, *title;
    int submodels;
    PlacementKind placement;
    ScheduleKind schedule;
} PaperTimeline;

static const PaperTimeline shown[] = {
    {"timeline_full", "G-1.6B on 4 GPUs, full update, 1F1B", 1, PLACEMENT_PLAIN, SCHEDULE_1F1B},
    {"timeline_plain", "G-1.6B on 4 GPUs, BCD-1/3, submodel 2, plain, 1F1B", 3, PLACEMENT_PLAIN,
     SCHEDULE_1F1B},
    {"timeline_virtual", "G-1.6B on 4 GPUs, BCD-1/3, submodel 2, virtual stages, zero bubble", 3,
     PLACEMENT_VIRTUAL, SCHEDULE_ZERO_BUBBLE},
    {0},
};

void paper_add_timelines(Tables *tables) {
    enum { GPUS = 4, MICRO_BATCHES = 8 };
    const Efficiency *calibrated = paper_efficiency(&tables->lost, "rtx4090", SETTING_CALIBRATED);
    Model *model = model_create("G-1.6B");
    if (!model) table_fail(&tables->lost);
    for (const PaperTimeline *s = shown; s->name && model; s++) {
        bool deferred = s->schedule == SCHEDULE_ZERO_BUBBLE;
        Configuration c = {.model = model,
                           .cluster = {gpu_find("rtx4090"), GPUS, 1, NETWORK_2X25G, *calibrated},
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
        timeline_add(tables, s->name, s->title, &c, s->submodels / 2);
    }
    model_free(model);
}
