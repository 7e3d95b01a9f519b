#include "plan.h"

#include <stdint.h>
#include <stdlib.h>

#include "../../ref/base/error.h"
#include "../../ref/memory.h"
#include "../matmul.h"
#include "../node.h"
#include "stage_internal.h"

StageSettings device_settings(StageSettings settings) {
    settings.logits_align = LOGITS_ALIGN;
    return settings;
}

int device_check(const Model *m) {
    for (int i = 0; i < m->nodes; i++)
        if (m->node[i].kind == OP_ATTENTION && m->node[i].attention.d > ATTENTION_MAX_HEAD)
            return error_set(
                "attention: the heads of %s have %d numbers, a device takes at most %d; use more "
                "heads",
                m->name, m->node[i].attention.d, ATTENTION_MAX_HEAD);
    return 0;
}

static void add_param(ParamOffsets *offsets, const Model *m, size_t size, int param) {
    offsets->param[param] = offsets->bytes;
    offsets->requested += m->param[param].count * size;
    offsets->bytes += align_bytes(m->param[param].count * size);
}

int param_offsets_create(ParamOffsets *offsets, const Model *m, const StageSettings *settings,
                         size_t size, const bool *active) {
    *offsets = (ParamOffsets){.param = calloc((size_t)m->params + 1, sizeof(size_t)),
                              .block = calloc((size_t)m->blocks + 1, sizeof(size_t))};
    if (!offsets->param || !offsets->block) {
        param_offsets_destroy(offsets);
        return error_set("stage: out of memory for the tables of %s", m->name);
    }
    for (int p = 0; p < m->params; p++) offsets->param[p] = SIZE_MAX;
    for (int b = 0; b < m->blocks; b++) {
        offsets->block[b] = offsets->bytes;
        if (!block_is_local(settings, b) || (active && !active[b])) continue;
        for (int p = m->block[b].first_param; p < m->block[b].end_param; p++)
            add_param(offsets, m, size, p);
    }
    offsets->block[m->blocks] = offsets->bytes;
    offsets->own_requested = offsets->requested;
    for (int p = 0; p < m->params; p++) {
        int block = m->param[p].block;
        if (block_is_local(settings, block) || (active && !active[block])) continue;
        if (param_is_local(m, settings, p)) add_param(offsets, m, size, p);
    }
    return 0;
}

void param_offsets_destroy(ParamOffsets *offsets) {
    free(offsets->param);
    free(offsets->block);
    *offsets = (ParamOffsets){0};
}

static size_t node_workspace(const Model *m, const StageSettings *settings) {
    size_t max = cuda_matmul_workspace();
    for (int i = 0; i < m->nodes; i++) {
        if (!block_is_local(settings, node_block(m, &m->node[i]))) continue;
        size_t bytes = cuda_node_workspace(&m->node[i], settings->batch, settings->precision);
        if (bytes > max) max = bytes;
    }
    return max;
}

/* Appends `bytes` at *end, which it moves; returns their offset. */
static size_t take(size_t *end, size_t bytes) {
    size_t offset = *end;
    *end += align_bytes(bytes);
    return offset;
}

FixedOffsets fixed_offsets(const Model *m, const StageSettings *settings) {
    size_t batch = (size_t)settings->batch, end = 0;
    size_t rows = block_is_local(settings, m->blocks - 1) ? batch * (size_t)m->targets : 0;
    size_t inputs = block_is_local(settings, 0) ? batch * shape_count(m->input) : 0;
    FixedOffsets f = {.scale = take(&end, sizeof(float)), .slots = take(&end, batch * sizeof(int))};
    f.ids = take(&end, settings->image_bytes ? batch * sizeof(int) : 0);
    f.targets = take(&end, rows * sizeof(int));
    f.inputs = f.images = take(&end, inputs * (m->tokens ? sizeof(int) : sizeof(float)));
    f.sent = end;
    if (!m->tokens && settings->precision == PRECISION_BF16)
        f.images = take(&end, inputs * value_bytes(settings));
    f.loss = take(&end, rows * sizeof(float));
    f.correct = take(&end, rows);
    f.sums = take(&end, 2 * sizeof(LossSums));
    f.node = take(&end, node_workspace(m, settings));
    f.resident = take(&end, settings->image_bytes);
    f.bytes = end;
    return f;
}

/* Appends space for `slots` arrays of `bytes`.  Without slots, the offset is SIZE_MAX. */
static StoredOffset take_slots(StoredOffsets *offsets, size_t bytes, int slots) {
    if (!slots) return (StoredOffset){SIZE_MAX, 0};
    offsets->requested += (size_t)slots * bytes;
    return (StoredOffset){take(&offsets->bytes, (size_t)slots * align_bytes(bytes)),
                          align_bytes(bytes)};
}

int stored_offsets_create(StoredOffsets *offsets, const Model *m, const StageSettings *settings,
                          const Layout *layout) {
    size_t values = (size_t)m->values, nodes = (size_t)m->nodes;
    StoredOffset *table = calloc(2 * values + nodes, sizeof *table);
    *offsets = (StoredOffsets){.value = table};
    if (!table) return error_set("stage: out of memory for the tables of %s", m->name);
    offsets->gradient = table + values;
    offsets->aux = table + 2 * values;
    offsets->value[0] = offsets->gradient[0] = (StoredOffset){SIZE_MAX, 0}; /* the inputs */
    for (int v = 1; v < m->values; v++) {
        size_t bytes = value_memory(m, settings, v);
        int slots =
            value_is_local(m, settings, v) ? block_in_flight(settings, m->value[v].block) : 0;
        offsets->value[v] = take_slots(offsets, bytes, layout->value[v].stored ? slots : 0);
        offsets->gradient[v] =
            take_slots(offsets, bytes, layout->value[v].stored_gradient ? slots : 0);
    }
    for (int i = 0; i < m->nodes; i++) {
        size_t bytes = node_aux_count(&m->node[i], settings->batch) * sizeof(float);
        int block = node_block(m, &m->node[i]);
        bool stored = layout->node[i].stored_aux && block_is_local(settings, block);
        offsets->aux[i] = take_slots(offsets, bytes, stored ? block_in_flight(settings, block) : 0);
    }
    return 0;
}

void stored_offsets_destroy(StoredOffsets *offsets) {
    free(offsets->value); /* and what follows it */
    *offsets = (StoredOffsets){0};
}

size_t host_update_bytes(const Model *m, const StageSettings *settings) {
    size_t numbers = 0;
    for (int p = 0; p < m->params; p++) {
        const size_t need = optimizer_workspace(&settings->optimizer, &m->param[p]);
        if (block_is_local(settings, m->param[p].block) && need > numbers) numbers = need;
    }
    return numbers * sizeof(float);
}

/* Of the local blocks: the tensors that train, the elements in all, and those that train. */
typedef struct {
    int tensors;
    size_t elements, trained, state; /* the last: of the optimizer state of those that train */
} OwnedParams;

static OwnedParams count_owned(const Model *m, const StageSettings *settings, const bool *active) {
    OwnedParams own = {0};
    for (int p = 0; p < m->params; p++) {
        const Param *param = &m->param[p];
        if (!block_is_local(settings, param->block)) continue;
        own.elements += param->count;
        if (!active[param->block]) continue;
        own.tensors++;
        own.trained += param->count;
        own.state += memory_state_count(m, &settings->optimizer, p, p + 1);
    }
    return own;
}

/* Computes the bytes by role of the host memory that CudaStage (stage_internal.h) keeps. */
static void host_plan(size_t host[MEM_ROLES], const Model *m, const StageSettings *settings,
                      OwnedParams own, const FixedOffsets *fixed) {
    bool bf16 = settings->precision == PRECISION_BF16, offload = settings->offload;
    for (int r = 0; r < MEM_ROLES; r++) host[r] = 0;
    if (bf16 || offload) host[MEM_PARAMETERS] += own.elements * sizeof(float);
    if (bf16 && offload) host[MEM_PARAMETERS] += own.elements * value_bytes(settings);
    if (offload) host[MEM_GRADIENTS] = own.trained * sizeof(float);
    if (offload) host[MEM_STATE] = own.state * sizeof(float);
    host[MEM_WORKSPACE] = 2 * fixed->sent + STAGING_BYTES;
    if (offload) host[MEM_WORKSPACE] += host_update_bytes(m, settings);
}

int cuda_memory_plan(size_t device[MEM_ROLES], size_t host[MEM_ROLES], const Model *m,
                     const StageSettings *asked, const bool *active) {
    StageSettings settings = device_settings(*asked);
    Layout layout;
    if (device_check(m) || memory_plan(device, m, &settings, active)) return -1;
    if (layout_make(&layout, m, &settings, active)) return -1;
    FixedOffsets fixed = fixed_offsets(m, &settings);
    OwnedParams own = count_owned(m, &settings, active);
    device[MEM_WORKSPACE] = fixed.bytes + layout.workspace;
    if (own.tensors && !settings.offload)
        device[MEM_WORKSPACE] += updater_bytes(own.tensors, m->blocks, own.trained);
    host_plan(host, m, &settings, own, &fixed);
    layout_free(&layout);
    return 0;
}
