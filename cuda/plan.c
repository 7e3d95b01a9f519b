#include "plan.h"

#include <stdint.h>
#include <stdlib.h>

#include "../ref/error.h"
#include "../ref/memory.h"
#include "arena.h"
#include "matmul.h"
#include "node.h"
#include "stage_inside.h"
#include "update.h"

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

static size_t node_workspace(const Model *m, const StageSettings *settings) {
    size_t most = cuda_matmul_workspace(settings->precision);
    for (int i = 0; i < m->nodes; i++)
        most = larger(most, cuda_node_workspace(&m->node[i], settings->batch, settings->precision));
    return most;
}

/* Takes room behind what is there; returns its place. */
static size_t take(size_t *end, size_t bytes) {
    size_t place = *end;
    *end += arena_pad(bytes);
    return place;
}

FixedPlaces fixed_places(const Model *m, const StageSettings *settings) {
    size_t batch = (size_t)settings->batch, rows = batch * (size_t)m->targets;
    size_t inputs = batch * shape_count(m->input), end = 0;
    FixedPlaces f = {.scale = take(&end, sizeof(float)), .slots = take(&end, batch * sizeof(int))};
    f.targets = take(&end, rows * sizeof(int));
    f.inputs = f.images = take(&end, inputs * (m->tokens ? sizeof(int) : sizeof(float)));
    f.fed = end;
    if (!m->tokens && settings->precision == PRECISION_BF16)
        f.images = take(&end, inputs * value_bytes(settings));
    f.loss = take(&end, rows * sizeof(float));
    f.correct = take(&end, rows);
    f.sums = take(&end, 2 * sizeof(LossSums));
    f.node = take(&end, node_workspace(m, settings));
    f.bytes = end;
    return f;
}

int stored_places_make(StoredPlaces *places, const Model *m, const StageSettings *settings,
                       const Layout *layout) {
    *places = (StoredPlaces){.value = calloc((size_t)m->values, sizeof(size_t)),
                             .aux = calloc((size_t)m->nodes, sizeof(size_t))};
    if (!places->value || !places->aux) {
        stored_places_free(places);
        return error_set("stage: out of memory for the tables of %s", m->name);
    }
    for (int v = 0; v < m->values; v++) {
        size_t bytes = value_count(m, v, settings->batch) * value_bytes(settings);
        places->value[v] = layout->stored[v] ? take(&places->bytes, bytes) : SIZE_MAX;
        if (layout->stored[v]) places->requested += bytes;
    }
    for (int i = 0; i < m->nodes; i++) {
        size_t bytes = node_aux_count(&m->node[i], settings->batch) * sizeof(float);
        places->aux[i] = layout->stored_aux[i] ? take(&places->bytes, bytes) : SIZE_MAX;
        if (layout->stored_aux[i]) places->requested += bytes;
    }
    return 0;
}

void stored_places_free(StoredPlaces *places) {
    free(places->value);
    free(places->aux);
    *places = (StoredPlaces){0};
}

size_t scratch_bytes(const Layout *layout) {
    return layout->scratch + 2 * layout->boundary + 2 * layout->boundary_gradient;
}

/* What the stage keeps in host memory; see stage_inside.h. */
static void host_plan(size_t host[MEM_ROLES], const Model *m, const StageSettings *settings,
                      size_t trained, const FixedPlaces *fixed) {
    bool bf16 = settings->precision == PRECISION_BF16, offload = settings->offload;
    size_t vectors = (size_t)optimizer_state_vectors(&settings->optimizer);
    for (int r = 0; r < MEM_ROLES; r++) host[r] = 0;
    if (bf16 || offload) host[MEM_PARAMETERS] += m->param_count * sizeof(float);
    if (bf16 && offload) host[MEM_PARAMETERS] += m->param_count * value_bytes(settings);
    if (offload) host[MEM_GRADIENTS] = trained * sizeof(float);
    if (offload) host[MEM_STATE] = vectors * trained * sizeof(float);
    host[MEM_WORKSPACE] = 2 * fixed->fed + BOUNCE_BYTES;
}

int cuda_memory_plan(size_t device[MEM_ROLES], size_t host[MEM_ROLES], const Model *m,
                     const StageSettings *settings, const bool *active) {
    Layout layout;
    if (memory_plan(device, m, settings, active)) return -1;
    if (layout_make(&layout, m, settings, active)) return -1;
    FixedPlaces fixed = fixed_places(m, settings);
    int tensors = 0;
    size_t trained = 0;
    for (int p = 0; p < m->params; p++) {
        if (!active[m->param[p].block]) continue;
        tensors++;
        trained += m->param[p].count;
    }
    device[MEM_WORKSPACE] = fixed.bytes + scratch_bytes(&layout);
    if (tensors && !settings->offload)
        device[MEM_WORKSPACE] += updater_bytes(tensors, m->blocks, trained);
    host_plan(host, m, settings, trained, &fixed);
    layout_free(&layout);
    return 0;
}
