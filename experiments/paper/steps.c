#include "steps.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "../../ref/error.h"

static const PaperGpus one_gpu = {1, 1};

/* One rank per GPU, BCD on virtual stages. */
static Configuration configuration(const PaperStep *step, const Model *model,
                                   const Efficiency *efficiency) {
    bool bcd = step->method == TIMED_BCD || step->method == TIMED_CACHED;
    Configuration c = {.model = model,
                       .cluster = {gpu_find(step->gpu), step->gpus.per_node, step->gpus.nodes,
                                   NETWORK_2X25G, *efficiency},
                       .stage = {.batch = 1, .optimizer = optimizer_defaults(OPTIMIZER_ADAM)},
                       .placement = bcd ? PLACEMENT_VIRTUAL : PLACEMENT_PLAIN,
                       .submodels = bcd ? step->submodels : 1,
                       .pipeline = paper_gpus(step->gpus),
                       .replicas = 1,
                       .micro_batches = 1,
                       .cached = step->method == TIMED_CACHED};
    c.stage.offload = step->method == TIMED_OFFLOAD;
    return c;
}

/* ---- calibration ----------------------------------------------------------------------------- */

double paper_calibration_ms(const char *gpu, PaperStep *step) {
    bool bcd = strcmp(gpu, "rtx4090") == 0;
    *step = (PaperStep){gpu, "G-1.6B", one_gpu, bcd ? TIMED_BCD : TIMED_FULL, bcd ? 3 : 1};
    return bcd ? paper_bcd_ms(step->model) : paper_full_ms(gpu, step->model, one_gpu);
}

static int calibrate(Efficiency *efficiency, size_t number, const PaperStep *step, double ms) {
    Model *model = model_create(step->model);
    if (!model) return -1;
    Configuration c = configuration(step, model, efficiency);
    int failed = simulate_calibrate(&c, (double *)(void *)((char *)&c.cluster.efficiency + number),
                                    ms / 1e3);
    *efficiency = c.cluster.efficiency;
    model_free(model);
    return failed;
}

static int calibrate_all(Efficiency *efficiency, const char *gpu) {
    PaperStep step;
    double ms = paper_calibration_ms(gpu, &step);
    if (isnan(ms)) return error_set("timing: no published time of %s on one %s", step.model, gpu);
    if (calibrate(efficiency, offsetof(Efficiency, products[PRECISION_FP32]), &step, ms)) return -1;
    if (strcmp(gpu, "rtx4090")) return 0;
    step.method = TIMED_OFFLOAD;
    return calibrate(efficiency, offsetof(Efficiency, host_process_rate), &step,
                     paper_offload_of(step.model)->offload_ms);
}

const Efficiency *paper_efficiency(Table *table, const char *gpu, PaperSetting setting) {
    enum { GPUS = 3 };
    static struct {
        const char *gpu;
        bool found;
        Efficiency efficiency[2]; /* roofline, calibrated */
    } known[GPUS] = {{.gpu = "rtx4090"}, {.gpu = "a100"}, {.gpu = "a800"}};
    int g = 0;
    while (g < GPUS && strcmp(known[g].gpu, gpu)) g++;
    if (g == GPUS) {
        error_set("timing: no published times on %s", gpu);
        table_fail(table);
        return &efficiency_default;
    }
    Efficiency *roofline = &known[g].efficiency[0], *calibrated = &known[g].efficiency[1];
    if (!known[g].found) {
        *roofline = efficiency_default;
        roofline->scores_in_memory = true;
        *calibrated = *roofline;
        known[g].found = calibrate_all(calibrated, gpu) == 0;
        if (!known[g].found) table_fail(table);
    }
    return setting == SETTING_ROOFLINE ? roofline : calibrated;
}

Source paper_step_source(const PaperStep *step) {
    PaperStep used;
    paper_calibration_ms(step->gpu, &used);
    bool offload = step->method == TIMED_OFFLOAD && strcmp(step->gpu, "rtx4090") == 0;
    bool same = strcmp(step->model, used.model) == 0 && paper_gpus(step->gpus) == 1 &&
                (offload || (step->method == used.method && step->submodels == used.submodels));
    return same ? SOURCE_PUBLISHED : SOURCE_SIMULATED;
}

/* ---- one step -------------------------------------------------------------------------------- */

double paper_step_ms(Table *table, const PaperStep *step, PaperSetting setting) {
    if (table->failed || !paper_model(step->model)) return NAN;
    Model *model = model_create(step->model);
    const Efficiency *efficiency = paper_efficiency(table, step->gpu, setting);
    Configuration c = configuration(step, model, efficiency);
    Prediction p;
    if (!model || simulate(&p, NULL, &c, NULL)) table_fail(table);
    model_free(model);
    return table->failed ? NAN : 1e3 * p.step_s;
}

void paper_put_step(Table *table, int first, const PaperStep *step, double published) {
    double roofline = paper_step_ms(table, step, SETTING_ROOFLINE);
    double calibrated = paper_step_ms(table, step, SETTING_CALIBRATED);
    table_put(table, first, published, roofline, roofline / published - 1, calibrated,
              calibrated / published - 1);
    table_number(table, first + 3, calibrated, paper_step_source(step));
}

void paper_put_pair(Table *table, int first, const PaperStep *step, double published,
                    double factor) {
    double ms = paper_step_ms(table, step, SETTING_CALIBRATED);
    Source source = paper_step_source(step), printed = SOURCE_PUBLISHED;
    if (factor != 1) printed = SOURCE_RECOMPUTED;
    table_number(table, first, published * factor, printed);
    table_number(table, first + 1, ms * factor, source == SOURCE_PUBLISHED ? printed : source);
}
