/* The memory of the CPU stage: what is allocated and freed, and when, and copies to the host. */
#include "stage_ref.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

static RefStage *of(Stage *base) { return (RefStage *)(void *)base; }

static real *allocate(RefStage *s, MemRole role, size_t count) {
    return mem_alloc(&s->base.memory, role, count, sizeof(real));
}

static void release(RefStage *s, real **array) {
    mem_free(&s->base.memory, *array);
    *array = NULL;
}

/* ---- memory of a submodel ---- */

static void free_activations(RefStage *s) {
    const Model *m = s->base.model;
    for (int v = 0; s->value && v < s->max_in_flight * m->values; v++) release(s, &s->value[v]);
    for (int v = 0; s->value_gradient && v < s->max_in_flight * m->values; v++)
        release(s, &s->value_gradient[v]);
    for (int i = 0; s->aux && i < s->max_in_flight * m->nodes; i++) release(s, &s->aux[i]);
    free(s->value);
    free(s->value_gradient);
    free(s->aux);
    s->value = s->value_gradient = s->aux = NULL;
    release(s, &s->workspace);
    layout_free(&s->layout);
}

static int reserve_tables(RefStage *s) {
    const Model *m = s->base.model;
    s->max_in_flight = 1;
    for (int b = 0; b < m->blocks; b++)
        if (block_in_flight(&s->base.settings, b) > s->max_in_flight)
            s->max_in_flight = block_in_flight(&s->base.settings, b);
    size_t values = (size_t)s->max_in_flight * (size_t)m->values;
    s->value = calloc(values, sizeof *s->value);
    s->value_gradient = calloc(values, sizeof *s->value_gradient);
    s->aux = calloc((size_t)s->max_in_flight * (size_t)m->nodes, sizeof *s->aux);
    if (s->value && s->value_gradient && s->aux) return 0;
    return error_set("stage: out of memory for the tables of %s", m->name);
}

static bool store(RefStage *s, real **array, size_t count) {
    return (*array = allocate(s, MEM_ACTIVATIONS, count)) != NULL;
}

/* Allocates what each micro-batch in flight keeps for its backward pass.  Only local blocks
 * store gradients. */
static bool allocate_stored(RefStage *s) {
    const Model *m = s->base.model;
    const StageSettings *settings = &s->base.settings;
    int batch = settings->batch;
    bool ok = true;
    for (int v = 1; v < m->values; v++)
        for (int k = 0; k < block_in_flight(settings, m->value[v].block); k++) {
            int at = k * m->values + v;
            size_t count = value_count(m, v, batch);
            if (s->layout.value[v].stored && value_is_local(m, settings, v))
                ok &= store(s, &s->value[at], count);
            if (s->layout.value[v].stored_gradient) ok &= store(s, &s->value_gradient[at], count);
        }
    for (int i = 0; i < m->nodes; i++) {
        int block = node_block(m, &m->node[i]);
        for (int k = 0; k < block_in_flight(settings, block); k++)
            if (s->layout.node[i].stored_aux && block_is_local(settings, block))
                ok &= store(s, &s->aux[k * m->nodes + i], node_aux_count(&m->node[i], batch));
    }
    return ok;
}

static int allocate_activations(RefStage *s) {
    if (layout_make(&s->layout, s->base.model, &s->base.settings, s->active) || reserve_tables(s))
        return -1;
    s->workspace = allocate(s, MEM_WORKSPACE, s->layout.workspace / sizeof(real));
    return s->workspace && allocate_stored(s) ? 0 : -1;
}

static void free_state(RefStage *s, int param) {
    for (int k = 0; k < STATE_VECTORS; k++) release(s, &s->param[param].state[k]);
}

static int allocate_state(RefStage *s, int param) {
    const Param *p = &s->base.model->param[param];
    real **state = s->param[param].state;
    for (int k = 0; k < optimizer_state_vectors(&s->base.settings.optimizer, p); k++)
        if (!state[k] && !(state[k] = allocate(s, MEM_STATE, p->count))) return -1;
    return 0;
}

/* Returns true if a block keeps its optimizer state when `active` are the next active blocks. */
static bool state_stays(const RefStage *s, int block, const bool *active) {
    return s->base.settings.keep_state || (s->active[block] && active[block]);
}

static int stage_ref_activate(Stage *base, const bool *active) {
    RefStage *s = of(base);
    const Model *m = base->model;
    if (memcmp(active, s->active, (size_t)m->blocks) == 0) return 0;
    if (layout_check(m, &base->settings, active)) return -1;
    free_activations(s); /* before allocating, so that the peak is that of one submodel */
    for (int p = 0; p < m->params; p++) {
        release(s, &s->param[p].gradient);
        s->param[p].gradient_made = false;
        if (!state_stays(s, m->param[p].block, active)) free_state(s, p);
    }
    for (int b = 0; b < m->blocks; b++)
        if (!state_stays(s, b, active)) s->base.optimizer_step[b] = 0;
    memcpy(s->active, active, (size_t)m->blocks);
    s->stepping = false;
    if (allocate_activations(s)) return -1; /* this makes the layout, which says what trains */
    for (int p = 0; p < m->params; p++) {
        int block = m->param[p].block;
        if (!s->layout.trains[block] || !param_is_local(m, &base->settings, p)) continue;
        if (!(s->param[p].gradient = allocate(s, MEM_GRADIENTS, m->param[p].count))) return -1;
        if (stage_updates(s, p) && allocate_state(s, p)) return -1;
    }
    return 0;
}

/* ---- host copies ---- */

/* Returns a tensor and sets *count to its elements; NULL if it does not exist now. */
static real *find(RefStage *s, TensorRole role, int number, size_t *count) {
    const Model *m = s->base.model;
    if (role == TENSOR_VALUE || role == TENSOR_VALUE_GRADIENT) {
        int out = m->block[number].out;
        *count = value_count(m, out, s->batch.n);
        return role == TENSOR_VALUE ? stage_value(s, out) : stage_value_gradient(s, out);
    }
    if (role == TENSOR_BUFFER) {
        *count = (size_t)m->buffer[number].count;
        return s->buffer[number].data;
    }
    const StageParam *param = &s->param[number];
    *count = m->param[number].count;
    return role == TENSOR_PARAMETER  ? param->data
           : role == TENSOR_GRADIENT ? param->gradient
                                     : param->state[role - TENSOR_STATE0];
}

static size_t stage_ref_read(Stage *base, TensorRole role, int number, real *data) {
    size_t count;
    const real *array = find(of(base), role, number, &count);
    if (!array) return 0;
    if (data) memcpy(data, array, count * sizeof(real));
    return count;
}

static real *stage_ref_view(Stage *base, TensorRole role, int number, size_t *count) {
    return find(of(base), role, number, count);
}

static int stage_ref_write(Stage *base, TensorRole role, int number, const real *data) {
    RefStage *s = of(base);
    bool state = role == TENSOR_STATE0 || role == TENSOR_STATE1;
    if (state && base->settings.keep_state && allocate_state(s, number)) return -1;
    size_t count;
    real *array = find(s, role, number, &count);
    if (!array)
        return error_set("stage: %s has no gradient or optimizer state now",
                         base->model->param[number].name);
    memcpy(array, data, count * sizeof(real));
    return 0;
}

static void stage_ref_select(Stage *base, int micro_batch) { of(base)->micro_batch = micro_batch; }

/* ---- create and destroy ---- */

static void stage_ref_free(Stage *base) {
    RefStage *s = of(base);
    const Model *m = base->model;
    free_activations(s);
    for (int p = 0; s->param && p < m->params; p++) {
        release(s, &s->param[p].data);
        release(s, &s->param[p].gradient);
        free_state(s, p);
    }
    for (int v = 0; s->kept && v < m->values; v++) release(s, &s->kept[v]);
    for (int i = 0; s->buffer && i < m->buffers; i++) {
        release(s, &s->buffer[i].data);
        release(s, &s->buffer[i].before);
    }
    release(s, &s->loss);
    release(s, &s->log_sum);
    mem_free(&s->base.memory, s->correct);
    free(s->param);
    free(s->buffer);
    free(s->kept);
    free(s->base.optimizer_step);
    free(s->active);
    free(s);
}

static int allocate_tables(RefStage *s) {
    const Model *m = s->base.model;
    s->param = calloc((size_t)m->params + 1, sizeof *s->param);
    s->buffer = calloc((size_t)m->buffers + 1, sizeof *s->buffer);
    s->kept = calloc((size_t)m->values, sizeof *s->kept);
    s->base.optimizer_step = calloc((size_t)m->blocks, sizeof *s->base.optimizer_step);
    s->active = calloc((size_t)m->blocks, sizeof *s->active);
    if (s->param && s->buffer && s->kept && s->base.optimizer_step && s->active) return 0;
    return error_set("stage: out of memory for the tables of %s", m->name);
}

static int allocate_model(RefStage *s) {
    const Model *m = s->base.model;
    for (int p = 0; p < m->params; p++) {
        size_t count = m->param[p].count;
        if (!param_is_local(m, &s->base.settings, p)) continue;
        real *data = s->param[p].data = allocate(s, MEM_PARAMETERS, count);
        if (!data) return -1;
        if (s->base.settings.skip_init) continue;
#pragma omp parallel for if (count > 1 << 12)
        for (size_t i = 0; i < count; i++) data[i] = model_initial(m, p, s->base.settings.seed, i);
    }
    for (int k = 0; k < m->buffers; k++) {
        const Buffer *buffer = &m->buffer[k];
        if (!block_is_local(&s->base.settings, buffer->block)) continue;
        if (!(s->buffer[k].data = allocate(s, MEM_BUFFERS, (size_t)buffer->count)) ||
            !(s->buffer[k].before = allocate(s, MEM_BUFFERS, (size_t)buffer->count)))
            return -1;
        for (int i = 0; i < buffer->count; i++) s->buffer[k].data[i] = buffer->init == INIT_ONES;
    }
    if (!block_is_local(&s->base.settings, m->blocks - 1)) return 0;
    size_t rows = (size_t)s->base.settings.batch * (size_t)m->targets;
    s->loss = allocate(s, MEM_WORKSPACE, rows);
    s->log_sum = allocate(s, MEM_WORKSPACE, rows);
    s->correct = mem_alloc(&s->base.memory, MEM_WORKSPACE, rows, 1);
    return s->loss && s->log_sum && s->correct ? 0 : -1;
}

Stage *stage_ref_create(const Model *model, StageSettings settings) {
    if (optimizer_check(&settings.optimizer)) return NULL;
    static const StageClass class = {
        .activate = stage_ref_activate,
        .begin = stage_ref_begin,
        .forward = stage_ref_forward,
        .loss = stage_ref_loss,
        .input_gradient = stage_ref_input_gradient,
        .weight_gradient = stage_ref_weight_gradient,
        .discard = stage_ref_discard,
        .gradient_norm = stage_ref_gradient_norm,
        .update = stage_ref_update,
        .read = stage_ref_read,
        .write = stage_ref_write,
        .free = stage_ref_free,
        .select = stage_ref_select,
        .gradient_squares = stage_ref_gradient_squares,
        .view = stage_ref_view,
        .extend = stage_ref_extend,
    };
    RefStage *s = calloc(1, sizeof *s);
    if (!s) return error_null("stage: out of memory");
    s->base = (Stage){.is = &class, .model = model, .settings = settings};
    /* Nothing is active yet: the layout is that of evaluation. */
    if (allocate_tables(s) || allocate_model(s) || allocate_activations(s)) {
        stage_ref_free(&s->base);
        return NULL;
    }
    return &s->base;
}
