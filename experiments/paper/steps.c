/* The published times of a step, and their simulation. */
#include "paper.h"

#include <math.h>
#include <string.h>

#include "../../ref/base/error.h"

/* ---- published ------------------------------------------------------------------------------- */

/* Tables 3, 4, 15 and 16, and section 4.4.2.  A line here is a row as printed. */
#define STEP(table, gpu, model, nodes, per_node, method, submodels, ms) \
    { table, gpu, model, {nodes, per_node}, method, submodels, ms }
#define BCD(table, model, nodes, per_node, submodels, ms) \
    STEP(table, "rtx4090", model, nodes, per_node, TIMED_BCD, submodels, ms)
#define FULL(gpu, model, nodes, per_node, ms) \
    STEP(4, gpu, model, nodes, per_node, TIMED_FULL, 1, ms)

/* Tables 15 and 16: BCD-1/3, 1/4 and 1/5. */
#define UFP(table, model, gpus, third, fourth, fifth)                            \
    BCD(table, model, 1, gpus, 3, third), BCD(table, model, 1, gpus, 4, fourth), \
        BCD(table, model, 1, gpus, 5, fifth)
/* Table 4: a full update, and BCD-1/3 on half of the GPUs. */
#define BOTH(model, nodes, per_node, full, bcd_nodes, bcd_per_node, bcd) \
    FULL("rtx4090", model, nodes, per_node, full), BCD(4, model, bcd_nodes, bcd_per_node, 3, bcd)
/* Table 3: the optimizer offloaded.  Its BCD steps are those of Table 4. */
#define OFFLOAD(model, gpus, ms) STEP(3, "rtx4090", model, 1, gpus, TIMED_OFFLOAD, 1, ms)

const PaperStep paper_steps[] = {
    UFP(15, "G-1.6B", 1, 378.49, 331.7375, 305.52),
    UFP(15, "G-5.4B", 4, 1210.61, 1070.81, 996.47),
    UFP(15, "G-10B", 8, 2414.32, 2207.405, 2036.528),
    UFP(16, "L-1.5B", 1, 414.81, 331.81, 276.266),
    UFP(16, "L-6.0B", 4, 941.44, 895.7075, 835.798),
    UFP(16, "L-11B", 8, 1807.11, 1738.2525, 1574.92),
    BOTH("G-1.6B", 1, 2, 576, 1, 1, 378),
    BOTH("G-5.4B", 2, 4, 1934, 1, 4, 1211),
    BOTH("G-10B", 4, 4, 3178, 1, 8, 2414),
    FULL("rtx4090", "G-10B", 2, 8, 3252), /* has the same BCD step */
    BOTH("G-20B", 4, 8, 6378, 2, 8, 3606),
    BOTH("L-1.5B", 1, 2, 423, 1, 1, 415),
    BOTH("L-6.0B", 2, 4, 1287, 1, 4, 941),
    BOTH("L-8.0B", 2, 6, 1651, 1, 6, 1197),
    BOTH("L-11B", 4, 4, 2511, 1, 8, 1807),
    BOTH("L-23B", 4, 8, 4908, 2, 8, 3479),
    FULL("a100", "G-1.6B", 1, 1, 1064),
    FULL("a100", "G-5.4B", 1, 2, 2952),
    FULL("a100", "G-10B", 1, 4, 5772),
    FULL("a100", "G-20B", 1, 8, 11222),
    FULL("a800", "G-1.6B", 1, 1, 1122),
    FULL("a800", "G-5.4B", 1, 2, 3126),
    FULL("a800", "G-10B", 1, 4, 6042),
    FULL("a800", "G-20B", 1, 8, 11722),
    OFFLOAD("G-1.6B", 1, 2403),
    OFFLOAD("G-5.4B", 4, 4373),
    OFFLOAD("G-10B", 8, 7076),
    OFFLOAD("L-1.5B", 1, 4824),
    OFFLOAD("L-6.0B", 4, 6367),
    OFFLOAD("L-11B", 8, 7292),
    {0},
};

int paper_gpus(PaperGpus gpus) { return gpus.nodes * gpus.per_node; }

void put_gpus(Table *table, int column, PaperGpus gpus, Source source) {
    table_text(table, column, source, "%d/%d", gpus.nodes, gpus.per_node);
}

const PaperStep *paper_step(int table, const char *model, int submodels) {
    const PaperStep *step = paper_steps;
    while (step->model &&
           (step->table != table || step->submodels != submodels || strcmp(step->model, model)))
        step++;
    return step->model ? step : NULL;
}

/* The more precise steps of Tables 15 and 16 come before those of Table 4. */
double paper_bcd_ms(const char *model) {
    const PaperStep *step = paper_steps;
    while (step->model && (step->submodels != 3 || strcmp(step->model, model))) step++;
    return step->model ? step->ms : NAN;
}

/* The step with these nodes is preferred to one with as many GPUs: 2 x 4 of them are 1/8 in Table
 * 5. */
double paper_full_ms(const char *gpu, const char *model, PaperGpus gpus) {
    double ms = NAN;
    for (const PaperStep *s = paper_steps; s->model; s++) {
        if (s->method != TIMED_FULL || strcmp(s->gpu, gpu) || strcmp(s->model, model) ||
            paper_gpus(s->gpus) != paper_gpus(gpus))
            continue;
        if (s->gpus.nodes == gpus.nodes) return s->ms;
        ms = s->ms;
    }
    return ms;
}

/* ---- simulated ------------------------------------------------------------------------------- */

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
    return error_null("timing: no published times on %s", gpu);
}

/* Finds the fraction of the peak that products reach, or of an offloaded step the rate of the host,
 * with which the published time of the step comes out. */
static int calibrate(Efficiency *efficiency, const PaperStep *step) {
    Model *model = model_create(step->model);
    if (!model) return -1;
    Configuration c = configuration(step, model, efficiency);
    Efficiency *e = &c.cluster.efficiency;
    double *number = c.stage.offload ? &e->host_process_rate : &e->products[PRECISION_FP32];
    int failed = simulate_calibrate(&c, number, step->ms / 1e3);
    *efficiency = *e;
    model_free(model);
    return failed;
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
    Efficiency *found = known[g].efficiency;
    if (!known[g].step) {
        found[SETTING_ROOFLINE] = efficiency_default;
        found[SETTING_ROOFLINE].scores_in_memory = true;
        Efficiency *e = &found[SETTING_CALIBRATED];
        *e = found[SETTING_ROOFLINE];
        if (calibrate(e, step) ||
            (!strcmp(gpu, "rtx4090") && calibrate(e, paper_step(3, step->model, 1))))
            table_fail(table);
        else
            known[g].step = step;
    }
    return &found[setting];
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
