/* bcd plan as a user runs it: its tables, costs that add up, files, and wrong use. */
#include <math.h>
#include <string.h>

#include "../../experiments/tables/table.h"
#include "cli.h"

static bool near(double a, double b) { return fabs(a - b) <= 1e-12 * (fabs(a) + fabs(b)); }

static double cell(const Tables *tables, const char *table, const char *row, const char *column) {
    const Table *t = tables_find(tables, table);
    const Cell *c = t ? table_find(t, row, column) : NULL;
    CHECK(c, "no %s, %s, %s", table, row, column);
    return c ? c->value : NAN;
}

static bool read_tables(Tables *tables, const char *name) {
    *tables = (Tables){0};
    return CHECK(tables_read(tables, scratch_path(name)) == 0, "%s", error_message());
}

static void case_plan(void) {
    const Printed *printed =
        run(0,
            "plan --model G-1.6B --per-node 4 --batch 64 --tokens 2e9 --price 0.5 --multiplier 3 "
            "--out plan.h5");
    CHECK(strstr(printed->out, "Passes of BCD, submodel 2\nThe GPUs wait "), "no timeline: %s",
          printed->out);
    CHECK(strstr(printed->out, "Chosen, the cheapest that fits: --pipeline, --replicas") &&
              strstr(printed->out, "The last row may have other submodels") &&
              strstr(printed->out, ", 0.50 $/h each") && strstr(printed->out, "s simulated"),
          "%s", printed->out);
    CHECK(strstr(printed->out,
                 "BCD's cost x 3, the B-F multiplier.  The paper has x 1.39 on "
                 "average, x 2.44 for"),
          "%s", printed->out);
    Tables t;
    if (read_tables(&t, "plan.h5")) {
        CHECK(!strcmp(t.table[0]->column[4].head, "tokens"), "%s", t.table[0]->column[4].head);
        for (int i = 0; i < 2; i++) /* three methods, and the cheapest of any sizes */
            CHECK(t.table[i]->rows == 4, "%s: %d rows", t.table[i]->name, t.table[i]->rows);
        double rate = cell(&t, "plan", "BCD-1/3", "rate");
        double dollars = cell(&t, "plan", "BCD-1/3", "dollars");
        CHECK(fabs(dollars / (2e9 / rate / 3600 * 4 * 0.5) - 1) < 1e-12, "%g dollars", dollars);
        CHECK(near(cell(&t, "plan", "BCD-1/3", "same_loss"), 3 * dollars), "x 3");
        const char *cheapest = tables_find(&t, "plan")->label[3];
        CHECK(!strncmp(cheapest, "cheapest: BCD", 13) &&
                  cell(&t, "plan", cheapest, "dollars") < dollars,
              "an update of fewer parameters is cheaper, and here it fits: %s", cheapest);
        CHECK(near(cell(&t, "plan", "full", "same_loss"), cell(&t, "plan", "full", "dollars")),
              "a full update is its own measure");
        CHECK(near(cell(&t, "plan", "BCD-1/3", "memory"), cell(&t, "memory", "BCD-1/3", "total")),
              "two tables, two sums of bytes");
        CHECK(
            isnan(cell(&t, "memory", "full", "host")) && cell(&t, "memory", "offload", "host") > 0,
            "only offload takes host memory");
        CHECK(cell(&t, "memory", "BCD-1/3", "total") < cell(&t, "memory", "BCD-1/3", "usable"),
              "it does not fit");
    }
    tables_free(&t);
    CHECK(strstr(run(0, "report plan.h5 --markdown")->out, "Memory of the fullest GPU"), "report");
    printed = run(0,
                  "plan --model resnet20 --per-node 1 --nodes 2 --pipeline 2 "
                  "--micro-batches 1 --network 0.1");
    CHECK(strstr(printed->out, "images") && strstr(printed->out, "; 1 micro-batch.") &&
              strstr(printed->out, "messages between ranks "),
          "%s", printed->out);
}

static void case_search(void) {
    const Printed *printed = run(
        0, "plan --model G-1.6B --search --nodes 2 --batch 32 --gpus 8 --budget 6 --out search.h5");
    CHECK(strstr(printed->out, "The cheapest: ") && strstr(printed->out, "The fastest: "), "%s",
          printed->out);
    CHECK(strstr(printed->out, "no price: give --price"), "h100 has a price");
    CHECK(strstr(printed->out, ", bf16") && strstr(printed->out, "BCD-1/5"),
          "other precisions and submodels than the default are tried, too");
    Tables t;
    if (read_tables(&t, "search.h5")) {
        const Table *cheap = tables_find(&t, "cheapest"), *fast = tables_find(&t, "fastest");
        CHECK(cheap && fast && cheap->rows == 15 && fast->rows == 15, "rows");
        CHECK(
            cell(&t, "fastest", "a100, full", "step") <= cell(&t, "cheapest", "a100, full", "step"),
            "the fastest is slower");
        CHECK(cell(&t, "fastest", "a100, full", "dollars") >=
                  cell(&t, "cheapest", "a100, full", "dollars"),
              "the cheapest is dearer");
    }
    tables_free(&t);
}

/* Of GPUs that have no price the cheapest setting is the one with the fewest hours. */
static void case_no_price(void) {
    const char *printed = run(0, "plan --model resnet8 --search --gpu h100 --per-node 1")->out;
    CHECK(strstr(printed, "The cheapest: h100, ") && !strstr(printed, "Nothing"), "%s", printed);
}

/* G-20B has 16 x 20.99e9 bytes, and a machine of 24 GiB. */
static void case_nothing_fits(void) {
    const char *printed =
        run(0, "plan --model G-20B --search --gpu rtx4090 --per-node 1 --nodes 1 --batch 1")->out;
    const char *first = strstr(printed, "\nNothing fits.\n");
    CHECK(first && strstr(first + 1, "\nNothing fits.\n"), "%s", printed);
}

/* The prefix's largest output, of 1024 x 2048 numbers in fp32: 7.8125 GiB for 1000 samples. */
static void case_cache(void) {
    const char *line = "\n--cache: up to %s GiB on disk or in host memory for each 1000 samples";
    char fp32[128], bf16[128];
    snprintf(fp32, sizeof fp32, line, "7.812");
    snprintf(bf16, sizeof bf16, line, "3.906");
    CHECK(strstr(run(0, "plan --model G-1.6B --gpu a100 --per-node 1 --cache")->out, fp32), "fp32");
    CHECK(
        strstr(run(0, "plan --model G-1.6B --gpu a100 --per-node 1 --cache --precision bf16")->out,
               bf16),
        "bf16");
}

static void case_idle_gpus(void) {
    const Printed *printed = run(0, "plan --model G-1.6B --search --gpu a100 --pipeline 3");
    CHECK(strstr(printed->out, "1x3 of 4 GPUs"), "%s", printed->out);
}

/* More of the same GPUs are faster, by at most as many times, and no cheaper. */
static void case_more_gpus(void) {
    double rate = 0, dollars = 0;
    for (int nodes = 1; nodes <= 64; nodes *= 8) {
        Tables t;
        run(0, "plan --model L-7B --batch 1024 --gpu a100 --nodes %d --out nodes.h5", nodes);
        if (!read_tables(&t, "nodes.h5")) return;
        double new_rate = cell(&t, "plan", "BCD-1/3", "rate");
        double new_dollars = cell(&t, "plan", "BCD-1/3", "dollars");
        if (nodes > 1) {
            CHECK(new_rate > rate && new_rate < 8.5 * rate, "%d nodes: %g tokens/s after %g", nodes,
                  new_rate, rate);
            CHECK(new_dollars > 0.99 * dollars, "%d nodes: %g dollars after %g", nodes, new_dollars,
                  dollars);
        }
        rate = new_rate;
        dollars = new_dollars;
        tables_free(&t);
    }
}

static void case_wrong_use(void) {
    check_error(run(2, "plan"), "bcd plan needs --model");
    check_error(run(2, "plan --model G-11B"), "no model \"G-11B\"");
    check_error(run(2, "plan --model G-10B --gpu rtx5090"), "\"rtx5090\" is not in the table");
    check_error(run(2, "plan --model G-10B --gpu any"), "--gpu any");
    check_error(run(2, "plan --model G-10B --pipeline 16 --per-node 4 --nodes 3"),
                "16 ranks, and --per-node 4 x --nodes 3 are 12 GPUs");
    check_error(run(2, "plan --model G-10B --replicas 3 --batch 16"), "multiple of 3");
    check_error(run(2, "plan --model G-10B --micro-batches 7"), "multiple of 7");
    check_error(run(2, "plan --model resnet8 --nodes 2 --pipeline 16"), "only 5 blocks");
    check_error(run(2, "plan --model resnet8 --submodels 99"), "only 5 blocks");
    check_error(run(2, "plan --model G-10B --submodels 1"), "--submodels");
    check_error(run(2, "plan --model G-10B --price -1"), "--price -1");
    check_error(run(2, "plan --model G-10B --price 0"), "--price 0");
    check_error(run(2, "plan --model G-10B --price b200=3"), "b200");
    check_error(run(2, "plan --model G-10B --multiplier 0"), "--multiplier 0");
    check_error(run(2, "plan --model G-10B --per-node 0"), "--per-node");
    check_error(run(2, "plan --model resnet8 --context 9"), "--context");
    check_error(run(2, "plan --model G-10B --trace absent.h5"), "absent.h5");
    check_error(run(2, "plan --model G-10B --search --trace absent.h5"), "name the --gpu");
    check_error(run(2, "plan --model G-10B --gpus 8"), "--gpus needs --search");
    check_error(run(2, "plan --model G-10B --budget 8"), "--budget needs --search");
    check_error(run(1, "plan --model resnet8 --out /nonexistent/plan.h5"), "/nonexistent");
}

void test_plan_program(void) {
    RUN(case_plan);
    RUN(case_search);
    RUN(case_no_price);
    RUN(case_nothing_fits);
    RUN(case_cache);
    RUN(case_idle_gpus);
    RUN(case_more_gpus);
    RUN(case_wrong_use);
}
