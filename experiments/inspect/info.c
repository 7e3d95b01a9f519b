/* `bcd info`: this build, and what models cost with and without BCD. */
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/error.h"
#include "../../ref/memory.h"
#include "../commands.h"
#include "../options/setup.h"
#include "../store/provenance.h"
#include "../train/progress.h"

enum { MOST_SUBMODELS = 5 };

static void print_build(void) {
    Provenance p;
    provenance_fill(&p, 0);
    unsigned major, minor, release;
    H5get_libversion(&major, &minor, &release);
    printf("commit     %s\ncompiler   %s\nflags      %s\nHDF5       %u.%u.%u\n", p.commit,
           p.compiler, p.flags, major, minor, release);
    printf("device     %s: %s\nthreads    %d\nprecision  %s\n", p.device, p.cpu, p.threads,
           p.precision);
}

static void print_costs(const Model *model, OptimizerKind kind) {
    OptimizerSettings optimizer = optimizer_defaults(kind);
    for (int m = 1; m <= MOST_SUBMODELS; m++) {
        double mebibytes = memory_closed_form(model, &optimizer, PRECISION_FP32, m) / (1024.0 * 1024.0);
        bool large = mebibytes >= 100;
        printf(" %8.3f%c", large ? mebibytes / 1024 : mebibytes, large ? 'G' : 'M');
    }
    printf("\n");
}

static void print_cost_header(const char *first) {
    printf("%-21s %10s", first, "full");
    for (int m = 2; m <= MOST_SUBMODELS; m++) printf("   BCD-1/%d", m);
    printf("\n");
}

static int print_presets(OptimizerKind kind) {
    printf("\nMiB or GiB of parameters, gradients and state, %s: W (1 + %d/M)\n",
           optimizer_names[kind], 1 + (kind == OPTIMIZER_SGD ? 1 : 2));
    print_cost_header("model      parameters");
    for (const Preset *preset = model_presets; preset->name; preset++) {
        Model *model = model_create(preset->name);
        if (!model) return -1;
        char count[32];
        printf("%-12s %8s ", preset->name, format_count((double)model->param_count, count));
        print_costs(model, kind);
        model_free(model);
    }
    return 0;
}

static size_t block_params(const Model *model, const Block *block) {
    size_t count = 0;
    for (int p = block->first_param; p < block->end_param; p++) count += model->param[p].count;
    return count;
}

static double block_flops(const Model *model, const Block *block) {
    double flops = 0;
    for (int n = block->first_node; n < block->end_node; n++)
        flops += node_flops(&model->node[n], PHASE_FORWARD);
    return flops;
}

static void print_block(const Model *model, int number) {
    const Block *block = &model->block[number];
    Shape out = model->value[block->out].shape;
    char params[32], flops[32], shape[48];
    snprintf(shape, sizeof shape, "%d x %d x %d", out.h, out.w, out.c);
    printf("%3d  %-12s %10s  %-16s %9s  ", number, block->name,
           format_count((double)block_params(model, block), params), shape,
           format_count(block_flops(model, block), flops));
    for (int n = block->first_node; n < block->end_node; n++)
        printf("%s%s", n > block->first_node ? " " : "", op_names[model->node[n].kind]);
    printf("\n");
}

static int print_model(const char *spec) {
    Model *model = model_create(spec);
    if (!model) return -1;
    bool same = strcmp(model->name, model->spec) == 0;
    printf("\n%s%s%s\n%zu parameters in %d blocks\n\n", model->name, same ? "" : " = ",
           same ? "" : model->spec, model->param_count, model->blocks);
    printf("  #  block        parameters  output           forward FLOP a sample, ops\n");
    for (int b = 0; b < model->blocks; b++) print_block(model, b);
    printf("\n");
    print_cost_header("bytes, closed form");
    for (int kind = OPTIMIZER_SGD; kind <= OPTIMIZER_ADAM; kind++) {
        printf("%-22s", optimizer_names[kind]);
        print_costs(model, (OptimizerKind)kind);
    }
    model_free(model);
    return 0;
}

int command_info(const Options *options) {
    print_build();
    if (options->model[0]) return print_model(options->model);
    if (print_presets(OPTIMIZER_SGD) || print_presets(OPTIMIZER_ADAM)) return -1;
    printf(
        "\nbcd info --model SPEC shows the blocks of one, or of a free shape such as\n"
        "gpt:layers=6,width=384,heads=6,context=256 or resnet:depth=32\n");
    return 0;
}
