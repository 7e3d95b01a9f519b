#include "paper.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "../../ref/error.h"

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

const PaperStep *paper_calibration(const char *gpu) {
    TimedMethod method = strcmp(gpu, "rtx4090") ? TIMED_FULL : TIMED_BCD;
    for (const PaperStep *s = paper_steps; s->model; s++)
        if (!strcmp(s->gpu, gpu) && !strcmp(s->model, "G-1.6B") && s->method == method) return s;
    error_set("timing: no published times on %s", gpu);
    return NULL;
}

/* Finds the member of the efficiency at `offset` with which the published time of a step comes
 * out. */
static int calibrate(Efficiency *efficiency, size_t offset, const PaperStep *step) {
    Model *model = model_create(step->model);
    if (!model) return -1;
    Configuration c = configuration(step, model, efficiency);
    int failed = simulate_calibrate(&c, (double *)(void *)((char *)&c.cluster.efficiency + offset),
                                    step->ms / 1e3);
    *efficiency = c.cluster.efficiency;
    model_free(model);
    return failed;
}

static int calibrate_all(Efficiency *efficiency, const PaperStep *step) {
    if (calibrate(efficiency, offsetof(Efficiency, products[PRECISION_FP32]), step)) return -1;
    if (strcmp(step->gpu, "rtx4090")) return 0;
    return calibrate(efficiency, offsetof(Efficiency, host_process_rate),
                     paper_step(3, step->model, 1));
}

const Efficiency *paper_efficiency(Table *table, const char *gpu, PaperSetting setting) {
    enum { GPUS = 3 }; /* with published times */
    static struct {
        const PaperStep *step;    /* of paper_calibration; NULL: not calibrated yet */
        Efficiency efficiency[2]; /* of SETTING_ROOFLINE and SETTING_CALIBRATED */
    } known[GPUS];
    const PaperStep *step = paper_calibration(gpu);
    if (!step) {
        table_fail(table);
        return &efficiency_default;
    }
    int g = 0;
    while (known[g].step && known[g].step != step) g++;
    if (!known[g].step) {
        Efficiency roofline = efficiency_default;
        roofline.scores_in_memory = true;
        known[g].efficiency[SETTING_ROOFLINE] = known[g].efficiency[SETTING_CALIBRATED] = roofline;
        if (calibrate_all(&known[g].efficiency[SETTING_CALIBRATED], step))
            table_fail(table);
        else
            known[g].step = step;
    }
    return &known[g].efficiency[setting];
}

/* Returns the source of a step's time in SETTING_CALIBRATED: SOURCE_PUBLISHED for the steps that
 * are calibrated with, because simulating them gives the published time again. */
static Source source_of(const PaperStep *step) {
    const PaperStep *used = paper_calibration(step->gpu);
    bool same = used && !strcmp(step->model, used->model) && paper_gpus(step->gpus) == 1 &&
                (step->method == TIMED_OFFLOAD ||
                 (step->method == used->method && step->submodels == used->submodels));
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

void paper_put_step(Table *table, int first, const PaperStep *step) {
    double roofline = paper_step_ms(table, step, SETTING_ROOFLINE);
    double calibrated = paper_step_ms(table, step, SETTING_CALIBRATED);
    table_put(table, first, step->ms, roofline, roofline / step->ms - 1, calibrated,
              calibrated / step->ms - 1);
    table_number(table, first + 3, calibrated, source_of(step));
}

void paper_put_pair(Table *table, int first, const PaperStep *step, double factor) {
    double ms = paper_step_ms(table, step, SETTING_CALIBRATED);
    Source source = source_of(step), printed = SOURCE_PUBLISHED;
    if (factor != 1) printed = SOURCE_RECOMPUTED;
    table_number(table, first, step->ms * factor, printed);
    table_number(table, first + 1, ms * factor, source == SOURCE_PUBLISHED ? printed : source);
}
