#include "mock_loop.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/base/error.h"
#include "../../ref/blocks/models.h"
#include "../test.h"
#include "tiny.h"

static int mock_activate(Engine *engine, const bool *active) {
    MockEngine *n = (MockEngine *)(void *)engine;
    n->activations++;
    n->active = -1;
    for (int b = 0; b < engine->model->blocks; b++)
        if (active[b]) n->active = n->partition->of_block[b];
    for (int b = 0; b < engine->model->blocks; b++)
        CHECK(active[b] == (n->partition->of_block[b] == n->active), "block %d", b);
    return 0;
}

static int mock_step(Engine *engine, const Batch *batch, double lr, Loss *loss) {
    MockEngine *n = (MockEngine *)(void *)engine;
    if (n->steps == MAX_STEPS) return error_set("test: more than %d steps", MAX_STEPS);
    n->trained[n->steps] = n->active;
    n->lr[n->steps] = lr;
    n->ids[n->steps] = malloc((size_t)batch->n * sizeof(int));
    memcpy(n->ids[n->steps], batch->ids, (size_t)batch->n * sizeof(int));
    /* The rules see means, whatever the number of targets. */
    size_t count = 1 + (size_t)n->steps % 5;
    *loss =
        (Loss){.loss_sum = (n->losses ? n->losses[n->steps] : 1) * (double)count, .count = count};
    n->steps++;
    return 0;
}

static int mock_gradient_norm(Engine *engine, const Batch *batch, double *norm) {
    MockEngine *n = (MockEngine *)(void *)engine;
    int phase = n->norms_asked++ / SUBMODELS;
    n->norm_sample = batch->ids[0];
    *norm = n->norms[phase * SUBMODELS + n->active];
    return isnan(*norm) ? error_set("test: no norm") : 0;
}

const EngineClass mock_class = {
    .activate = mock_activate, .step = mock_step, .gradient_norm = mock_gradient_norm};

void loop_open(Loop *loop, Order order, SwitchRule rule, int samples, int batch, int steps) {
    *loop = (Loop){.model = model_create("gpt:layers=6,width=2,heads=1,context=2,vocabulary=3")};
    loop->data = tiny_dataset(loop->model, samples, false);
    loop->settings = (BcdSettings){.order = order,
                                   .rule = rule,
                                   .optimizer = optimizer_defaults(OPTIMIZER_SGD),
                                   .batch = batch,
                                   .steps = (uint64_t)steps,
                                   .fraction = 1,
                                   .seed = 11};
    if (partition_balanced(&loop->settings.partition, loop->model, SUBMODELS, NULL)) abort();
    loop->mock =
        (MockEngine){.base = {&mock_class, loop->model}, .partition = &loop->settings.partition};
}

void loop_run(Loop *loop) {
    CHECK(bcd_train(&loop->state, &loop->settings, &loop->mock.base, loop->data, NULL, NULL) == 0,
          "%s", error_message());
    CHECK((uint64_t)loop->mock.steps == loop->settings.steps, "%d steps", loop->mock.steps);
}

void loop_close(Loop *loop) {
    for (int i = 0; i < loop->mock.steps; i++) free(loop->mock.ids[i]);
    partition_free(&loop->settings.partition);
    dataset_free(loop->data);
    model_free(loop->model);
}
