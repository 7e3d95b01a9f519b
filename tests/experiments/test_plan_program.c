/* bcd plan as a user runs it: its tables, costs that add up, files, and wrong use. */
#include <math.h>
#include <string.h>

#include "../../ref/blocks/models.h"
#include "../../ref/memory.h"
#include "../../ref/partition.h"
#include "../near.h"
#include "cli.h"
#include "tables_sample.h"

/* With so many updates a row of BCD costs what the cheapest of the other methods does, among the
 * first `count` rows.  Returns true where there is such a number. */
static bool check_break_even(const Table *table, int row, int count) {
    const Cell *cell = &table->cell[row * table->columns];
    double best = INFINITY;
    for (int r = 0; r < count; r++)
        if (!strstr(table->label[r], "BCD"))
            best = fmin(best, table->cell[r * table->columns + 6].value);
    const double even = strstr(table->label[row], "BCD") ? best / cell[6].value : NAN;
    CHECK(near(cell[10].value, even) || (isnan(even) && isnan(cell[10].value)), "%s: x %g",
          table->label[row], cell[10].value);
    return isfinite(even);
}

/* Checks every number of a row against the others: an update has 64 samples of 1024 tokens, 2e9
 * tokens are trained on four GPUs of half a dollar, and BCD has the multiplier 3. A second table
 * has the same bytes. */
static void check_rows(const Tables *t) {
    const Table *plan = tables_find(t, "plan"), *memory = tables_find(t, "memory");
    for (int r = 0; plan && memory && r < plan->rows; r++) {
        const char *label = plan->label[r];
        const Cell *p = &plan->cell[r * plan->columns], *m = &memory->cell[r * memory->columns];
        double hours = 2e9 / p[4].value / 3600 * 4, sum = 0;
        for (int c = 0; c < 5; c++) sum += m[c].value;
        CHECK(near(p[2].value * p[4].value, 1e3 * 64 * 1024) && near(p[5].value, hours) &&
                  near(p[6].value, hours * 0.5) &&
                  near(p[7].value, hours * 0.5 * (strstr(label, "BCD") ? 3 : 1)) &&
                  near(p[8].value, hours / 4 * (strstr(label, "BCD") ? 3 : 1)),
              "%s: %g ms, %g tokens/s, %g hours, %g dollars", label, p[2].value, p[4].value,
              p[5].value, p[6].value);
        /* Rows of the sizes asked for, the first three, are compared with each other. */
        check_break_even(plan, r, r < 3 ? 3 : plan->rows);
        CHECK(p[3].value >= 0 && p[3].value < 0.2 && *p->text && *p[11].text, "%s: words", label);
        CHECK(strstr(label, "BCD") ? p[9].value == 3 : isnan(p[9].value), "%s: x %g", label,
              p[9].value);
        CHECK(near(p[1].value, m[5].value) && near(m[6].value, 0.97 * 24) &&
                  m[5].value < m[6].value && sum <= m[5].value && sum > 0.99 * m[5].value,
              "%s: %g GiB, of its parts %g", label, m[5].value, sum);
        /* bytes for each parameter: floats beside bf16; all but the activations */
        const double host = (strstr(p->text, "bf16") ? 4 : 0) + (!strcmp(label, "offload")  ? 16
                                                                 : strstr(label, "offload") ? 14
                                                                                            : 0);
        CHECK(host > 0 ? near(m[7].value, host * 1615775744.0 / (1 << 30)) : isnan(m[7].value),
              "%s: %g GiB on the host", label, m[7].value);
    }
}

static void case_plan(void) {
    const Printed *printed =
        run(0,
            "plan --model G-1.6B --per-node 4 --pipeline 4 --batch 64 --tokens 2e9 --price 0.5 "
            "--multiplier 3 --out plan.h5");
    CHECK(strstr(printed->out, "Passes of BCD, submodel 2\nThe GPUs wait "), "no timeline: %s",
          printed->out);
    CHECK(strstr(printed->out, "Chosen, the cheapest that fits: --replicas") &&
              strstr(printed->out, "The cheapest of all to the same loss: full, ") &&
              strstr(printed->out, ", 0.50 $/h each") && strstr(printed->out, "s simulated"),
          "%s", printed->out);
    CHECK(strstr(printed->out, "as --multiplier gives them"), "%s", printed->out);
    Tables t;
    if (read_tables(&t, "plan.h5")) {
        check_rows(&t);
        CHECK(!strcmp(t.table[0]->column[4].head, "tokens"), "%s", t.table[0]->column[4].head);
        for (int i = 0; i < 2; i++) /* three methods, and the cheapest of each */
            CHECK(t.table[i]->rows == 6, "%s: %d rows", t.table[i]->name, t.table[i]->rows);
    }
    tables_free(&t);
    printed = run(0, "plan --model G-1.6B --per-node 4 --pipeline 4 --batch 64 --multiplier 1");
    CHECK(strstr(printed->out, "same loss, if the updates are as assumed: BCD-1/"),
          "with as many it is cheaper: %s", printed->out);
    printed = run(0,
                  "plan --model resnet20 --per-node 1 --nodes 2 --pipeline 2 "
                  "--micro-batches 1 --network 0.1");
    CHECK(strstr(printed->out, "images") && strstr(printed->out, "; 1 micro-batch.") &&
              strstr(printed->out, "messages between ranks "),
          "%s", printed->out);
}

/* The row that the last note names has the minimum of a column. Numbers of GPUs are divisors of a
 * node's 8, within --gpus 8 and the budget of 6 dollars an hour. */
static void check_search(const Table *table, int column) {
    static const struct {
        const char *key;
        double price;
        int max;
    } gpus[] = {{"rtx4090", 0.29, 8}, {"a100", 1.20, 4}, {"a800", 0.69, 8}};
    const char *note = table->note[table->notes - 1], *named = strstr(note, ": ");
    double min = INFINITY;
    int best = 0;
    for (int r = 0; r < table->rows; r++) {
        const Cell *cell = &table->cell[r * table->columns];
        double cards = 0;
        if (isnan(cell[2].value)) continue;
        if (cell[column].value < min) best = r;
        min = fmin(min, cell[column].value);
        for (int g = 0; g < 3; g++) {
            if (strncmp(table->label[r], gpus[g].key, strlen(gpus[g].key))) continue;
            cards = cell[5].value / (1e9 / cell[4].value / 3600);
            CHECK(near(cell[6].value, cell[5].value * gpus[g].price), "%s: %g dollars",
                  table->label[r], cell[6].value);
            CHECK(cards < gpus[g].max + 0.5, "%s: %g GPUs", table->label[r], cards);
        }
        CHECK(fabs(cards - 1) < 1e-9 || fabs(cards - 2) < 1e-9 || fabs(cards - 4) < 1e-9 ||
                  fabs(cards - 8) < 1e-9,
              "%s: %g GPUs", table->label[r], cards);
        CHECK(near(cell[2].value * cell[4].value, 1e3 * 32 * 1024), "%s: %g ms", table->label[r],
              cell[2].value);
    }
    CHECK(named && !strncmp(named + 2, table->label[best], strlen(table->label[best])),
          "%s: the minimum is %s", note, table->label[best]);
}

static void case_search(void) {
    const Printed *printed = run(
        0, "plan --model G-1.6B --search --nodes 2 --batch 32 --gpus 8 --budget 6 --out search.h5");
    CHECK(strstr(printed->out, "The cheapest to the same loss, of those with a price: ") &&
              strstr(printed->out, "The fastest to the same loss: "),
          "%s", printed->out);
    CHECK(strstr(printed->out, "no price: give --price"), "h100 has a price");
    CHECK(strstr(printed->out, ", bf16") && strstr(printed->out, "BCD-1/2"),
          "other precisions and submodels than the default are tried, too");
    Tables t;
    if (read_tables(&t, "search.h5")) {
        const Table *cheap = tables_find(&t, "cheapest"), *fast = tables_find(&t, "fastest");
        CHECK(cheap && fast && cheap->rows == 15 && fast->rows == 15, "rows");
        check_search(cheap, 7);
        int priced = 0;
        for (int r = 0; r < cheap->rows; r++) priced += check_break_even(cheap, r, cheap->rows);
        CHECK(priced == 3, "BCD on %d kinds of GPUs with a price", priced);
        check_search(fast, 8);
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
    CHECK(strstr(printed, "The cheapest to the same loss: h100, ") && !strstr(printed, "Nothing"),
          "%s", printed);
}

/* G-20B needs 16 x 20.99e9 bytes, more than a machine of 24 GiB has. */
static void case_nothing_fits(void) {
    const char *printed =
        run(0, "plan --model G-20B --search --gpu rtx4090 --per-node 1 --nodes 1 --batch 1")->out;
    const char *nothing = "\nNothing fits, or is allowed: the last column says why.\n";
    const char *first = strstr(printed, nothing);
    CHECK(first && strstr(first + 1, nothing), "%s", printed);
    printed = run(0, "plan --model G-20B --per-node 1 --batch 1")->out;
    CHECK(strstr(printed, "\nNothing fits: the last column says why.\n") &&
              strstr(printed, "\nleast memory: ") && !strstr(printed, "\ncheapest: ") &&
              !strstr(printed, "the cheapest that fits: "),
          "%s", printed);
    printed = run(0, "plan --model G-1.6B --per-node 1 --batch 1")->out;
    CHECK(strstr(printed, "memory: lacks") && strstr(printed, "\ncheapest: BCD") &&
              !strstr(printed, "Nothing fits"),
          "only the full update does not fit: %s", printed);
}

/* A batch that two pipelines cannot share goes through one. */
static void case_idle_gpus(void) {
    const Printed *printed = run(0, "plan --model G-1.6B --search --gpu a100 --pipeline 3");
    CHECK(strstr(printed->out, "1x3 of 4 GPUs"), "%s", printed->out);
    printed = run(0, "plan --model gpt2 --pipeline 3 --batch 255 --method full");
    CHECK(strstr(printed->out, "1x3 of 8 GPUs"), "%s", printed->out);
}

/* What fits only in more than five submodels is found.  Plain SGD has no state.  Images have blocks
 * that bcd train keeps active. */
static void case_little_memory(void) {
    static const char *const parts[] = {"plan", "plan --search --nodes 1"};
    for (int i = 0; i < 2; i++) {
        const char *printed =
            run(0, "%s --model G-20B --gpu a100 --per-node 1 --batch 1 --precision bf16", parts[i])
                ->out;
        CHECK(strstr(printed, "BCD-1/16 ") && !strstr(printed, "Nothing fits"), "%s", printed);
    }
    /* As many as there are blocks. */
    CHECK(strstr(run(0, "plan --model G-10B --per-node 1 --batch 1 --precision bf16")->out,
                 "\nleast memory: BCD-1/58 "),
          "58 blocks");
    Tables t;
    run(0, "plan --model gpt2 --per-node 1 --optimizer sgd --momentum 0 --out plain.h5");
    if (read_tables(&t, "plain.h5"))
        CHECK(near(cell(&t, "memory", "full", "state"), 0), "a state without momentum");
    tables_free(&t);
    CHECK(
        strstr(run(0, "plan --model resnet20 --per-node 1")->out, "BCD is planned without blocks"),
        "images");
}

/* Both ends train with each of three submodels: the largest needs what a training of it holds. */
static void case_always_active(void) {
    Model *model = model_create("gpt:layers=6,width=64,heads=4,context=32,vocabulary=96");
    const StageSettings stage = {.batch = 4, .optimizer = optimizer_defaults(OPTIMIZER_ADAM)};
    Partition partition;
    bool active[16];
    size_t bytes[MEM_ROLES];
    double largest = 0;
    CHECK(partition_balanced(&partition, model, 3, "ends") == 0, "%s", error_message());
    for (int m = 0; m < 3; m++) {
        double total = 0;
        partition_active(&partition, model, m, active);
        CHECK(memory_plan(bytes, model, &stage, active) == 0, "%s", error_message());
        for (int role = 0; role < MEM_ROLES; role++) total += (double)bytes[role];
        largest = fmax(largest, total);
    }
    partition_free(&partition);
    model_free(model);
    const Printed *printed =
        run(0,
            "plan --model gpt:layers=6,width=64,heads=4,context=32,vocabulary=96 --per-node 1 "
            "--batch 4 --micro-batches 1 --method bcd --always-active ends --out always.h5");
    CHECK(strstr(printed->out, "BCD: blocks that train in every phase: ends."), "%s", printed->out);
    Tables t;
    if (!read_tables(&t, "always.h5")) return;
    const double planned = cell(&t, "memory", "BCD-1/3", "total") * 1024 * 1024 * 1024;
    CHECK(near(planned, largest), "%.0f bytes, a training holds %.0f", planned, largest);
    tables_free(&t);
    /* Where nothing fits, more submodels are tried: up to the 56 blocks between the ends. */
    printed =
        run(0, "plan --model G-10B --per-node 1 --batch 1 --precision bf16 --always-active ends");
    CHECK(strstr(printed->out, "\nleast memory: BCD-1/56 "), "%s", printed->out);
}

/* The seven flags that fix a setting on one RTX 4090. */
#define ONE_CARD                                                                          \
    "plan --model G-1.6B --gpu rtx4090 --per-node 1 --batch 1 --pipeline 1 --replicas 1 " \
    "--micro-batches 1 --placement virtual --pipeline-schedule 1f1b --unfused-attention "

/* The rate that --step-ms finds makes the step come out, and so does the same rate when it is
 * given. */
static void case_measured_step(void) {
    Tables t;
    const Printed *printed = run(0, ONE_CARD "--method bcd --step-ms 378.49 --out step.h5");
    CHECK(strstr(printed->out, "a step of --method bcd takes 378.49 ms"), "%s", printed->out);
    if (!read_tables(&t, "step.h5")) return;
    const double found = cell(&t, "rates", "rtx4090", "products");
    CHECK(fabs(cell(&t, "plan", "BCD-1/3", "step") / 378.49 - 1) < 1e-6 && found > 0.1 &&
              found < 0.73 && tables_find(&t, "plan")->rows == 1,
          "at %g of the peak", found);
    tables_free(&t);
    /* The schedule of zero bubble depends on the times, which jump. */
    run(0,
        "plan --model G-10B --method bcd --batch 1 --step-ms 2414 --pipeline-schedule zero-bubble "
        "--out jump.h5");
    if (!read_tables(&t, "jump.h5")) return;
    CHECK(fabs(cell(&t, "plan", "BCD-1/3", "step") / 2414 - 1) < 1e-2, "the nearest");
    tables_free(&t);
    run(0, ONE_CARD "--method bcd --efficiency %.17g --out again.h5", found);
    if (!read_tables(&t, "again.h5")) return;
    CHECK(fabs(cell(&t, "plan", "BCD-1/3", "step") / 378.49 - 1) < 1e-6, "not the same step");
    double first = cell(&t, "submodels", "1", "step"), second = cell(&t, "submodels", "2", "step"),
           last = cell(&t, "submodels", "3", "step");
    CHECK(first > second && second > last && fabs((first + second + last) / 3 / 378.49 - 1) < 1e-6,
          "submodels take %g, %g and %g ms", first, second, last);
    tables_free(&t);
    run(0, ONE_CARD "--method offload --efficiency %.17g --step-ms 2403 --out host.h5", found);
    if (!read_tables(&t, "host.h5")) return;
    CHECK(near(cell(&t, "rates", "rtx4090", "products"), found) &&
              cell(&t, "rates", "rtx4090", "host_process") < 100 &&
              fabs(cell(&t, "plan", "offload", "step") / 2403 - 1) < 1e-6,
          "of offload the host's rate is found");
    tables_free(&t);
    /* A rate above what a node has by default is found as well. */
    run(0, ONE_CARD "--method offload --host-rate 200 --out fast.h5");
    if (!read_tables(&t, "fast.h5")) return;
    const double fast = cell(&t, "plan", "offload", "step");
    tables_free(&t);
    run(0, ONE_CARD "--method offload --step-ms %.17g --out found.h5", fast);
    if (!read_tables(&t, "found.h5")) return;
    CHECK(fabs(cell(&t, "rates", "rtx4090", "host_process") / 200 - 1) < 1e-6, "%g GB/s",
          cell(&t, "rates", "rtx4090", "host_process"));
    tables_free(&t);
}

/* Scores in memory take time, and half of the speed about twice as long. */
static void case_rates(void) {
    static const char *const flags[] = {"", "--unfused-attention", "--efficiency 0.365"};
    double ms[3];
    for (int i = 0; i < 3; i++) {
        Tables t;
        run(0,
            "plan --model G-1.6B --gpu a100 --per-node 1 --batch 1 --method bcd %s --out rate.h5",
            flags[i]);
        if (!read_tables(&t, "rate.h5")) return;
        ms[i] = cell(&t, "plan", "BCD-1/3", "step");
        const double products = cell(&t, "rates", "a100", "products");
        CHECK(near(products, i < 2 ? 0.73 : 0.365), "%s: products at %g", flags[i], products);
        tables_free(&t);
    }
    CHECK(ms[1] > ms[0] && ms[2] > 1.8 * ms[0] && ms[2] < 2.01 * ms[0], "%g %g %g ms", ms[0], ms[1],
          ms[2]);
    Tables t;
    const char *searched = run(0,
                               "plan --model G-1.6B --search --gpu a100 --method full --efficiency "
                               "0.25 --out rate.h5")
                               ->out;
    CHECK(strstr(searched, "a100, full") && !strstr(searched, "BCD-1/"), "%s", searched);
    if (read_tables(&t, "rate.h5"))
        CHECK(near(cell(&t, "rates", "a100, bf16", "products"), 0.25), "of every precision");
    tables_free(&t);
}

/* 16 bytes of each parameter do not fit into 24 GiB. With the memory ignored they take no more
 * time. */
static void case_ignored_memory(void) {
    static const char *const flags[] = {"", "--ignore-memory"};
    for (int i = 0; i < 2; i++) {
        Tables t;
        run(0,
            "plan --model G-5.4B --per-node 1 --batch 1 --method full --gpu rtx4090 --price "
            "rtx4090=7 %s --out much.h5",
            flags[i]);
        if (!read_tables(&t, "much.h5")) return;
        CHECK((cell(&t, "plan", "full", "step") > 0) == i, "%s: a step", flags[i]);
        CHECK(isnan(cell(&t, "memory", "full", "usable")) == i, "%s: usable memory", flags[i]);
        CHECK(cell(&t, "plan", "full", "memory") > 16 * 5.4e9 / (1 << 30), "%s: memory", flags[i]);
        const double price =
            cell(&t, "plan", "full", "dollars") / cell(&t, "plan", "full", "gpu_hours");
        CHECK(!i || fabs(price / 7 - 1) < 1e-9, "%s: %g dollars an hour", flags[i], price);
        tables_free(&t);
    }
}

/* What is offloaded takes host memory: 18 bytes of each of 3,212,749,824 parameters in bf16.  Where
 * a node has less, that does not fit, and a pipeline on two nodes needs half. */
static void case_host_memory(void) {
#define OFFLOADED                                                                      \
    "plan --model llama3.2-3B --context 1024 --batch 1 --per-node 1 --precision bf16 " \
    "--method offload "
    CHECK(strstr(run(0, OFFLOADED)->out, "; 53.9 GiB of host memory"), "what it needs");
    CHECK(strstr(run(0, OFFLOADED "--host-memory 53.8")->out, " host memory: lacks 60 MiB"),
          "0.058 GiB");
    CHECK(strstr(run(0, OFFLOADED "--host-memory 53.8 --nodes 2")->out, "; 26.9 GiB of host"),
          "half on each of two nodes");
}

/* More of the same GPUs are faster, at most by the factor of their number, and no cheaper. */
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

void test_plan_program(void) {
    RUN(case_plan);
    RUN(case_search);
    RUN(case_no_price);
    RUN(case_nothing_fits);
    RUN(case_idle_gpus);
    RUN(case_little_memory);
    RUN(case_always_active);
    RUN(case_more_gpus);
    RUN(case_measured_step);
    RUN(case_rates);
    RUN(case_ignored_memory);
    RUN(case_host_memory);
}
