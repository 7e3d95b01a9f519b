/* bcd plan refuses what it cannot plan, and says why. */
#include <string.h>

#include "cli.h"

static void wrong_use_is_refused(void) {
    static const struct {
        const char *flags, *says;
    } rows[] = {
        {"--model G-11B", "no model \"G-11B\""},
        {"--model G-10B --gpu rtx5090", "\"rtx5090\" is not in the table"},
        {"--model G-10B --gpu any", "--gpu any"},
        {"--model G-10B --pipeline 16 --per-node 4 --nodes 3",
         "16 ranks, and --per-node 4 x --nodes 3 are 12 GPUs"},
        {"--model G-10B --replicas 3 --batch 16", "multiple of 3"},
        {"--model G-10B --micro-batches 7", "multiple of 7"},
        {"--model resnet8 --nodes 2 --pipeline 16", "only 5 blocks"},
        {"--model resnet8 --submodels 99", "only 5 blocks"},
        {"--model gpt2 --method bcd --pipeline 2 --placement virtual",
         "part 1 of the model has 1 blocks, too few for 2 pieces"},
        {"--model G-10B --submodels 1", "--submodels"},
        {"--model resnet8 --submodels 4 --always-active ends", "--always-active: "},
        {"--model gpt2 --always-active block99", "--always-active: "},
        {"--model gpt2 --always-active ends --cache", "so no prefix is frozen"},
        {"--model gpt2 --always-active ends --equal-work", "--equal-work: not with"},
        {"--model gpt2 --always-active ends --placement virtual", "only --placement plain"},
        {"--model gpt2 --always-active ends --method full",
         "--always-active: it is for BCD, and --method asks for full"},
        {"--model G-1.6B --method offload --optimizer muon",
         "muon: the time that its products take on a host is not known"},
        {"--model G-10B --price -1", "--price -1"},
        {"--model G-10B --price 0", "--price 0"},
        {"--model G-10B --price b200=3", "b200"},
        {"--model G-10B --multiplier 0", "--multiplier \"0\": it takes a number"},
        {"--model G-10B --per-node 0", "--per-node"},
        {"--model resnet8 --context 9", "--context"},
        {"--model G-10B --trace absent.h5", "absent.h5"},
        {"--model G-10B --search --trace absent.h5", "name the --gpu"},
        {"--model G-10B --step-ms 8", "--step-ms needs --method"},
        {"--model G-10B --method full --step-ms 8 --efficiency 0.1",
         "--step-ms finds what --efficiency says"},
        {"--model G-10B --per-node 1 --method full --step-ms 8",
         "such a step does not fit: memory: lacks "},
        {"--model G-1.6B --method bcd --step-ms 1e-6",
         "calibrate: no value makes the step take 1e-09 s; it can take "},
        {"--model gpt2 --method full --cache",
         "--cache: it is for BCD, and --method asks for full"},
        {"--model gpt2 --method bcd --host-rate 3",
         "--host-rate: it is for offload, and --method asks for BCD"},
        {"--model gpt2 --momentum 0.5", "--momentum: adam has none"},
        {"--model G-10B --efficiency 0", "--efficiency"},
        {"--model G-10B --efficiency 2", "more than the peak of RTX 4090"},
        {"--model G-10B --search --ignore-memory", "not with --search"},
        {"--model G-10B --gpus 8", "--gpus needs --search"},
        {"--model G-10B --budget 8", "--budget needs --search"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check_error(run(2, "plan %s", rows[i].flags), rows[i].says);
    check_error(run(2, "plan"), "bcd plan needs --model");
    CHECK(!strstr(run(0, "plan --model G-1.6B --optimizer muon")->out, "offload  ") &&
              strstr(run(0, "plan --model G-1.6B --optimizer lion")->out, "offload  "),
          "offload is planned where its time is known");
    run(0, "plan --model mlp:inputs=8,layers=1,width=8,classes=2 --gpu a100 --method full");
    CHECK(!strstr(run(0, "plan --model G-1.6B --method offload --host-rate 200")->out, "100.0 g"),
          "a node moves less than its process");
    check_error(run(1, "plan --model resnet8 --out /nonexistent/plan.h5"), "/nonexistent");
}

void test_plan_refusals(void) { RUN(wrong_use_is_refused); }
