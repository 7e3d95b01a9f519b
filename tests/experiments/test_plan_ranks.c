/* bcd plan for ranks on this machine, and for pre-inference by more and more ranks. */
#include <math.h>
#include <string.h>

#include "cli.h"
#include "tables_sample.h"

/* A processor of this machine, whose rates are measured. */
static void case_this_machine(void) {
    const Printed *printed =
        run(0,
            "plan --gpu cpu --per-node 1 --batch 4 --model "
            "gpt:layers=2,width=64,heads=2,context=32,vocabulary=64 --out machine.h5");
    CHECK(strstr(printed->out, "on 1 processor of this machine"), "%s", printed->out);
    static const char *const rates[] = {"products", "memory", "message", "latency", "call"};
    Tables tables;
    if (!read_tables(&tables, "machine.h5")) return;
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
        const double rate = cell(&tables, "machine", "cpu", rates[i]);
        CHECK(rate > 0 && isfinite(rate), "%s: %g", rates[i], rate);
    }
    const double alone = cell(&tables, "memory", "full", "usable");
    tables_free(&tables);
    run(0, "plan --gpu cpu --threads 2 --per-node 2 --method full --model resnet8 --out two.h5");
    if (!read_tables(&tables, "two.h5")) return;
    const double shared = cell(&tables, "memory", "full", "usable");
    CHECK(fabs(alone / shared - 2) < 1e-9, "two ranks share the memory: %g, %g GiB", alone, shared);
    tables_free(&tables);
    check_error(run(2, "plan --gpu cpu --per-node 64 --model gpt2"), "give --per-node");
    check_error(run(2, "plan --gpu cpu --per-node 1 --model resnet8 --method offload"),
                "the memory of a processor is the host's");
    check_error(run(2, "plan --gpu cpu --per-node 1 --precision bf16 --model gpt2"),
                "--gpu cpu computes in fp32");
}

/* Without --per-node there are as many ranks as processors, which are not called GPUs. */
static void case_all_processors(void) {
    const Printed *printed = run(0,
                                 "plan --gpu cpu --threads 2 --pipeline 2 --batch 4 --model "
                                 "gpt:layers=2,width=64,heads=2,context=32,vocabulary=64");
    CHECK(strstr(printed->out, "on 2 processors of this machine\n") &&
              strstr(printed->out, " 1x2 processors, ") &&
              strstr(printed->out, "processor hours") && strstr(printed->out, "processors wait"),
          "%s", printed->out);
    CHECK(!strstr(printed->out, "GPU"), "%s", printed->out);
    check_error(run(2, "plan --gpu cpu --threads 2 --model gpt2 --replicas 3"),
                "--per-node 2 x --nodes 1 are 2 processors");
    check_error(run(2, "plan --gpu cpu --search --model gpt2"), "--gpu cpu: not with --search");
    CHECK(strstr(run(0, "plan --help")->out, "[8; with --gpu cpu all processors]"), "the help");
}

/* Pre-inference of a million samples, by more and more ranks. */
static void case_pre_inference(void) {
    run(0,
        "plan --model G-1.6B --gpu a800 --cache --pipeline 8 --placement virtual --out infer.h5");
    Tables tables;
    if (!read_tables(&tables, "infer.h5")) return;
    const double one = cell(&tables, "inference", "1", "compute");
    const double eight = cell(&tables, "inference", "8", "compute");
    CHECK(fabs(one / eight - 8) < 1e-6, "1 rank computes %g s, 8 ranks %g s", one, eight);
    CHECK(cell(&tables, "inference", "8", "pays_from") > 0, "it never pays");
    tables_free(&tables);
}

void test_plan_ranks(void) {
    RUN(case_this_machine);
    RUN(case_all_processors);
    RUN(case_pre_inference);
}
