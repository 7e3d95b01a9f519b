/* Calibrates the simulator with a step that `bcd trace` measured. */
#include <math.h>
#include <string.h>

#include "../store/settings.h"
#include "plan.h"

/* The step that `bcd trace --out` timed. */
typedef struct {
    Model *model;
    int batch;
    Precision precision;
    double passes_s; /* forward and backward with all blocks active */
} Timed;

static int read_settings(Timed *timed, const char *path) {
    char format[H5_NAME];
    Options o;
    if (h5_format(path, format)) return -1;
    if (strcmp(format, tables_format) != 0)
        return error_set("%s: not a file of bcd trace --out", path);
    options_defaults(&o);
    if (settings_read_file(path, &o) || !(timed->model = model_create(o.model))) return -1;
    timed->batch = o.batch;
    timed->precision = (Precision)o.precision;
    return 0;
}

static int read_passes(Timed *timed, const char *path) {
    static const char *const passes[] = {"forward", "input_gradient", "weight_gradient"};
    Tables tables = {0};
    if (tables_read(&tables, path)) return -1;
    const Table *full = tables_find(&tables, "full");
    timed->passes_s = 0;
    for (int r = 0; full && r < full->rows; r++)
        for (size_t i = 0; i < sizeof passes / sizeof *passes; i++) {
            const Cell *cell = table_find(full, full->label[r], passes[i]);
            timed->passes_s += cell && isfinite(cell->value) ? cell->value / 1e3 : 0;
        }
    tables_free(&tables);
    return 0;
}

int plan_calibrate(Efficiency *efficiency, const Gpu *gpu, const char *path) {
    Timed timed = {0};
    Prediction p;
    int failed = read_settings(&timed, path) || read_passes(&timed, path);
    if (!failed && (timed.batch < 1 || !(timed.passes_s > 0)))
        failed =
            error_set("%s: no times of a full update in it; bcd trace --out writes them", path);
    Configuration c = {.model = timed.model,
                       .cluster = {gpu, 1, 1, NETWORK_2X25G, *efficiency},
                       .stage = {.batch = timed.batch,
                                 .precision = timed.precision,
                                 .optimizer = optimizer_defaults(OPTIMIZER_ADAM)},
                       .submodels = 1,
                       .pipeline = 1,
                       .replicas = 1,
                       .micro_batches = 1};
    double *rate = &c.cluster.efficiency.products[timed.precision];
    failed = failed || simulate(&p, NULL, &c, NULL);
    if (!failed && simulate_calibrate(&c, rate, timed.passes_s + p.update_s))
        failed =
            error_set("%s: no speed of the %s explains the %.3g ms that its passes over %s took",
                      path, gpu->name, 1e3 * timed.passes_s, timed.model->name);
    if (!failed) efficiency->products[timed.precision] = *rate;
    model_free(timed.model);
    return failed ? -1 : 0;
}
