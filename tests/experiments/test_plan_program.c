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
                  near(p[7].value, hours * 0.5 * (strstr(label, "BCD") ? 3 : 1)),
              "%s: %g ms, %g tokens/s, %g hours, %g dollars", label, p[2].value, p[4].value,
              p[5].value, p[6].value);
        CHECK(p[3].value >= 0 && p[3].value < 0.2 && *p->text && *p[8].text, "%s: words", label);
        CHECK(near(p[1].value, m[5].value) && near(m[6].value, 0.97 * 24) &&
                  m[5].value < m[6].value && sum <= m[5].value && sum > 0.99 * m[5].value,
              "%s: %g GiB, of its parts %g", label, m[5].value, sum);
        bool offload = !strcmp(label, "offload"); /* 16 bytes for each parameter */
        CHECK(offload ? near(m[7].value, 16 * 1615775744.0 / (1 << 30)) : isnan(m[7].value),
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
              strstr(printed->out, "The last row may have other submodels") &&
              strstr(printed->out, ", 0.50 $/h each") && strstr(printed->out, "s simulated"),
          "%s", printed->out);
    CHECK(strstr(printed->out,
                 "BCD's cost x 3, the B-F multiplier.  The paper has x 1.39 on "
                 "average, x 2.44 for"),
          "%s", printed->out);
    Tables t;
    if (read_tables(&t, "plan.h5")) {
        check_rows(&t);
        CHECK(!strcmp(t.table[0]->column[4].head, "tokens"), "%s", t.table[0]->column[4].head);
        for (int i = 0; i < 2; i++) /* three methods, and the cheapest of any sizes */
            CHECK(t.table[i]->rows == 4, "%s: %d rows", t.table[i]->name, t.table[i]->rows);
        double dollars = cell(&t, "plan", "BCD-1/3", "dollars");
        const char *cheapest = tables_find(&t, "plan")->label[3];
        CHECK(!strncmp(cheapest, "cheapest: BCD", 13) &&
                  cell(&t, "plan", cheapest, "dollars") < dollars,
              "an update of fewer parameters is cheaper, and here it fits: %s", cheapest);
    }
    tables_free(&t);
    printed = run(0,
                  "plan --model resnet20 --per-node 1 --nodes 2 --pipeline 2 "
                  "--micro-batches 1 --network 0.1");
    CHECK(strstr(printed->out, "images") && strstr(printed->out, "; 1 micro-batch.") &&
              strstr(printed->out, "messages between ranks "),
          "%s", printed->out);
}

/* Checks the whole output for one card, which never waits for another. By hand: of each of the
 * 1,615,775,744 parameters bf16 holds 4 bytes and a copy of 2, 9.029 GiB, a gradient of 4, 6.019
 * GiB, and Adam 8, 12.038 GiB; offload holds 16 on the host, 24.1 GiB; 1e9 tokens at 21250 a second
 * take 13.07 hours, 15.69 dollars at 1.20; 1.39 x 10.521 dollars are 14.62. */
static void case_text(void) {
    static const char *const expected =
        "G-1.6B (1.6G parameters), 8 samples per update, on 1 x 1 A100 80GB, 1.20 $/h each\n"
        "\n"
        "method                         setting  memory     step  bubble   tokens  GPU hours     "
        "cost\n"
        "                                           GiB       ms              1/s          h       "
        " $\n"
        "-----------------  -------------------  ------  -------  ------  -------  ---------  "
        "-------\n"
        "full               1x1 GPUs, 1x8, bf16  44.2 c  385.5 s   0 % s  21250 s     13.1 s  "
        "15.69 s\n"
        "offload            1x1 GPUs, 1x8, bf16  26.2 c  957.7 s   0 % s   8554 s     32.5 s  "
        "38.97 s\n"
        "BCD-1/3            1x1 GPUs, 1x8, bf16  23.6 c  258.6 s   0 % s  31684 s      8.8 s  "
        "10.52 s\n"
        "cheapest: BCD-1/5  1x1 GPUs, 1x8, bf16  19.8 c  232.3 s   0 % s  35259 s      7.9 s   "
        "9.45 s\n"
        "\n"
        "method             same loss                       limit\n"
        "                           $\n"
        "-----------------  ---------  --------------------------\n"
        "full                 15.69 s             arithmetic 93 %\n"
        "offload              38.97 s  update in host memory 63 %\n"
        "BCD-1/3              14.62 s             arithmetic 97 %\n"
        "cheapest: BCD-1/5    13.14 s             arithmetic 98 %\n"
        "\n"
        "s simulated, c closed form\n"
        "memory: of the fullest GPU.  step: mean over the submodels.  bubble: share of the passes "
        "that GPUs\n"
        "wait for each other.  GPU hours and cost: of 1e+09 tokens.\n"
        "same loss: BCD's cost x 1.39, the B-F multiplier.  The paper has x 1.39 on average, x "
        "2.44 for\n"
        "language models, x 2.77 at worst.\n"
        "Chosen, the cheapest that fits: --pipeline, --replicas, --micro-batches, --placement,\n"
        "--pipeline-schedule, --recompute.\n"
        "The last row may have other submodels, and another precision if none is given.\n"
        "\n"
        "Memory of the fullest GPU\n"
        "\n"
        "method             parameters  gradients     state  activations  workspace     total   "
        "usable\n"
        "                          GiB        GiB       GiB          GiB        GiB       GiB      "
        "GiB\n"
        "-----------------  ----------  ---------  --------  -----------  ---------  --------  "
        "-------\n"
        "full                  9.029 c    6.019 c  12.038 c     15.081 c    2.065 c  44.232 c  "
        "77.60 g\n"
        "offload               3.010 c    6.019 c   0.000 c     15.081 c    2.065 c  26.175 c  "
        "77.60 g\n"
        "BCD-1/3               4.902 c    1.892 c   3.784 c     10.956 c    2.065 c  23.599 c  "
        "77.60 g\n"
        "cheapest: BCD-1/5     4.151 c    1.142 c   2.283 c     10.206 c    2.065 c  19.847 c  "
        "77.60 g\n"
        "\n"
        "method                   host\n"
        "                   GiB a node\n"
        "-----------------  ----------\n"
        "full\n"
        "offload                24.1 c\n"
        "BCD-1/3\n"
        "cheapest: BCD-1/5\n"
        "\n"
        "g given (data sheet or command line), c closed form\n"
        "\n";
    const char *out =
        run(0, "plan --model G-1.6B --gpu a100 --per-node 1 --batch 8 --precision bf16")->out;
    CHECK(!strcmp(out, expected), "%s", out);
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
    CHECK(strstr(printed->out, "The cheapest: ") && strstr(printed->out, "The fastest: "), "%s",
          printed->out);
    CHECK(strstr(printed->out, "no price: give --price"), "h100 has a price");
    CHECK(strstr(printed->out, ", bf16") && strstr(printed->out, "BCD-1/5"),
          "other precisions and submodels than the default are tried, too");
    Tables t;
    if (read_tables(&t, "search.h5")) {
        const Table *cheap = tables_find(&t, "cheapest"), *fast = tables_find(&t, "fastest");
        CHECK(cheap && fast && cheap->rows == 15 && fast->rows == 15, "rows");
        check_search(cheap, 6);
        check_search(fast, 2);
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

/* G-20B needs 16 x 20.99e9 bytes, more than a machine of 24 GiB has. */
static void case_nothing_fits(void) {
    const char *printed =
        run(0, "plan --model G-20B --search --gpu rtx4090 --per-node 1 --nodes 1 --batch 1")->out;
    const char *first = strstr(printed, "\nNothing fits.\n");
    CHECK(first && strstr(first + 1, "\nNothing fits.\n"), "%s", printed);
    printed = run(0, "plan --model G-20B --per-node 1 --batch 1")->out;
    CHECK(strstr(printed, "\nNothing fits into the memory of RTX 4090.\n") &&
              strstr(printed, "\nleast memory: ") && !strstr(printed, "\ncheapest: ") &&
              !strstr(printed, "the cheapest that fits: "),
          "%s", printed);
    printed = run(0, "plan --model G-1.6B --per-node 1 --batch 1")->out;
    CHECK(strstr(printed, "memory: lacks") && strstr(printed, "\ncheapest: BCD") &&
              !strstr(printed, "Nothing fits"),
          "only the full update does not fit: %s", printed);
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
        CHECK(!i == !tables_find(&t, "rates"), "%s: the rates", flags[i]);
        tables_free(&t);
    }
    CHECK(ms[1] > ms[0] && ms[2] > 1.8 * ms[0] && ms[2] < 2.01 * ms[0], "%g %g %g ms", ms[0], ms[1],
          ms[2]);
    const char *searched = run(0, "plan --model G-1.6B --search --gpu a100 --method full")->out;
    CHECK(strstr(searched, "a100, full") && !strstr(searched, "BCD-1/"), "%s", searched);
}

/* 16 bytes of each parameter do not fit into 24 GiB. With the memory ignored they take no more
 * time. */
static void case_ignored_memory(void) {
    static const char *const flags[] = {"", "--ignore-memory"};
    for (int i = 0; i < 2; i++) {
        Tables t;
        run(0, "plan --model G-5.4B --per-node 1 --batch 1 --method full %s --out much.h5",
            flags[i]);
        if (!read_tables(&t, "much.h5")) return;
        CHECK((cell(&t, "plan", "full", "step") > 0) == i, "%s: a step", flags[i]);
        CHECK(isnan(cell(&t, "memory", "full", "usable")) == i, "%s: usable memory", flags[i]);
        CHECK(cell(&t, "plan", "full", "memory") > 16 * 5.4e9 / (1 << 30), "%s: memory", flags[i]);
        tables_free(&t);
    }
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
    RUN(case_text);
    RUN(case_search);
    RUN(case_no_price);
    RUN(case_nothing_fits);
    RUN(case_cache);
    RUN(case_idle_gpus);
    RUN(case_more_gpus);
    RUN(case_measured_step);
    RUN(case_rates);
    RUN(case_ignored_memory);
}
