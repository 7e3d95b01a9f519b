/* The times that were predicted before anything had run; cuda/tuning.md explains and quotes them. A
 * measured time far from its prediction, in either direction, needs an explanation. */
#include <stdlib.h>
#include <string.h>

#include "bench.h"

typedef struct {
    const char *part, *work, *what, *precision; /* NULL: any */
    int n, version;                             /* samples; a kernel's version, 0: the best */
    double h200, h100;                          /* ms; the H100's memory has 0.7 of the bandwidth */
} Prediction;

/* clang-format off */
static const Prediction predictions[] = {
    /* 1 GiB read plus written at 4.3 and 3.0 TB/s; 512 MiB at 55 GB/s of PCIe 5 */
    {"ceiling", "copy", "-", NULL, 0, 0, 0.25, 0.36},
    {"ceiling", "copy by a kernel", "-", NULL, 0, 0, 0.25, 0.36},
    {"ceiling", "host to device", "-", NULL, 0, 0, 9.8, 9.8},
    {"ceiling", "device to host", "-", NULL, 0, 0, 9.8, 9.8},
    /* 1.1 TFLOP at 790, 400 and 50 TFLOP/s */
    {"ceiling", "matrix product", "-", "bf16", 0, 0, 1.39, 1.39},
    {"ceiling", "matrix product", "-", "tf32", 0, 0, 2.8, 2.8},
    {"ceiling", "matrix product", "-", "fp32", 0, 0, 22, 22},
    {"step", "gpt2", "full", "bf16", 32, 0, 57, 66},
    {"step", "resnet20", "full", "tf32", 1024, 0, 6.0, 7.5},
    /* operations at 60 % of 790 TFLOP/s */
    {"step", "G-1.6B", "bottom third", "bf16", 8, 0, 136, 141},
    {"step", "G-1.6B", "middle third", "bf16", 8, 0, 117, 122},
    {"step", "G-1.6B", "top third", "bf16", 8, 0, 98, 103},
    {"op", "cross_entropy of 50257", "with gradient", "bf16", 32768, 0, 1.65, 2.4},
    {"op", "cross_entropy of 50257", "with gradient", "fp32", 32768, 0, 3.3, 4.7},
    /* dy, x and dx, 151 MB, at 85 % of the copies */
    {"op", "layernorm 1024x768 -> 1024x768", "both gradients", "bf16", 32, 0, 0.041, 0.059},
    /* tuning.md, Norms of queries and keys */
    {"op", "qknorm 4096x6144 -> 4096x6144", "forward", "bf16", 1, 0, 0.033, 0.048},
    {"op", "qknorm 4096x6144 -> 4096x6144", "input gradient", "bf16", 1, 0, 0.039, 0.056},
    {"op", "qknorm 4096x6144 -> 4096x6144", "weight gradient", "bf16", 1, 0, 0.027, 0.037},
    /* the version for Hopper: tuning.md, Attention */
    {"op", "attention 12/12 1024x2304 -> 1024x768", "forward", "bf16", 32, 3, 0.13, 0.13},
    {"op", "attention 12/12 1024x2304 -> 1024x768", "input gradient", "bf16", 32, 3, 0.48, 0.48},
    {"op", "adamw", "update", "bf16", 1, 0, 0.94, 1.35},
    {"op", "adamw", "update", "fp32", 1, 0, 0.88, 1.26},
    {"op", "sgd", "update", "fp32", 1, 0, 0.63, 0.90},
    {"op", "gradient norm", "update", "fp32", 1, 0, 0.13, 0.19},
};
/* clang-format on */

static bool is(const char *wanted, const char *text) { return !wanted || !strcmp(wanted, text); }

double prediction_of(const Row *row, const char *name) {
    if (strcmp(row->how, "-") != 0 && strcmp(row->how, "plain") != 0) return 0;
    for (size_t i = 0; i < sizeof predictions / sizeof *predictions; i++) {
        const Prediction *p = &predictions[i];
        if (is(p->part, row->part) && is(p->work, row->work) && is(p->what, row->what) &&
            is(p->precision, row->precision) && p->n == row->n && p->version == row->version)
            return strstr(name, "H100") ? p->h100 : p->h200;
    }
    return 0;
}
