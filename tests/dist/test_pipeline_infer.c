/* Pre-inference: all ranks infer the frozen prefix before a phase, each for a share of its samples.
 * The bits are those of a training on one device without it. */
#include <pthread.h>
#include <string.h>

#include "../../ref/base/error.h"
#include "../../ref/stage_ref.h"
#include "../test.h"
#include "pipeline.h"

typedef struct {
    const char *name, *spec;
    int ranks, infer_ranks, replicas;
    PlacementKind placement;
    SwitchRule rule; /* 5 steps */
    int batch;       /* 4 */
    int micro_batches;
    double fraction; /* of 12 samples; 1 */
    bool recompute, keep_state;
    size_t bytes; /* 1 MB */
    const char *dir;
} Row;

static const Row rows[] = {
    {"1 rank", LLAMA, 1, 1, .micro_batches = 2},
    {"2 ranks", LLAMA, 2, 2, .micro_batches = 2},
    {"3 ranks", LLAMA, 3, 3, .micro_batches = 2},
    {"4 ranks", LLAMA, 4, 4, .micro_batches = 4},
    {"4 ranks, of which 1 has room", LLAMA, 4, 1, .micro_batches = 2},
    {"4 ranks, of which 3 have room", LLAMA, 4, 3, .micro_batches = 2},
    {"1 rank, without room", LLAMA, 1, 0, .micro_batches = 2},
    {"4 ranks, of which none has room", LLAMA, 4, 0, .micro_batches = 2},
    {"2 ranks without room, virtual stages", LLAMA, 2, 0, .placement = PLACEMENT_VIRTUAL,
     .micro_batches = 4},
    {"2 replicas without room, a batch of 5", LLAMA, 2, 0, .replicas = 2, .micro_batches = 2,
     .batch = 5},
    {"2 ranks, virtual stages", LLAMA, 2, 2, .placement = PLACEMENT_VIRTUAL, .micro_batches = 2},
    {"2 ranks, recompute", LLAMA, 2, 2, .micro_batches = 2, .recompute = true},
    {"2 ranks, keeps state", LLAMA, 2, 2, .micro_batches = 2, .keep_state = true},
    {"2 ranks, in a file", LLAMA, 2, 2, .micro_batches = 2, .bytes = 1, .dir = "/tmp"},
    {"2 ranks, nothing is kept", LLAMA, 2, 2, .micro_batches = 2, .bytes = 1},
    {"2 ranks, part of the data", LLAMA, 2, 2, .micro_batches = 2, .fraction = 0.5},
    {"2 ranks, a batch of 5", LLAMA, 2, 2, .micro_batches = 2, .batch = 5},
    {"2 ranks, a phase of an epoch and a half", LLAMA, 2, 2, .micro_batches = 2,
     .rule = {SWITCH_EPOCHS, .every = 1.5}},
    {"2 ranks, a phase of a step", LLAMA, 2, 2, .micro_batches = 2, .rule = {.every = 1}},
    {"2 ranks, a phase that ends by its loss", LLAMA, 2, 2, .micro_batches = 2,
     .rule = {SWITCH_AUTO, .window = 2, .tolerance = 0.01, .min_steps = 4, .max_steps = 9}},
    {"2 replicas of 2 ranks", LLAMA, 2, 2, .replicas = 2, .micro_batches = 2},
    {"2 replicas of 2 ranks, a batch of 5", LLAMA, 2, 2, .replicas = 2, .micro_batches = 2,
     .batch = 5},
    {"resnet, 3 ranks", RESNET, 3, 3, .micro_batches = 2},
    {"resnet, 2 ranks, virtual stages", RESNET, 2, 2, .placement = PLACEMENT_VIRTUAL,
     .micro_batches = 2},
};

static Recipe recipe_of(const Row *row) {
    return (Recipe){
        .spec = row->spec,
        .submodels = 3,
        .steps = 30,
        .rule = row->rule.every > 0 || row->rule.window ? row->rule : (SwitchRule){.every = 5},
        .batch = row->batch ? row->batch : 4,
        .fraction = row->fraction,
        .recompute = row->recompute,
        .keep_state = row->keep_state,
        .micro_batches = row->micro_batches};
}

/* Opens the pipeline of a row, with pre-inference or, for comparison, without any cache. */
static void open_pipeline(Pipeline *p, const Row *row, bool infers,
                          Stage *(*create)(const Model *, StageSettings)) {
    Recipe recipe = recipe_of(row);
    recipe.create = create;
    recipe.cache_bytes = !infers ? 0 : row->bytes ? row->bytes : 1 << 20;
    recipe.cache_dir = row->dir;
    PipelineRecipe how = {.placement = row->placement,
                          .ranks = row->ranks,
                          .submodels = row->placement == PLACEMENT_VIRTUAL ? 3 : 1,
                          .replicas = row->replicas,
                          .pre_infer = infers,
                          .settings = {.micro_batches = row->micro_batches,
                                       .infer_ranks = infers ? row->infer_ranks : 0}};
    pipeline_open(p, &recipe, &how);
    if (!CHECK(p->tiny.engine, "%s", error_message())) return;
}

static void same_bits(const void *data) {
    const Row *row = data;
    Pipeline plain, inferred;
    TinyCurve a = {0}, b = {0};
    open_pipeline(&plain, row, false, NULL);
    open_pipeline(&inferred, row, true, NULL);
    CHECK(tiny_train(&plain.tiny, tiny_note_loss, &a) == 0, "%s", error_message());
    CHECK(tiny_train(&inferred.tiny, tiny_note_loss, &b) == 0, "%s", error_message());
    CHECK(a.steps == 30 && memcmp(&a, &b, sizeof a) == 0, "losses differ");
    tiny_check_same(&plain.tiny, &inferred.tiny, row->name);
    if (!row->replicas) { /* replicas add up gradients in another order than one device */
        Recipe recipe = recipe_of(row);
        Tiny one;
        tiny_trained(&one, &recipe);
        tiny_check_same(&one, &inferred.tiny, "one device");
        tiny_close(&one);
    }
    pipeline_close(&plain);
    pipeline_close(&inferred);
}

/* ---- who infers what ---- */

enum { STAGES = 32 };

/* The samples that each stage has inferred. */
static struct {
    pthread_mutex_t lock;
    const Stage *stage[STAGES];
    int samples[STAGES], stages;
} counts = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const StageClass *sound;

static void counted_begin(Stage *stage, const Batch *batch, Mode mode) {
    pthread_mutex_lock(&counts.lock);
    int i = 0;
    while (i < counts.stages && counts.stage[i] != stage) i++;
    if (mode == MODE_EVALUATE && i < STAGES) {
        counts.stage[i] = stage;
        if (i == counts.stages) counts.stages++;
        counts.samples[i] += batch->n;
    }
    pthread_mutex_unlock(&counts.lock);
    sound->begin(stage, batch, mode);
}

static Stage *create_counting(const Model *model, StageSettings settings) {
    static StageClass class;
    Stage *stage = stage_ref_create(model, settings);
    if (!stage) return NULL;
    pthread_mutex_lock(&counts.lock);
    sound = stage->is == &class ? sound : stage->is;
    class = *sound;
    class.begin = counted_begin;
    pthread_mutex_unlock(&counts.lock);
    stage->is = &class;
    return stage;
}

/* In a phase of 5 steps of 6 samples each, every one of the 12 samples is inferred once: 4 by each
 * of three ranks. */
static void ranks_have_disjoint_shares(void) {
    Row row = {"", LLAMA, 3, 3, .batch = 6, .micro_batches = 2};
    Pipeline p;
    memset(counts.samples, 0, sizeof counts.samples);
    counts.stages = 0;
    open_pipeline(&p, &row, true, create_counting);
    uint64_t stop = 6; /* one step of the second submodel */
    CHECK(tiny_train(&p.tiny, tiny_stop_at, &stop) == 1, "%s", error_message());
    engine_memory(p.tiny.engine); /* waits for all ranks */
    CHECK(counts.stages == 3, "%d stages", counts.stages);
    for (int i = 0; i < counts.stages; i++)
        CHECK(counts.samples[i] == 4, "a rank inferred %d samples", counts.samples[i]);
    pipeline_close(&p);
}

/* The stage of the prefix is gone while the phase trains, and is counted in the peaks. */
static void memory_is_returned(void) {
    Row row = {"", LLAMA, 3, 2, .micro_batches = 2};
    Pipeline with, without;
    open_pipeline(&with, &row, true, NULL);
    open_pipeline(&without, &row, false, NULL);
    uint64_t stop = 12;
    tiny_train(&with.tiny, tiny_stop_at, &stop);
    tiny_train(&without.tiny, tiny_stop_at, &stop);
    engine_memory(with.tiny.engine);
    engine_memory(without.tiny.engine);
    for (int r = 0; r < 3; r++) {
        const MemCount *a = &with.stage[r]->memory, *b = &without.stage[r]->memory;
        CHECK(a->current[MEM_PARAMETERS] == b->current[MEM_PARAMETERS], "rank %d keeps the prefix",
              r);
        CHECK((a->peak[MEM_PARAMETERS] > b->peak[MEM_PARAMETERS]) == (r < 2),
              "rank %d: peaks %zu and %zu", r, a->peak[MEM_PARAMETERS], b->peak[MEM_PARAMETERS]);
    }
    pipeline_close(&with);
    pipeline_close(&without);
}

/* ---- stopped and resumed ---- */

static int stops, batches;

static int stop_inference(void *context, const BcdState *state, int done, int samples) {
    (void)context;
    batches++;
    CHECK(done > 0 && done <= samples && state->phase_steps <= 5, "%d of %d", done, samples);
    return stops++ % 2;
}

/* A pre-inference that is stopped leaves the state between two phases, or within one. */
static void stopped_inference_resumes(void) {
    Row row = {"", LLAMA, 2, 2, .micro_batches = 2};
    enum { STOPS = 30 };
    Pipeline whole, run[STOPS + 1]; /* the ranks keep pointers to these, so they must not move */
    Pipeline *stopped = run;
    TinyCurve a = {0}, b = {0};
    open_pipeline(&whole, &row, true, NULL);
    CHECK(tiny_train(&whole.tiny, tiny_note_loss, &a) == 0, "%s", error_message());
    open_pipeline(stopped, &row, true, NULL);
    stops = batches = 0;
    stopped->tiny.settings.inferred = stop_inference;
    int result = 1, times = 0;
    for (; result == 1 && times < STOPS; times++) {
        Pipeline *next = stopped + 1;
        result = tiny_train(&stopped->tiny, tiny_note_loss, &b);
        if (result != 1) break;
        open_pipeline(next, &row, true, NULL); /* as after kill -9 */
        tiny_restore(&stopped->tiny, &next->tiny);
        pipeline_close(stopped);
        stopped = next;
        stopped->tiny.settings.inferred = times < 5 ? stop_inference : NULL;
    }
    CHECK(result == 0 && times > 3, "%d, after %d stops", result, times);
    CHECK(a.steps == b.steps && memcmp(&a, &b, sizeof a) == 0, "losses differ");
    tiny_check_same(&whole.tiny, &stopped->tiny, "stopped");
    pipeline_close(&whole);
    pipeline_close(stopped);
}

/* In the middle of a phase only the samples of its remaining steps are inferred. */
static void a_phase_resumes_in_its_middle(void) {
    Row row = {"", LLAMA, 3, 3, .micro_batches = 2};
    Pipeline whole, first, second;
    open_pipeline(&whole, &row, true, NULL);
    CHECK(tiny_train(&whole.tiny, NULL, NULL) == 0, "%s", error_message());
    open_pipeline(&first, &row, true, NULL);
    uint64_t stop = 9; /* one step of the second submodel, of 4 samples, is left */
    CHECK(tiny_train(&first.tiny, tiny_stop_at, &stop) == 1, "%s", error_message());
    open_pipeline(&second, &row, true, create_counting);
    tiny_restore(&first.tiny, &second.tiny);
    memset(counts.samples, 0, sizeof counts.samples);
    counts.stages = 0;
    stop = 10;
    CHECK(tiny_train(&second.tiny, tiny_stop_at, &stop) == 1, "%s", error_message());
    engine_memory(second.tiny.engine);
    int samples = 0;
    for (int i = 0; i < counts.stages; i++) samples += counts.samples[i];
    CHECK(samples == 4, "%d samples inferred", samples);
    CHECK(tiny_train(&second.tiny, NULL, NULL) == 0, "%s", error_message());
    tiny_check_same(&whole.tiny, &second.tiny, "resumed");
    pipeline_close(&whole);
    pipeline_close(&first);
    pipeline_close(&second);
}

void test_pipeline_infer(void) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        RUN_ROW(rows[i].name, same_bits, &rows[i]);
    RUN(ranks_have_disjoint_shares);
    RUN(memory_is_returned);
    RUN(stopped_inference_resumes);
    RUN(a_phase_resumes_in_its_middle);
}
