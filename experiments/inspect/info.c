/* `bcd info`: this build, and what models cost with and without BCD. */
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/base/error.h"
#include "../../ref/memory.h"
#include "../commands.h"
#include "../store/provenance.h"
#include "../train/setup.h"

enum { MAX_SUBMODELS = 5 };

static void print_build(void) {
    Provenance p;
    provenance_fill(&p, 0);
    unsigned major, minor, release;
    H5get_libversion(&major, &minor, &release);
    printf("commit     %s\ncompiler   %s\nflags      %s\nHDF5       %u.%u.%u\n", p.commit,
           p.compiler, p.flags, major, minor, release);
    printf("threads    %d\n", p.threads);
    printf("cpu        %s, fp32\n", p.cpu);
    printf("plain      the same processor, with the textbook loops of ref/ops\n");
    for (int device = DEVICE_CUDA; device < DEVICE_KINDS; device++) {
        DeviceInfo info;
        const DeviceModule *module = device_module_open(device_names[device]);
        printf("%-10s ", device_names[device]);
        if (!module || module->info(&info)) {
            printf("not available: %s\n", error_message());
            continue;
        }
        printf("%s, %s", info.name, format_bytes((double)info.memory_bytes).text);
        if (*info.runtime) printf(", %s", info.runtime);
        if (*info.driver) printf(", %s", info.driver);
        if (*info.libraries) printf(", %s", info.libraries);
        printf("\n");
    }
}

static void print_costs(const Model *model, OptimizerKind kind, Precision precision) {
    OptimizerSettings optimizer = optimizer_defaults(kind);
    for (int m = 1; m <= MAX_SUBMODELS; m++) {
        double bytes = memory_closed_form(model, &optimizer, precision, m);
        double mebibytes = bytes / (1024.0 * 1024.0);
        bool large = mebibytes >= 100;
        printf(" %8.3f%c", large ? mebibytes / 1024 : mebibytes, large ? 'G' : 'M');
    }
    printf("\n");
}

static void print_cost_header(const char *first) {
    printf("%-21s %10s", first, "full");
    for (int m = 2; m <= MAX_SUBMODELS; m++) printf("   BCD-1/%d", m);
    printf("\n");
}

static int print_presets(OptimizerKind kind, Precision precision) {
    char form[48];
    OptimizerSettings optimizer = optimizer_defaults(kind);
    printf("\nMiB or GiB of parameters, gradients and state, %s in %s: %s\n", optimizer_names[kind],
           precision_names[precision], memory_closed_form_text(form, &optimizer, precision, "M"));
    print_cost_header("model      parameters");
    for (const Preset *preset = model_presets; preset->name; preset++) {
        Model *model = model_create(preset->name);
        if (!model) return -1;
        printf("%-12s %8s ", preset->name, format_count((double)model->param_count).text);
        print_costs(model, kind, precision);
        model_free(model);
    }
    return 0;
}

static void print_block(const Model *model, int number) {
    const Block *block = &model->block[number];
    Shape out = model->value[block->out].shape;
    double params = 0, flops = 0;
    for (int p = block->first_param; p < block->end_param; p++)
        params += (double)model->param[p].count;
    for (int n = block->first_node; n < block->end_node; n++)
        flops += node_flops(&model->node[n], PASS_FORWARD);
    printf("%3d  %-12s %10s  %-16s %9s  ", number, block->name, format_count(params).text,
           text_of("%d x %d x %d", out.h, out.w, out.c).text, format_count(flops).text);
    for (int n = block->first_node; n < block->end_node; n++)
        printf("%s%s", n > block->first_node ? " " : "", op_name(model->node[n].kind));
    printf("\n");
}

static void print_model(const Model *model, Precision precision) {
    bool same = strcmp(model->name, model->spec) == 0;
    printf("\n%s%s%s\n%zu parameters in %d blocks\n\n", model->name, same ? "" : " = ",
           same ? "" : model->spec, model->param_count, model->blocks);
    printf("  #  block        parameters  output           forward FLOP a sample, ops\n");
    for (int b = 0; b < model->blocks; b++) print_block(model, b);
    printf("\n");
    print_cost_header(text_of("bytes in %s", precision_names[precision]).text);
    for (int kind = OPTIMIZER_SGD; kind <= OPTIMIZER_ADAM; kind++) {
        printf("%-22s", optimizer_names[kind]);
        print_costs(model, (OptimizerKind)kind, precision);
    }
}

int command_info(const CommandLine *line) {
    const Options *options = &line->options;
    Precision precision = (Precision)options->precision;
    Model *model = *options->model ? model_create(options->model) : NULL;
    if (*options->model && !model) return -WRONG_USE;
    print_build();
    if (model) {
        print_model(model, precision);
        model_free(model);
        return 0;
    }
    if (print_presets(OPTIMIZER_SGD, precision) || print_presets(OPTIMIZER_ADAM, precision))
        return -1;
    printf(
        "\nbcd info --model SPEC shows the blocks of one, or of a free shape such as\n"
        "gpt:layers=6,width=384,heads=6,context=256 or resnet:depth=32\n");
    return 0;
}
