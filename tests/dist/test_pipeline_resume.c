/* A checkpoint does not depend on the number of ranks: a training that started on four ranks
 * resumes on any number, with the bits of a training that never stopped. */
#include <stdlib.h>
#include <string.h>

#include "../../ref/base/error.h"
#include "../test.h"
#include "pipeline.h"

typedef struct {
    const char *name, *spec;
    OptimizerKind optimizer;
    double clip;
    bool keep_state;
} Row;

static const Row rows[] = {
    {"llama, sgd", LLAMA, .optimizer = OPTIMIZER_SGD},
    {"llama, adamw, clipped", LLAMA, OPTIMIZER_ADAMW, .clip = 0.05},
    {"llama, adam, state kept", LLAMA, OPTIMIZER_ADAM, .keep_state = true},
    {"llama, muon, clipped", LLAMA, OPTIMIZER_MUON, .clip = 0.05},
    {"llama, muon, state kept", LLAMA, OPTIMIZER_MUON, .keep_state = true},
    {"resnet, sgd", RESNET, .optimizer = OPTIMIZER_SGD},
};

static Recipe recipe_of(const Row *row) {
    return (Recipe){.spec = row->spec,
                    .steps = 9,
                    .optimizer = row->optimizer,
                    .clip = row->clip,
                    .keep_state = row->keep_state,
                    .micro_batches = 2};
}

static void check_ends_like(const Tiny *whole, const Tiny *other, const char *what) {
    tiny_check_same(whole, other, what);
    CHECK(memcmp(&whole->state, &other->state, sizeof whole->state) == 0,
          "%s: the state of the loop", what);
}

static void resumes_on_any_number_of_ranks(const void *data) {
    static const char *const names[] = {"one device", "1 rank", "2 ranks", "3 ranks"};
    const Row *row = data;
    Recipe recipe = recipe_of(row);
    PipelineRecipe four = pipeline_plain(4, 2);
    Tiny whole;
    tiny_trained(&whole, &recipe);
    for (uint64_t at = 3; at < 9; at += 4) { /* in the middle of submodels 2 and 1 */
        Pipeline first;
        pipeline_open(&first, &recipe, &four);
        CHECK(tiny_train(&first.tiny, tiny_stop_at, &at) == 1, "%s", error_message());
        for (int count = 0; count < 4; count++) {
            Pipeline second = {0};
            PipelineRecipe how = pipeline_plain(count, 2);
            if (count > 0)
                pipeline_open(&second, &recipe, &how);
            else
                tiny_open(&second.tiny, &recipe);
            tiny_restore(&first.tiny, &second.tiny);
            CHECK(tiny_train(&second.tiny, NULL, NULL) == 0, "%s", error_message());
            check_ends_like(&whole, &second.tiny, names[count]);
            pipeline_close(&second);
        }
        pipeline_close(&first);
    }
    tiny_close(&whole);
}

static size_t bytes_to_workers(const Pipeline *p) {
    size_t bytes = 0;
    engine_memory(p->tiny.engine); /* waits for all ranks */
    for (int r = 0; r < PIPELINE_MAX_RANKS; r++) bytes += p->sent[r].collective_bytes;
    return bytes;
}

/* A checkpoint is written by rank 0, and no other rank needs its tensors. */
static void tensors_go_to_rank_0_alone(void) {
    Recipe recipe = recipe_of(&rows[2]);
    PipelineRecipe four = pipeline_plain(4, 2);
    Pipeline p;
    size_t count, tensors = 0;
    pipeline_open(&p, &recipe, &four);
    tiny_activate(&p.tiny, 1);
    const size_t before = bytes_to_workers(&p);
    for (int i = 0; i < p.tiny.model->params; i++)
        for (int role = TENSOR_PARAMETER; role <= TENSOR_STATE1; role++) {
            if (role == TENSOR_BUFFER) continue;
            free(tiny_read(&p.tiny, (TensorRole)role, i, &count));
            tensors += count > 0;
        }
    const size_t sent = bytes_to_workers(&p) - before;
    CHECK(tensors > (size_t)p.tiny.model->params && sent == 0,
          "%zu bytes of %zu tensors went to other ranks", sent, tensors);
    pipeline_close(&p);
}

void test_pipeline_resume(void) {
    RUN(tensors_go_to_rank_0_alone);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        RUN_ROW(rows[i].name, resumes_on_any_number_of_ranks, &rows[i]);
}
