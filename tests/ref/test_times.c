/* Times of the blocks within a step. */
#include "../../ref/base/clock.h"
#include "../../ref/stage_device.h"
#include "../test.h"
#include "tiny.h"

/* The times of the blocks and of the update are parts of the time of the step. */
static void times_are_parts_of_a_step(const void *spec) {
    enum { BLOCKS = 32 };
    BlockTimes times[BLOCKS];
    double sum = 0;
    Tiny tiny;
    Loss loss;
    tiny_open(&tiny, &(Recipe){.spec = spec, .times = times});
    tiny_activate(&tiny, 1);
    Batch batch = tiny_batch(&tiny, 4);
    double start = clock_ms();
    CHECK(engine_step(tiny.engine, &batch, 0.1, &loss) == 0, "%s", error_message());
    double elapsed = clock_ms() - start;
    bool below = true;
    for (int b = 0; b < tiny.model->blocks; b++) {
        const bool active = tiny.settings.partition.of_block[b] == 1;
        below &= !active;
        /* A frozen block above the active ones is asked for a weight gradient, and has none. */
        const bool works[PASSES] = {true, !below, active}, rests[PASSES] = {false, below, below};
        for (Pass pass = 0; pass < PASSES; pass++) {
            const double ms = times[b].ms[pass];
            CHECK((!works[pass] || ms > 0) && (!rests[pass] || ms == 0), "%s, pass %d: %g ms",
                  tiny.model->block[b].name, (int)pass, ms);
            sum += ms;
        }
    }
    CHECK(tiny.update_ms > 0 && sum > 0 && sum + tiny.update_ms <= elapsed,
          "blocks %g ms, update %g ms, of %g ms", sum, tiny.update_ms, elapsed);
    batch_free(&batch);
    tiny_close(&tiny);
}

/* To whom a device charges its time now, and how often the loss was computed. */
static struct {
    const double *ms;
    int losses;
    int (*loss)(Stage *stage, double scale, Loss *loss);
} charging;

static void charge(Stage *stage, double *ms) {
    (void)stage;
    charging.ms = ms;
}

static int loss_of_nobody(Stage *stage, double scale, Loss *loss) {
    CHECK(!charging.ms, "the time of the loss is charged to a block");
    charging.losses++;
    return charging.loss(stage, scale, loss);
}

/* Of a device the loss, and the wait of the host for it, are not the time of the head. */
static void a_loss_is_charged_to_nobody(void) {
    static const StageDeviceClass device = {.charge_time = charge};
    BlockTimes times[32];
    Tiny tiny;
    Loss loss;
    tiny_open(&tiny, &(Recipe){.spec = tiny_models[0], .times = times, .micro_batches = 2});
    StageClass class = *tiny.stage->is;
    charging.losses = 0;
    charging.loss = class.loss;
    class.loss = loss_of_nobody;
    tiny_activate(&tiny, 1);
    tiny.stage->is = &class;
    tiny.stage->device = &device;
    Batch batch = tiny_batch(&tiny, 4);
    CHECK(engine_step(tiny.engine, &batch, 0.1, &loss) == 0, "%s", error_message());
    CHECK(charging.losses == 2 && !charging.ms, "%d losses", charging.losses);
    tiny.stage->device = NULL;
    batch_free(&batch);
    tiny_close(&tiny);
}

void test_times(void) {
    for (int i = 0; tiny_models[i]; i++)
        RUN_ROW(tiny_models[i], times_are_parts_of_a_step, tiny_models[i]);
    RUN(a_loss_is_charged_to_nobody);
}
