/* How the update uses the gradient: clipping by its norm, weight decay of all parameters or of
 * matrices only. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../test.h"
#include "tiny.h"
#include "tolerance.h"

/* Returns the norm of one step of plain SGD, at a rate of 1, over all parameters. */
static double step_norm(const char *spec, double clip) {
    Tiny before, after;
    Recipe recipe = {.spec = spec};
    tiny_open(&before, &recipe);
    tiny_open(&after, &recipe);
    after.stage->settings.optimizer = (OptimizerSettings){.clip_norm = clip};
    tiny_activate(&after, 1);
    Batch batch = tiny_batch(&after, 4);
    Loss loss;
    CHECK(engine_step(after.engine, &batch, 1, &loss) == 0, "%s", error_message());
    double sum = 0;
    for (int p = 0; p < before.model->params; p++) {
        size_t count;
        real *a = tiny_read(&before, TENSOR_PARAMETER, p, &count);
        real *b = tiny_read(&after, TENSOR_PARAMETER, p, &count);
        for (size_t i = 0; i < count; i++)
            sum += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
        free(a);
        free(b);
    }
    batch_free(&batch);
    tiny_close(&before);
    tiny_close(&after);
    return sqrt(sum);
}

/* Clips the norm of all active gradients together.  The step is measured as a difference of
 * parameters, which are at most about 1 and each rounded; no tiny model has 10,000 of them. */
static void clipping_limits_the_step(const void *spec) {
    double unclipped = step_norm(spec, 0), limit = unclipped / 3;
    CHECK(unclipped > 0, "nothing moved");
    double norm = step_norm(spec, limit);
    CHECK(fabs(norm - limit) <= tolerance(1e4, 1), "clipped to %g: moved %g", limit, norm);
    norm = step_norm(spec, unclipped * 3);
    CHECK(norm == unclipped, "a limit above the norm changed the step from %g to %g", unclipped,
          norm);
}

/* With decay of matrices only, vectors move as without decay, and matrices as with it. */
static void decay_may_spare_vectors(const void *spec) {
    Tiny none, all, matrices;
    Tiny *each[] = {&none, &all, &matrices};
    for (int i = 0; i < 3; i++) {
        tiny_open(each[i], &(Recipe){.spec = spec});
        OptimizerSettings *optimizer = &each[i]->stage->settings.optimizer;
        optimizer->weight_decay = i ? 0.1 : 0;
        optimizer->decay_matrices_only = i == 2;
        tiny_activate(each[i], 0);
        Batch batch = tiny_batch(each[i], 4);
        Loss loss;
        CHECK(engine_step(each[i]->engine, &batch, 0.1, &loss) == 0, "%s", error_message());
        batch_free(&batch);
    }
    for (int p = 0; p < none.model->params; p++) {
        size_t count;
        bool matrix = none.model->param[p].rank >= 2;
        const Tiny *like = matrix ? &all : &none;
        real *got = tiny_read(&matrices, TENSOR_PARAMETER, p, &count);
        real *expected = tiny_read(like, TENSOR_PARAMETER, p, &count);
        real *plain = tiny_read(&none, TENSOR_PARAMETER, p, &count);
        real *all_decay = tiny_read(&all, TENSOR_PARAMETER, p, &count);
        CHECK(memcmp(got, expected, count * sizeof(real)) == 0, "%s", none.model->param[p].name);
        bool trained = none.settings.partition.of_block[none.model->param[p].block] == 0;
        bool decayed = memcmp(got, plain, count * sizeof(real)) != 0;
        CHECK(decayed == (trained && matrix), "%s is %sdecayed", none.model->param[p].name,
              decayed ? "" : "not ");
        decayed = memcmp(all_decay, plain, count * sizeof(real)) != 0;
        /* In a first step there is nothing to decay. */
        bool zeros = none.model->param[p].init == INIT_ZEROS;
        CHECK(decayed == (trained && !zeros), "of all: %s is %sdecayed", none.model->param[p].name,
              decayed ? "" : "not ");
        free(all_decay);
        free(got);
        free(expected);
        free(plain);
    }
    for (int i = 0; i < 3; i++) tiny_close(each[i]);
}

void test_update(void) {
    for (int i = 0; tiny_models[i]; i++) {
        RUN_ROW("clipping", clipping_limits_the_step, tiny_models[i]);
        RUN_ROW("decay", decay_may_spare_vectors, tiny_models[i]);
    }
}
