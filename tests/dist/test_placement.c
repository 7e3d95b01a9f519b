/* Placements cover the model; their submodels and the memory of their ranks are those that the
 * simulator takes. */
#include <stdlib.h>
#include <string.h>

#include "../../dist/rank_plan.h"
#include "../../dist/simulate.h"
#include "../../ref/base/error.h"
#include "../../ref/blocks/models.h"
#include "../test.h"

typedef struct {
    const char *name;
    PlacementKind kind;
    int ranks, submodels;
} PlacementRow;

static const PlacementRow placement_rows[] = {
    {"plain 3 ranks", PLACEMENT_PLAIN, 3, 1},
    {"plain 4 ranks, 3 submodels", PLACEMENT_PLAIN, 4, 3},
    {"plain, a rank and a submodel for each block", PLACEMENT_PLAIN, 16, 16},
    {"virtual 2 ranks, 3 submodels", PLACEMENT_VIRTUAL, 2, 3},
    {"virtual 4 ranks, 3 submodels", PLACEMENT_VIRTUAL, 4, 3},
    {"figure 2, 3 ranks, 2 submodels", PLACEMENT_FIGURE2, 3, 2},
    {"figure 2, 1 rank, 4 submodels", PLACEMENT_FIGURE2, 1, 4},
};

static void check_cover(const Placement *p, int blocks) {
    int *held = calloc((size_t)(p->ranks * p->submodels), sizeof *held);
    if (!held) abort();
    for (int b = 0; b < blocks; b++) {
        CHECK(p->chunk_of[b] >= 0 && p->chunk_of[b] < p->chunks, "block %d is nowhere", b);
        int step = b ? p->chunk_of[b] - p->chunk_of[b - 1] : p->chunk_of[0];
        CHECK(step == 0 || (step == 1 && b), "the chunk of block %d is %d", b, p->chunk_of[b]);
        CHECK(p->submodel_of[b] >= 0 && p->submodel_of[b] < p->submodels, "block %d never trains",
              b);
        held[p->rank_of[p->chunk_of[b]] * p->submodels + p->submodel_of[b]]++;
    }
    CHECK(p->chunk_of[blocks - 1] == p->chunks - 1, "the last chunk is empty");
    bool everywhere = p->kind != PLACEMENT_PLAIN;
    for (int i = 0; i < p->ranks * p->submodels && everywhere; i++)
        CHECK(held[i], "rank %d holds nothing of submodel %d", i / p->submodels, i % p->submodels);
    free(held);
}

static void placement_covers(const void *data) {
    const PlacementRow *row = data;
    double cost[32];
    for (int b = 0; b < 32; b++) cost[b] = 1 + 0.1 * (b % 3);
    Model *model = model_create("gpt:layers=14,width=32,heads=2,context=8,vocabulary=16");
    Placement p;
    if (!CHECK(placement_make(&p, model, row->kind, row->ranks, row->submodels, cost, NULL) == 0,
               "%s", error_message()))
        return;
    check_cover(&p, model->blocks);
    placement_free(&p);
    model_free(model);
}

static void placement_refuses_too_many_pieces(void) {
    double cost[32] = {0};
    Model *model = model_create("gpt:layers=4,width=32,heads=2,context=8,vocabulary=16");
    for (PlacementKind kind = 0; kind < PLACEMENTS; kind++) {
        Placement p;
        CHECK(placement_make(&p, model, kind, 7, 3, cost, NULL) == -1, "%s was accepted",
              placement_names[kind]);
    }
    model_free(model);
}

/* Each of two ranks needs a piece of each submodel, so one of a single block is too small, although
 * there are more blocks than ranks x submodels. */
static void virtual_stages_need_a_block_on_each_rank(void) {
    static const int submodel_of[] = {0, 1, 1, 1, 1, 1};
    double cost[6] = {0};
    Model *model = model_create("gpt:layers=4,width=32,heads=2,context=8,vocabulary=16");
    Placement p;
    CHECK(placement_make(&p, model, PLACEMENT_VIRTUAL, 2, 2, cost, submodel_of) == -1 &&
              strstr(error_message(), "part 1 of the model has 1 blocks, too few for 2 pieces"),
          "%s", error_message());
    model_free(model);
}

/* Blocks that are always active are in no chunk of a submodel, wherever they are. */
static void virtual_stages_have_no_block_that_is_always_active(void) {
    static const int front[] = {ALWAYS_ACTIVE, 0, 0, 0, 1, 1, 1, 1},
                     end[] = {0, 0, 0, 0, 1, 1, 1, ALWAYS_ACTIVE};
    const double cost[8] = {0};
    Model *model = model_create("gpt:layers=6,width=32,heads=2,context=8,vocabulary=16");
    for (int i = 0; i < 2; i++) {
        Placement p;
        CHECK(placement_make(&p, model, PLACEMENT_VIRTUAL, 2, 2, cost, i ? end : front) == -1 &&
                  strstr(error_message(), "without blocks that are always active"),
              "%s", error_message());
    }
    model_free(model);
}

/* ---- memory ---- */

static Configuration configuration(const Model *model, const PlacementRow *row) {
    return (Configuration){
        .model = model,
        .cluster = {gpu_find("rtx4090"), 8, 4, NETWORK_2X25G, efficiency_default},
        .stage = {.batch = 2, .optimizer = optimizer_defaults(OPTIMIZER_ADAM)},
        .submodels = row->submodels,
        .pipeline = row->ranks,
        .replicas = 1,
        .micro_batches = 5};
}

/* Updates `max` where this rank needs more bytes; the last element is for the sum of all roles. */
static void plan_rank(size_t max[MEM_ROLES + 1], const Configuration *c, const Placement *p,
                      int rank, int submodel) {
    RankBlocks blocks;
    bool active[64];
    size_t bytes[MEM_ROLES + 1] = {0};
    StageSettings settings = c->stage;
    PipelineSettings pipeline = {.micro_batches = c->micro_batches, .kind = c->schedule};
    for (int b = 0; b < c->model->blocks; b++) active[b] = p->submodel_of[b] == submodel;
    if (!CHECK(rank_blocks_create(&blocks, p, c->model, rank) == 0 &&
                   rank_blocks_set_in_flight(&blocks, p, c->model, pipeline, active) == 0,
               "%s", error_message()))
        return;
    settings.local = blocks.local;
    settings.in_flight = blocks.in_flight;
    CHECK(memory_plan(bytes, c->model, &settings, active) == 0, "%s", error_message());
    ChunkCost *cost = calloc((size_t)p->chunks, sizeof *cost);
    const SchedulePlan plan = rank_schedule_plan(cost, p, c->model, pipeline, active);
    if (p->ranks > 1) /* on GPUs messages take memory, too */
        bytes[MEM_WORKSPACE] += rank_message_bytes(p, &plan, c->model, &settings, rank);
    free(cost);
    for (int role = 0; role < MEM_ROLES; role++) bytes[MEM_ROLES] += bytes[role];
    if (bytes[MEM_ROLES] > max[MEM_ROLES]) memcpy(max, bytes, sizeof bytes);
    rank_blocks_free(&blocks);
}

/* Two ranks with a chunk each, and four micro-batches of 3 samples of 8 x 16 numbers: in an
 * evaluation the lower rank may have sent all of them, and the upper one takes two at a time.  In a
 * full update outputs of two are on their way, and as many gradients. */
static void messages_between_two_ranks(void) {
    static const int one[] = {0, 1, 1, 1}, rank_of[] = {0, 1};
    Model *model = model_create("gpt:layers=2,width=16,heads=2,context=8,vocabulary=32");
    const StageSettings settings = {.batch = 3};
    const Placement p = {
        .ranks = 2, .chunks = 2, .chunk_of = (int *)one, .rank_of = (int *)rank_of};
    const size_t message = 3 * 8 * 16 * sizeof(real);
    for (int lowest = 0; lowest <= 2; lowest++) {
        const SchedulePlan plan = {.kind = SCHEDULE_1F1B,
                                   .ranks = 2,
                                   .chunks = 2,
                                   .micro_batches = 4,
                                   .rank_of = rank_of,
                                   .lowest = lowest};
        const size_t below = rank_message_bytes(&p, &plan, model, &settings, 0),
                     above = rank_message_bytes(&p, &plan, model, &settings, 1);
        CHECK(below == 4 * message && above == (lowest ? 2 : 4) * message,
              "lowest %d: %zu and %zu messages", lowest, below / message, above / message);
    }
    model_free(model);
}

/* In bf16 the host keeps the parameters as floats; with offload their copies that go to the card,
 * gradients and Adam's two vectors, too.  Of two ranks on two nodes each keeps half. */
static void the_host_keeps_floats(void) {
    static const struct {
        Precision precision;
        bool offload;
        double bytes; /* of a parameter */
    } rows[] = {{PRECISION_FP32, false, 0},
                {PRECISION_TF32, false, 0},
                {PRECISION_BF16, false, 4},
                {PRECISION_FP32, true, 4 + 4 + 8},
                {PRECISION_BF16, true, 4 + 2 + 4 + 8}};
    const PlacementRow ranks = {"two ranks", PLACEMENT_PLAIN, 2, 1};
    Model *model = model_create("gpt:layers=10,width=64,heads=4,context=32,vocabulary=96");
    Configuration c = configuration(model, &ranks);
    c.cluster.per_node = 1;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Prediction p;
        c.stage.precision = rows[i].precision;
        c.stage.offload = rows[i].offload;
        CHECK(simulate(&p, NULL, &c, NULL) == 0, "%s", error_message());
        CHECK(p.host_bytes == rows[i].bytes * (double)model->param_count / 2,
              "%s%s: %g bytes of %zu parameters", precision_names[rows[i].precision],
              rows[i].offload ? ", offload" : "", p.host_bytes, model->param_count);
    }
    model_free(model);
}

/* A plan fits into what a card leaves to a program, to the byte. */
static void a_plan_fits_a_card(void) {
    const PlacementRow ranks = {"two ranks", PLACEMENT_PLAIN, 2, 1};
    Model *model = model_create("gpt:layers=10,width=64,heads=4,context=32,vocabulary=96");
    Configuration c = configuration(model, &ranks);
    Gpu card = *c.cluster.gpu;
    Prediction p;
    CHECK(simulate(&p, NULL, &c, NULL) == 0, "%s", error_message());
    const double whole = p.total_bytes / gpu_usable_bytes(1);
    c.cluster.gpu = &card;
    for (int less = -1; less <= 1; less += 2) {
        card.memory_bytes = whole - less;
        CHECK(simulate(&p, NULL, &c, NULL) == 0, "%s", error_message());
        CHECK(p.fits == (less < 0), "%g bytes on a card of %g", p.total_bytes, card.memory_bytes);
    }
    model_free(model);
}

static void check_fullest(const Configuration *c, const Placement *placement) {
    size_t max[MEM_ROLES + 1] = {0};
    Prediction p;
    for (int submodel = 0; submodel < c->submodels; submodel++)
        for (int rank = 0; rank < c->pipeline; rank++) plan_rank(max, c, placement, rank, submodel);
    CHECK(simulate(&p, NULL, c, NULL) == 0, "%s", error_message());
    for (int role = 0; role < MEM_ROLES; role++)
        CHECK(p.bytes[role] == (double)max[role], "%s, %s%s: %s: %g bytes, planned %zu",
              c->model->name, schedule_names[c->schedule], c->stage.recompute ? ", recompute" : "",
              mem_role_names[role], p.bytes[role], max[role]);
}

/* The predicted bytes are those of the rank whose stage plans the largest sum. */
static void memory_is_that_of_the_stages(const void *data) {
    const PlacementRow *row = data;
    static const char *const specs[] = {"gpt:layers=10,width=64,heads=4,context=32,vocabulary=96",
                                        "resnet:depth=32,width=4",
                                        ("llama:layers=22,width=32,heads=2,ffn=64,context=16,"
                                         "vocabulary=96")};
    int compared = 0;
    for (int i = 0; i < 12; i++) {
        Model *model = model_create(specs[i % 3]);
        Configuration c = configuration(model, row);
        Placement placement;
        double work[64];
        for (int b = 0; b < model->blocks; b++) work[b] = 1;
        if (placement_make(&placement, model, row->kind, row->ranks, row->submodels, work, NULL)) {
            model_free(model);
            continue;
        }
        c.placed = &placement;
        c.schedule = i / 3 % 2 ? SCHEDULE_ZERO_BUBBLE : SCHEDULE_1F1B;
        c.stage.deferred = c.schedule == SCHEDULE_ZERO_BUBBLE;
        c.stage.recompute = i / 6;
        check_fullest(&c, &placement);
        compared++;
        placement_free(&placement);
        model_free(model);
    }
    CHECK(compared >= 4, "only %d were placed", compared);
}

/* ---- submodels ---- */

/* gpt2's embedding has a third of its parameters and almost no work: it is a submodel of its own,
 * as in a training, which cannot be cut for two ranks. */
static void submodels_are_those_of_a_training(void) {
    static const PlacementRow row = {"", PLACEMENT_PLAIN, 1, 3};
    Model *model = model_create("gpt2");
    Configuration c = configuration(model, &row);
    Partition trained;
    Placement placement;
    size_t bytes = (size_t)model->blocks * sizeof(int);
    CHECK(partition_balanced(&trained, model, 3, NULL) == 0, "%s", error_message());
    for (c.placement = PLACEMENT_PLAIN; c.placement <= PLACEMENT_VIRTUAL; c.placement++)
        for (int equal_work = 0; equal_work < 2; equal_work++) {
            c.equal_work = equal_work;
            CHECK(simulate_place(&placement, &c) == 0, "%s", error_message());
            CHECK(!memcmp(placement.submodel_of, trained.of_block, bytes) == !equal_work,
                  "%s, equal %s", placement_names[c.placement], equal_work ? "work" : "parameters");
            placement_free(&placement);
        }
    c.placement = PLACEMENT_VIRTUAL;
    c.equal_work = false;
    c.pipeline = 2;
    CHECK(simulate_place(&placement, &c) == -1 &&
              strstr(error_message(), "part 1 of the model has 1 blocks, too few for 2 pieces"),
          "%s", error_message());
    partition_free(&trained);
    model_free(model);
}

/* The gradients are those of the embedding, a third of the layers, and the head. */
static void always_active_blocks_train(void) {
    static const PlacementRow row = {"", PLACEMENT_PLAIN, 1, 3};
    Model *model = model_create("gpt:layers=10,width=64,heads=4,context=32,vocabulary=96");
    Configuration c = configuration(model, &row);
    Partition ends;
    Placement placement;
    Prediction p;
    double cost[12] = {0};
    CHECK(partition_balanced(&ends, model, 3, "ends") == 0, "%s", error_message());
    CHECK(placement_make(&placement, model, PLACEMENT_PLAIN, 1, 3, cost, ends.of_block) == 0, "%s",
          error_message());
    c.placed = &placement;
    CHECK(simulate(&p, NULL, &c, NULL) == 0, "%s", error_message());
    size_t largest = 0;
    for (int k = 0; k < 3; k++) largest = size_max(largest, ends.params[k]);
    double gradients = (double)(ends.always_params + largest) * sizeof(float);
    CHECK(p.bytes[MEM_GRADIENTS] == gradients, "%g bytes of gradients, not %g",
          p.bytes[MEM_GRADIENTS], gradients);
    placement_free(&placement);
    partition_free(&ends);
    model_free(model);
}

/* ---- closed forms ---- */

/* In 1F1B without virtual stages rank r of p keeps its blocks' outputs, and those that it receives,
 * of p - r micro-batches.  A rank below the active blocks has room for two of its own, whose copies
 * it sends. */
static void in_flight_in_closed_form(void) {
    enum { RANKS = 4, BLOCKS = 8 };
    const PipelineSettings settings = {.micro_batches = 16};
    double cost[BLOCKS];
    for (int b = 0; b < BLOCKS; b++) cost[b] = 1;
    Model *model = model_create("gpt:layers=6,width=32,heads=2,context=8,vocabulary=16");
    Placement p;
    if (!CHECK(placement_make(&p, model, PLACEMENT_PLAIN, RANKS, 1, cost, NULL) == 0, "%s",
               error_message()))
        return;
    for (int full = 0; full < 2; full++)
        for (int rank = 0; rank < RANKS; rank++) {
            RankBlocks blocks;
            bool active[BLOCKS];
            for (int b = 0; b < BLOCKS; b++) active[b] = full || b == BLOCKS - 2;
            int received = RANKS - rank, own = full || rank == RANKS - 1 ? received : 2;
            if (!full && rank < RANKS - 1) received = 2;
            if (!CHECK(rank_blocks_create(&blocks, &p, model, rank) == 0 &&
                           rank_blocks_set_in_flight(&blocks, &p, model, settings, active) == 0,
                       "%s", error_message()))
                break;
            for (int b = 2 * rank - 1; b < 2 * rank + 2; b++)
                CHECK(b < 0 || blocks.in_flight[b] == (b < 2 * rank ? received : own),
                      "%s: rank %d keeps block %d of %d micro-batches", full ? "full" : "the last",
                      rank, b, blocks.in_flight[b]);
            rank_blocks_free(&blocks);
        }
    placement_free(&p);
    model_free(model);
}

/* A head is a norm, whose operations are not counted, and a linear layer, which in each of its
 * three passes multiplies and adds t x c x vocabulary times. */
static void work_is_that_of_a_full_update(void) {
    Model *model = model_create("gpt:layers=1,width=32,heads=2,context=8,vocabulary=16");
    double work[3];
    placement_work(work, model);
    CHECK(work[2] == 1 + 3 * 2 * 8 * 32 * 16, "%g operations", work[2]);
    model_free(model);
}

void test_placement(void) {
    for (size_t i = 0; i < sizeof placement_rows / sizeof *placement_rows; i++) {
        RUN_ROW(placement_rows[i].name, placement_covers, &placement_rows[i]);
        RUN_ROW(placement_rows[i].name, memory_is_that_of_the_stages, &placement_rows[i]);
    }
    RUN(the_host_keeps_floats);
    RUN(a_plan_fits_a_card);
    RUN(messages_between_two_ranks);
    RUN(placement_refuses_too_many_pieces);
    RUN(virtual_stages_need_a_block_on_each_rank);
    RUN(virtual_stages_have_no_block_that_is_always_active);
    RUN(submodels_are_those_of_a_training);
    RUN(always_active_blocks_train);
    RUN(in_flight_in_closed_form);
    RUN(work_is_that_of_a_full_update);
}
