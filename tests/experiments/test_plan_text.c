/* bcd plan's whole output, for one question. */
#include <string.h>

#include "cli.h"

/* Checks the whole output for one card, which never waits for another. By hand: of each of the
 * 1,615,775,744 parameters bf16 holds 4 bytes and a copy of 2, 9.029 GiB, a gradient of 4, 6.019
 * GiB, and Adam 8, 12.038 GiB; the host holds 4, 6.0 GiB, and with offload 18, 27.1 GiB; 1e9 tokens
 * at 21250 a second take 13.07 hours, 15.69 dollars at 1.20; 3.5 x 10.521 dollars are 36.82,
 * and 3.5 x 8.767 hours 30.7; 15.69 dollars are 1.49 x 10.521. */
static void case_text(void) {
    static const char *const expected[] = {
        "G-1.6B (1.6G parameters), 8 samples of 1024 tokens per update, on 1 x 1 A100 80GB, 1.20 "
        "$/h each\n"
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
        "cheapest: BCD-1/2  1x1 GPUs, 1x8, bf16  29.2 c  289.3 s   0 % s  28320 s      9.8 s  "
        "11.77 s\n"
        "\n"
        "method             same loss  same loss  updates  break-even                       limit\n"
        "                           $          h   / full      / full\n"
        "-----------------  ---------  ---------  -------  ----------  --------------------------\n"
        "full                 15.69 s     13.1 s     1.00                             passes 93 %\n"
        "offload              38.97 s     32.5 s     1.00              update in host memory 63 %\n"
        "BCD-1/3              36.82 s     30.7 s     3.50      1.49 s                 passes 97 %\n"
        "cheapest: BCD-1/2    29.90 s     24.9 s     2.54      1.33 s                 passes 95 %\n"
        "\n"
        "s simulated, c closed form\n"
        "memory: of the fullest GPU.  step: mean over the submodels.  bubble: share of the passes "
        "that GPUs\n"
        "wait for each other.  GPU hours and cost: of 1e+09 tokens.\n"
        "same loss: the cost, and the hours on the clock, x updates.\n"
        "updates: of BCD with M submodels over those of the full update, to the same loss.  "
        "Assumed to be\n"
        "as in trainings here of a GPT of 4 layers at a constant rate: x 2.54 at M = 2, 3.50 at M "
        "= 3, 5.31\n"
        "at M = 4 (measured), and 1 at M = 1; between these interpolated, beyond M = 4 "
        "extrapolated, in\n"
        "proportion to M.  --multiplier X replaces them.\n"
        "Published, of five pairs with Adam: x 1.39 on average, x 2.44 of the language models, x "
        "2.77 at\n"
        "most.  With --init those of fine-tuning are taken.\n"
        "break-even: with so many updates BCD would cost as much as the best row of the other "
        "methods,\n"
        "those of the sizes asked for among themselves.\n"
        "Chosen, the cheapest that fits: --pipeline, --replicas, --micro-batches, --placement,\n"
        "--pipeline-schedule, --recompute.\n"
        "cheapest, or least memory: of a method, when its submodels may be others.\n"
        "The cheapest of all to the same loss: full, 1x1 GPUs, 1x8, bf16.\n"
        "\n",
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
        "cheapest: BCD-1/2     6.027 c    3.018 c   6.035 c     12.081 c    2.065 c  29.226 c  "
        "77.60 g\n"
        "\n"
        "method                   host\n"
        "                   GiB a node\n"
        "-----------------  ----------\n"
        "full                    6.0 c\n"
        "offload                27.1 c\n"
        "BCD-1/3                 6.0 c\n"
        "cheapest: BCD-1/2       6.0 c\n"
        "\n"
        "g given (data sheet or command line), c closed form\n"
        "usable: 97 % of the memory; that the driver takes the rest is a guess.  host: what is "
        "offloaded,\n"
        "and in bf16 the parameters in float.\n"
        "\n"
        "Rates that the simulation takes\n"
        "\n"
        "GPU   products   memory  messages  a kernel  a message  over nodes  host, process  host, "
        "node\n"
        "       of peak  of peak   of peak        us         us          us           GB/s        "
        "GB/s\n"
        "----  --------  -------  --------  --------  ---------  ----------  -------------  "
        "----------\n"
        "a100  80.0 % g   90 % g    80 % g       2 g       10 g        30 g        100.0 g     "
        "100.0 g\n"
        "\n"
        "g given (data sheet or command line)\n"
        "products: matrix products in bf16, as a fraction of the peak.  host: what Adam moves in "
        "host\n"
        "memory when the optimizer is there, in the process of one GPU and in a node at most.\n"
        "Products and memory are those of cuBLAS and of copies on an H200; the others are guesses. "
        " No GPU\n"
        "has run this program: --efficiency, --trace or --step-ms replace them by what was "
        "measured.\n"
        "\n",
    };
    const char *out =
        run(0, "plan --model G-1.6B --gpu a100 --per-node 1 --batch 8 --precision bf16")->out;
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        const size_t length = strlen(expected[i]);
        if (!CHECK(!strncmp(out, expected[i], length), "%s, not %s", out, expected[i])) return;
        out += length;
    }
    CHECK(!*out, "%s", out);
}

void test_plan_text(void) { RUN(case_text); }
