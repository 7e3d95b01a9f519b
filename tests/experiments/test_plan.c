/* bcd plan: the choice among settings against trying all of them, costs against arithmetic by hand,
 * bytes against closed forms. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../experiments/plan/plan.h"
#include "../../ref/blocks/models.h"
#include "../leak.h"
#include "../near.h"
#include "cli.h"
#include "tables_sample.h"

#define GIB (1024.0 * 1024 * 1024)
#define TINY "--model gpt:layers=6,width=64,heads=4,context=32,vocabulary=96 "

/* Parses a command line as the program does. */
static void ask(PlanQuestion *q, CommandLine *line, const char *text) {
    char words[1024];
    snprintf(words, sizeof words, "plan %s", text);
    if (!CHECK(parse_line(line, words) == 0, "%s", error_message())) abort();
    if (!CHECK(question_open(q, line) == 0, "%s", error_message())) abort();
}

static PlanSpace space_of(const PlanQuestion *q, PlanMethod method, int gpus) {
    PlanSpace space;
    CHECK(question_space(&space, q, method, q->gpu, true) == 0, "%s", error_message());
    for (int n = 1; n <= gpus; n *= 2) choices_add(&space.gpus, n);
    return space;
}

/* ---- the search ---------------------------------------------------------------------------- */

/* Simulates every candidate. Returns the first of the best ones in *best, or if none fits of those
 * that lack the least memory. */
static bool brute_force(Plan *best, const PlanSpace *space, PlanGoal goal, int *tried) {
    Plan *plans;
    bool found = false;
    int count = plan_candidates(&plans, space);
    CHECK(count > 0, "%s", error_message());
    *best = (Plan){.prediction.missing_bytes = INFINITY};
    for (int i = 0; i < count; i++) {
        Plan *plan = &plans[i];
        const Prediction *p = &plan->prediction;
        if (simulate(&plan->prediction, NULL, &plan->configuration, NULL)) continue;
        if (!p->fits && !found && p->missing_bytes < best->prediction.missing_bytes) *best = *plan;
        if (!p->fits || (found && plan_score(plan, goal) >= plan_score(best, goal))) continue;
        *best = *plan;
        found = true;
    }
    *tried = count;
    free(plans);
    return found;
}

typedef struct {
    const char *name, *line;
    double memory_bytes; /* less than the card has, so that much does not fit; 0: unchanged */
} SpaceRow;

static const SpaceRow space_rows[] = {
    {"all that is free", TINY "--batch 16", 0},
    {"a small card", TINY "--batch 16", 1.4e6},
    {"a smaller card", TINY "--batch 16", 0.9e6},
    {"nothing fits", TINY "--batch 16", 1e5},
    {"a small host", TINY "--batch 16 --host-memory 0.001", 0},
    {"a small card and host", TINY "--batch 16 --host-memory 0.001", 2e6},
    {"cached, two nodes", TINY "--batch 24 --cache --per-node 2 --nodes 2 --network 1", 1.6e6},
    {"one sample in bf16", TINY "--batch 1 --precision bf16", 1.4e6},
    {"images", "--model resnet:depth=14,width=4 --batch 32 --optimizer sgd", 0},
};

static void case_search_is_brute_force(const void *data) {
    const SpaceRow *row = data;
    PlanQuestion q;
    CommandLine line;
    ask(&q, &line, row->line);
    Gpu gpu = *q.gpu;
    if (row->memory_bytes > 0) gpu.memory_bytes = row->memory_bytes;
    for (PlanMethod method = 0; method < PLAN_METHODS; method++)
        for (PlanGoal goal = PLAN_CHEAPEST; goal <= PLAN_FASTEST; goal++) {
            PlanSpace space = space_of(&q, method, 4);
            Plan all, best;
            int tried;
            space.plan.configuration.cluster.gpu = &gpu;
            bool found = brute_force(&all, &space, goal, &tried);
            if (!found && space.more_submodels.count) {
                PlanSpace finer = space;
                Plan other;
                finer.submodels = space.more_submodels;
                found = brute_force(&other, &finer, goal, &tried);
                if (plan_is_better(&other, &all, goal)) all = other;
            }
            CHECK(plan_choose(&best, &space, goal) == found, "%s: %s", plan_method_names[method],
                  error_message());
            test_note("%s: %d candidates, %s", plan_method_names[method], tried,
                      found ? "found" : "none");
            if (found)
                CHECK(memcmp(&all, &best, sizeof all) == 0 ||
                          (plan_score(&all, goal) == plan_score(&best, goal) &&
                           all.configuration.pipeline == best.configuration.pipeline &&
                           all.configuration.micro_batches == best.configuration.micro_batches),
                      "%s: %.17g s, of all %.17g s", plan_method_names[method],
                      best.prediction.step_s, all.prediction.step_s);
            else
                CHECK(best.prediction.missing_bytes == all.prediction.missing_bytes &&
                          plan_setting(&all).text[0] &&
                          !strcmp(plan_setting(&best).text, plan_setting(&all).text),
                      "%s lacks %g bytes, of all %s %g", plan_setting(&best).text,
                      best.prediction.missing_bytes, plan_setting(&all).text,
                      all.prediction.missing_bytes);
        }
    question_free(&q);
}

static void case_candidates(void) {
    PlanQuestion q;
    CommandLine line;
    ask(&q, &line, TINY "--batch 12 --gpu a100 --network 4");
    PlanSpace space = space_of(&q, PLAN_BCD, 8);
    double network_rate = space.plan.configuration.cluster.network_rate;
    CHECK(network_rate == 0.5e9, "4 Gbit/s are %g bytes/s", network_rate);
    Plan *plans;
    int count = plan_candidates(&plans, &space), block_each = 0;
    CHECK(count > 500, "%d candidates", count);
    for (int i = 0; i < count; i++) {
        const Configuration *c = &plans[i].configuration;
        CHECK(c->stage.batch * c->micro_batches * c->replicas == 12, "batch");
        CHECK(c->pipeline * c->replicas == plans[i].gpus, "GPUs left over");
        CHECK(c->submodels >= 2 && c->submodels <= 5, "%d submodels", c->submodels);
        block_each += c->pipeline == c->model->blocks;
    }
    CHECK(block_each > 0, "no pipeline with a rank for each of the 8 blocks");
    free(plans);
    space.pipeline = 3;
    space.micro_batches = 2;
    count = plan_candidates(&plans, &space);
    for (int i = 0; i < count; i++)
        CHECK(plans[i].configuration.pipeline == 3 && plans[i].configuration.micro_batches == 2,
              "not as given");
    CHECK(count > 0, "%s", error_message());
    free(plans);
    question_free(&q);
}

/* ---- memory, time, money ------------------------------------------------------------------- */

static double kept(const Plan *plan) {
    const double *bytes = plan->prediction.bytes;
    return (bytes[MEM_PARAMETERS] + bytes[MEM_GRADIENTS] + bytes[MEM_STATE]) / GIB;
}

/* G-1.6B on one card with 24 GB: 24.077 GiB of parameters, gradients and state do not fit, a third
 * at a time does: W (1 + 3/M) on average. */
static void case_published_memory(void) {
    PlanQuestion q;
    CommandLine line;
    ask(&q, &line, "--model G-1.6B --gpu rtx4090 --per-node 1 --batch 8 --precision fp32");
    Plan full, third;
    PlanSpace space;
    OptimizerSettings adam = optimizer_defaults(OPTIMIZER_ADAM);
    CHECK(question_space(&space, &q, PLAN_FULL, q.gpu, false) == 0, "%s", error_message());
    choices_add(&space.gpus, 1);
    CHECK(plan_choose(&full, &space, PLAN_CHEAPEST) == 0, "a full update fits");
    CHECK(fabs(kept(&full) - 24.077) < 0.001, "full: %.4f GiB", kept(&full));
    CHECK(question_space(&space, &q, PLAN_BCD, q.gpu, false) == 0, "%s", error_message());
    choices_add(&space.gpus, 1);
    CHECK(plan_choose(&third, &space, PLAN_CHEAPEST) == 1, "BCD-1/3 does not fit");
    double form = memory_closed_form(q.model, &adam, PRECISION_FP32, 3) / GIB;
    CHECK(fabs(form - 12.0385) < 0.0005, "closed form %.4f GiB", form);
    const Prediction *p = &third.prediction;
    CHECK(near(p->step_s, p->passes_s + p->reduce_s + p->tied_s + p->update_s),
          "the parts are not the whole");
    CHECK(fabs(kept(&third) / form - 1) < 0.05, "BCD-1/3: %.4f GiB, on average %.4f", kept(&third),
          form);
    const Text limit = plan_limit(&full);
    CHECK(strstr(limit.text, "memory: lacks ") && strstr(limit.text, "largest: state"), "%s",
          limit.text);
    question_free(&q);
}

/* 8 GPUs at half a dollar, 20,000 tokens per second: 1e9 tokens take 50,000 s. */
static void case_dollars(void) {
    Plan plan = {.gpus = 8,
                 .price = 0.5,
                 .updates = 1.5,
                 .prediction = {.tokens_per_s = 20000, .step_s = 2}};
    CHECK(near(plan_gpu_hours(&plan, 1e9), 50000.0 / 3600 * 8), "%g GPU hours",
          plan_gpu_hours(&plan, 1e9));
    CHECK(near(plan_dollars(&plan, 1e9), 50000.0 / 3600 * 8 * 0.5), "%g dollars",
          plan_dollars(&plan, 1e9));
    CHECK(plan_score(&plan, PLAN_FASTEST) == 3 && plan_score(&plan, PLAN_CHEAPEST) == 24, "score");
}

static void case_prices(void) {
    PlanQuestion q;
    CommandLine line;
    double price;
    ask(&q, &line, TINY "--price a100=1.5");
    CHECK(question_price(&price, &q, gpu_find("a100")) == 0 && price == 1.5, "%g", price);
    CHECK(question_price(&price, &q, gpu_find("rtx4090")) == 0 && price == 0.29, "%g", price);
    CHECK(question_price(&price, &q, gpu_find("h100")) == 0 && isnan(price), "%g", price);
    CHECK(isnan(q.multiplier) && q.task == PLAN_TEXT, "multiplier %g", q.multiplier);
    question_free(&q);
    ask(&q, &line, TINY "--price 0.7 --multiplier 1.1");
    CHECK(question_price(&price, &q, gpu_find("h100")) == 0 && price == 0.7, "%g", price);
    CHECK(q.multiplier == 1.1, "multiplier %g", q.multiplier);
    question_free(&q);
    ask(&q, &line, "--model resnet20");
    CHECK(q.task == PLAN_IMAGES, "a model of images");
    question_free(&q);
}

/* Writes a trace like that of bcd trace --out. Its two blocks take the given time together, and the
 * first has no input gradient. */
static void write_trace(const char *path, const Model *model, int batch, double passes_ms) {
    static const TableColumn columns[3] = {
        {"forward", "forward", "ms", COLUMN_NUMBER, 3, SOURCE_NONE},
        {"input_gradient", "input gradient", "ms", COLUMN_NUMBER, 3, SOURCE_NONE},
        {"weight_gradient", "weight gradient", "ms", COLUMN_NUMBER, 3, SOURCE_NONE}};
    Tables tables = {0};
    CommandLine line;
    Options *o = &line.options;
    char text[16];
    command_line_defaults(&line, COMMAND_TRACE);
    snprintf(text, sizeof text, "%d", batch);
    CHECK(options_set(o, "model", model->spec) == 0 && options_set(o, "batch", text) == 0 &&
              options_set(o, "precision", "bf16") == 0,
          "%s", error_message());
    Table *table = tables_add(&tables, "full", "Full", "block", columns, 3);
    table_row(table, "embedding");
    table_put(table, 0, passes_ms / 6, NAN, passes_ms / 6);
    table_row(table, "block1");
    table_put(table, 0, passes_ms / 6, passes_ms / 6, passes_ms / 3);
    CHECK(tables_write(&tables, &line, path) == 0, "%s", error_message());
    tables_free(&tables);
}

/* Passes that took twice as long as by the data sheet: products run at less than half the rate, and
 * a simulation with that rate takes what was measured. */
static void case_measured(void) {
    const char *path = scratch_path("trace.h5");
    const Gpu *gpu = gpu_find("a100");
    Model *model = model_create("gpt:layers=4,width=1024,heads=8,context=512");
    Configuration c = {.model = model,
                       .cluster = {gpu, 1, 1, NETWORK_2X25G, efficiency_default},
                       .stage = {.batch = 8,
                                 .precision = PRECISION_BF16,
                                 .optimizer = optimizer_defaults(OPTIMIZER_ADAM)},
                       .submodels = 1,
                       .pipeline = 1,
                       .replicas = 1,
                       .micro_batches = 1};
    Prediction before, after;
    CHECK(simulate(&before, NULL, &c, NULL) == 0, "%s", error_message());
    write_trace(path, model, 8, 2e3 * before.passes_s);
    CHECK(plan_calibrate(&c.cluster.efficiency, gpu, PRECISION_BF16, path) == 0, "%s",
          error_message());
    CHECK(simulate(&after, NULL, &c, NULL) == 0, "%s", error_message());
    CHECK(fabs(after.passes_s / (2 * before.passes_s) - 1) < 1e-3, "%g s, measured %g",
          after.passes_s, 2 * before.passes_s);
    double share = c.cluster.efficiency.products[PRECISION_BF16] / 0.80;
    CHECK(share > 0.2 && share < 0.5, "products at %g of what they were", share);
    CHECK(c.cluster.efficiency.products[PRECISION_FP32] ==
              efficiency_default.products[PRECISION_FP32],
          "fp32 changed too");
    model_free(model);
    CHECK(strstr(run(0, "plan --model G-1.6B --gpu a100 --precision bf16 --trace trace.h5")->out,
                 "of the peak, as measured (trace.h5)"),
          "not said");
    check_error(run(2, "plan --model G-1.6B --gpu a100 --trace trace.h5"),
                "trace.h5: it was measured in bf16; give --precision bf16");
}

/* A trace that bcd trace itself writes can be read. It is refused only because no such GPU is as
 * slow as textbook loops on this processor. */
static void case_measured_here(void) {
    run(0,
        "trace --model resnet:depth=8,width=2 --data synthetic --limit 32 --batch 4 --device plain "
        "--threads 1 --steps 2 --out real.h5");
    Efficiency efficiency = efficiency_default;
    int failed =
        plan_calibrate(&efficiency, gpu_find("a100"), PRECISION_FP32, scratch_path("real.h5"));
    CHECK(failed && strstr(error_message(), "no speed of the A100 80GB explains the "), "%s",
          error_message());
    const char *path = scratch_path("run.h5");
    H5File file;
    CHECK(h5_create(&file, path) == 0, "%s", error_message());
    h5_set_text(&file, "/", "format", "bcd run");
    CHECK(h5_commit(&file) == 0, "%s", error_message());
    CHECK(plan_calibrate(&efficiency, gpu_find("a100"), PRECISION_FP32, path) == -1, "read a run");
    CHECK_ERROR("%s: not a file of bcd trace --out", path);
}

/* ---- words of a plan ------------------------------------------------------------------------- */

/* A step of 2 s, 1.8 s of it passes with a bubble of a tenth: 81 % are passes.  With a bubble
 * of nine tenths, that is what limits it: 81 % of the step. */
static void case_limit(void) {
    Plan plan = {.method = PLAN_FULL,
                 .gpus = 1,
                 .configuration = {.cluster = {.gpu = gpu_find("a100")}, .pipeline = 1},
                 .prediction = {.step_s = 2, .passes_s = 1.8, .bubble = 0.1, .fits = true}};
    CHECK(!strcmp(plan_limit(&plan).text, "passes 81 %"), "not the passes");
    plan.prediction.bubble = 0.9;
    CHECK(!strcmp(plan_limit(&plan).text, "bubble 81 %"), "not bubble");
    plan.prediction.bubble = 0.1, plan.prediction.update_s = 0.6;
    CHECK(!strcmp(plan_limit(&plan).text, "update 30 %"), "not update");
    plan.prediction.reduce_s = 0.7, plan.prediction.tied_s = 0.3;
    CHECK(!strcmp(plan_limit(&plan).text, "all-reduce of gradients 35 %"),
          "not all-reduce of gradients");
    plan.prediction.tied_s = 0.8;
    CHECK(!strcmp(plan_limit(&plan).text, "gradient of the tied head 40 %"), "not the tied head");
}

/* G-1.6B on 4 GPUs in 8 micro-batches.  Each is computed `forwards` times in the forward pass, and
 * the note says how long the GPUs wait.  Returns that as a share of the time. */
static double check_timeline(Tables *tables, const Model *model, int submodels,
                             PlacementKind placement, int forwards) {
    bool deferred = placement == PLACEMENT_VIRTUAL;
    char name[16];
    Configuration c = {.model = model,
                       .cluster = {gpu_find("rtx4090"), 4, 1, NETWORK_2X25G, efficiency_default},
                       .stage = {.batch = 1,
                                 .optimizer = optimizer_defaults(OPTIMIZER_ADAM),
                                 .deferred = deferred},
                       .placement = placement,
                       .schedule = deferred ? SCHEDULE_ZERO_BUBBLE : SCHEDULE_1F1B,
                       .slack = deferred ? 4 : 0,
                       .submodels = submodels,
                       .pipeline = 4,
                       .replicas = 1,
                       .micro_batches = 8};
    snprintf(name, sizeof name, "timeline%d", tables->tables);
    timeline_add(tables, name, "a step", &c, submodels / 2);
    const Table *table = tables_find(tables, name);
    if (!CHECK(table && table->rows, "%s: %s", name, error_message())) return NAN;
    double busy = 0, end = 0;
    int count[8] = {0};
    for (int r = 0; r < table->rows; r++) {
        const Cell *row = &table->cell[r * table->columns];
        int micro_batch = (int)row[TASK_MICRO_BATCH].value;
        busy += row[TASK_END].value - row[TASK_START].value;
        end = fmax(end, row[TASK_END].value);
        if (!strcmp(row[TASK_WHAT].text, "forward") && micro_batch >= 0 && micro_batch < 8)
            count[micro_batch]++;
    }
    for (int m = 0; m < 8; m++)
        CHECK(count[m] == forwards, "%s: micro-batch %d forward %d times", name, m, count[m]);
    char text[80];
    double waiting = 1 - busy / (4 * end);
    snprintf(text, sizeof text, "wait %.0f %% of the %.4g ms of the passes; 8 micro-batches.",
             100 * waiting, end);
    CHECK(strstr(table->note[0], text), "%s: %s, not %s", name, table->note[0], text);
    return waiting;
}

/* 8 micro-batches over 4 equal ranks wait (p - 1) / (m + p - 1) of the time.  A submodel that lies
 * on one rank lets the others wait; cut over all ranks it does not. */
static void case_timelines(void) {
    Tables tables = {0};
    Model *model = model_create("G-1.6B");
    if (!CHECK(model, "%s", error_message())) return;
    double full = check_timeline(&tables, model, 1, PLACEMENT_PLAIN, 4),
           plain = check_timeline(&tables, model, 3, PLACEMENT_PLAIN, 4),
           spread = check_timeline(&tables, model, 3, PLACEMENT_VIRTUAL, 12);
    CHECK(fabs(full - 3.0 / 11) < 0.06, "full: %g", full);
    CHECK(plain > full && spread < full, "full %g, plain %g, virtual %g", full, plain, spread);
    tables_free(&tables);
    model_free(model);
}

static void plan_once(void) {
    PlanQuestion q;
    CommandLine line;
    Tables tables = {0};
    ask(&q, &line, TINY "--batch 8 --per-node 2 --cache");
    CHECK(plan_cluster(&tables, &q) == 0 && plan_search(&tables, &q) == 0, "%s", error_message());
    tables_free(&tables);
    question_free(&q);
}

static void case_nothing_is_left(void) {
    CHECK(allocations_left(plan_once) == 0, "memory of a plan is not freed");
}

void test_plan(void) {
    for (size_t i = 0; i < sizeof space_rows / sizeof *space_rows; i++)
        RUN_ROW(space_rows[i].name, case_search_is_brute_force, &space_rows[i]);
    RUN(case_candidates);
    RUN(case_published_memory);
    RUN(case_dollars);
    RUN(case_prices);
    RUN(case_measured);
    RUN(case_measured_here);
    RUN(case_limit);
    RUN(case_timelines);
    RUN(case_nothing_is_left);
}
