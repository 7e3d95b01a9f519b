/* Calibrates the simulator with a step that `bcd trace` measured. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/blocks/models.h"
#include "../store/settings.h"
#include "plan.h"

/* Reads the settings of `bcd trace --out`. */
static int read_settings(Options *o, const char *path) {
    char format[H5_NAME];
    if (h5_format(path, format)) return -1;
    if (strcmp(format, tables_format) != 0)
        return error_set("%s: not a file of bcd trace --out", path);
    options_defaults(o, COMMAND_TRAIN);
    return settings_read_file(path, o);
}

/* Reads the seconds of the forward and backward passes with all blocks active; 0: none. */
static int read_passes(double *passes_s, const char *path) {
    static const char group[] = "/tables/full";
    static const char *const names[PASSES] = {"forward", "input_gradient", "weight_gradient"};
    H5Column columns[PASSES];
    H5File file;
    size_t rows = 0;
    for (size_t p = 0; p < PASSES; p++)
        columns[p] = (H5Column){.name = names[p], .kind = H5_DOUBLE, .offset = p * sizeof(double)};
    *passes_s = 0;
    if (h5_open(&file, path)) return -1;
    const bool there = h5_exists(&file, group);
    double(*ms)[PASSES] =
        there ? h5_read_table(&file, group, columns, PASSES, sizeof *ms, &rows) : NULL;
    h5_close(&file);
    for (size_t r = 0; r < rows && ms; r++)
        for (int p = 0; p < PASSES; p++) *passes_s += isfinite(ms[r][p]) ? ms[r][p] / 1e3 : 0;
    free(ms);
    return there && !ms ? -1 : 0;
}

int plan_calibrate_step(Efficiency *efficiency, const Plan *plan, double step_s) {
    Configuration c = plan->configuration;
    c.cluster.efficiency = *efficiency;
    Efficiency *e = &c.cluster.efficiency;
    double *number =
        plan->method == PLAN_OFFLOAD ? &e->host_process_rate : &e->products[c.stage.precision];
    if (simulate_calibrate(&c, number, step_s)) return -1;
    *efficiency = *e;
    return 0;
}

int plan_calibrate(Efficiency *efficiency, const Gpu *gpu, int precision, const char *path) {
    Options o;
    double passes_s;
    Prediction p;
    if (read_settings(&o, path) || read_passes(&passes_s, path)) return -1;
    if (o.batch < 1 || !(passes_s > 0))
        return error_set("%s: no times of a full update in it; bcd trace --out writes them", path);
    if (o.precision != precision)
        return error_set("--trace %s: it was measured in %s; give --precision %s", path,
                         precision_names[o.precision], precision_names[o.precision]);
    Model *model = model_create(o.model);
    if (!model) return -1;
    Configuration c = {.model = model,
                       .cluster = {gpu, 1, 1, NETWORK_2X25G, *efficiency},
                       .stage = {.batch = (o.batch + o.accumulate - 1) / o.accumulate,
                                 .recompute = o.recompute,
                                 .precision = (Precision)o.precision,
                                 .optimizer = optimizer_defaults(OPTIMIZER_ADAM)},
                       .submodels = 1,
                       .pipeline = 1,
                       .replicas = 1,
                       .micro_batches = o.accumulate};
    double *rate = &c.cluster.efficiency.products[o.precision];
    int failed = simulate(&p, NULL, &c, NULL);
    if (!failed && simulate_calibrate(&c, rate, passes_s + p.update_s))
        failed =
            error_set("%s: no speed of the %s explains the %.3g ms that its passes over %s took",
                      path, gpu->name, 1e3 * passes_s, model->name);
    if (!failed) efficiency->products[o.precision] = *rate;
    model_free(model);
    return failed;
}
