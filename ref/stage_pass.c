/* A step of the CPU stage: the passes, and the update.  Each pass runs over the nodes of a block,
 * finds the arrays that a node needs, and leaves the mathematics to node.h.  cuda/stage/pass.c does
 * the same with fused kernels; which gradients are computed, stored and accumulated is decided for
 * both in layout.c. */
#include <math.h>
#include <string.h>

#include "node.h"
#include "ops/ops.h"
#include "stage_ref.h"

static RefStage *of(Stage *base) { return (RefStage *)(void *)base; }

/* Returns the slot of a block that the selected micro-batch uses. */
static int slot_of(const RefStage *s, int block) {
    return s->micro_batch % block_in_flight(&s->base.settings, block);
}

static real *workspace_at(RefStage *s, size_t offset) {
    return s->workspace + offset / sizeof(real);
}

real *stage_value(RefStage *s, int value) {
    const Model *m = s->base.model;
    if (value == 0) return s->batch.images;
    real *stored = s->value[slot_of(s, m->value[value].block) * m->values + value];
    return stored ? stored : workspace_at(s, s->layout.value[value].offset);
}

real *stage_value_gradient(RefStage *s, int value) {
    const Model *m = s->base.model;
    value = s->layout.value[value].gradient_of;
    if (value == m->values - 1) return stage_value(s, value); /* it overwrites the logits */
    real *stored = s->value_gradient[slot_of(s, m->value[value].block) * m->values + value];
    return stored ? stored : workspace_at(s, s->layout.value[value].gradient_offset);
}

static real *param_or_null(const RefStage *s, int param) {
    return param < 0 ? NULL : s->param[param].data;
}

NodeIO stage_node_io(RefStage *s, const Node *node) {
    const Model *m = s->base.model;
    int index = (int)(node - m->node);
    real *stored_aux = s->aux[slot_of(s, node_block(m, node)) * m->nodes + index];
    NodeIO io = {.n = s->batch.n,
                 .plain = s->base.settings.plain,
                 .x = stage_value(s, node->in),
                 .skip = node->skip < 0 ? NULL : stage_value(s, node->skip),
                 .tokens = s->batch.tokens,
                 .y = stage_value(s, node->out),
                 .aux = stored_aux ? stored_aux : workspace_at(s, s->layout.node[index].aux_offset),
                 .weight = param_or_null(s, node->weight),
                 .bias = param_or_null(s, node->bias)};
    if (node->running >= 0) {
        io.running_mean = s->buffer[node->running].data;
        io.running_var = s->buffer[node->running + 1].data;
        io.use_running = s->mode != MODE_TRAIN || node_uses_running(&s->layout, node);
        /* The running statistics of a frozen block do not change. */
        io.hold_running = !s->active[node_block(m, node)];
    }
    return io;
}

/* Copies all buffers of this stage when a step starts, or with `restore` copies them back when it
 * is discarded. */
static void copy_buffers(const RefStage *s, bool restore) {
    const Model *m = s->base.model;
    for (int k = 0; k < m->buffers; k++) {
        const StageBuffer *b = &s->buffer[k];
        size_t bytes = (size_t)m->buffer[k].count * sizeof(real);
        if (b->data) memcpy(restore ? b->data : b->before, restore ? b->before : b->data, bytes);
    }
}

void stage_ref_begin(Stage *base, const Batch *batch, Mode mode) {
    RefStage *s = of(base);
    s->batch = *batch;
    s->mode = mode;
    if (mode != MODE_TRAIN || s->stepping) return;
    copy_buffers(s, false);
    s->stepping = true;
}

/* Runs the nodes of a block; with `recompute`, those that its gradients need again. */
static void run_forward(RefStage *s, int block, bool recompute) {
    const Model *m = s->base.model;
    for (int i = m->block[block].first_node; i < m->block[block].end_node; i++) {
        if (recompute && !s->layout.node[i].recomputed) continue;
        NodeIO io = stage_node_io(s, &m->node[i]);
        io.hold_running |= recompute;
        node_forward(&m->node[i], &io);
    }
}

void stage_ref_forward(Stage *base, int block) { run_forward(of(base), block, false); }

int stage_ref_loss(Stage *base, double scale, Loss *loss) {
    RefStage *s = of(base);
    const Model *m = base->model;
    real *logits = stage_value(s, m->values - 1);
    int rows = s->batch.n * m->targets;
    (s->base.settings.plain ? cross_entropy_forward : fast_cross_entropy_forward)(
        s->loss, s->log_sum, s->correct, logits, s->batch.targets, rows, m->outputs);
    *loss = (Loss){0};
    for (int i = 0; i < rows; i++) {
        loss->loss_sum += (double)s->loss[i];
        loss->correct += s->correct[i];
        loss->count += s->batch.targets[i] >= 0;
    }
    if (s->mode == MODE_TRAIN && s->layout.lowest < m->blocks)
        (s->base.settings.plain ? cross_entropy_input_gradient : fast_cross_entropy_input_gradient)(
            logits, logits, s->log_sum, s->batch.targets, (real)scale, rows, m->outputs);
    return 0;
}

void stage_ref_input_gradient(Stage *base, int block) {
    RefStage *s = of(base);
    const Model *m = base->model;
    const Block *b = &m->block[block];
    if (block < s->layout.lowest) return;
    if (base->settings.recompute) run_forward(s, block, true);
    for (int i = b->end_node - 1; i >= b->first_node; i--) {
        const Node *node = &m->node[i];
        if (!s->layout.value[node->out].needs_grad) continue;
        NodeIO io = stage_node_io(s, node);
        io.dy = stage_value_gradient(s, node->out);
        const InputGradients wanted = node_input_gradients(&s->layout, node);
        if (wanted.skip) io.dskip = stage_value_gradient(s, node->skip);
        if (wanted.in) io.dx = stage_value_gradient(s, node->in);
        io.add_dskip = wanted.add_skip;
        io.add_dx = wanted.add_in;
        if (io.dx == io.dy) io.dx = NULL; /* a sum shares its gradient with its summand */
        node_input_gradient(node, &io);
    }
}

/* Returns the array for a parameter's gradient, or NULL if it does not train.  Sets *add if this
 * step has already written it, and notes that it now has. */
static real *claim_gradient(RefStage *s, int param, bool *add) {
    if (param < 0 || !s->param[param].gradient) return NULL;
    *add = s->param[param].gradient_made;
    s->param[param].gradient_made = true;
    return s->param[param].gradient;
}

void stage_ref_weight_gradient(Stage *base, int block) {
    RefStage *s = of(base);
    const Model *m = base->model;
    const Block *b = &m->block[block];
    if (!block_trains(m, block, s->layout.trains)) return;
    if (base->settings.deferred && base->settings.recompute) run_forward(s, block, true);
    for (int i = b->end_node - 1; i >= b->first_node; i--) {
        const Node *node = &m->node[i];
        if (!node_trains(m, node, s->layout.trains)) continue;
        NodeIO io = stage_node_io(s, node);
        io.dy = stage_value_gradient(s, node->out);
        io.dweight = claim_gradient(s, node->weight, &io.add_dweight);
        io.dbias = claim_gradient(s, node->bias, &io.add_dbias);
        io.sums_ready = node_sums_ready(&s->layout, node);
        node_weight_gradient(node, &io);
    }
}

/* ---- update ---- */

static void end_step(RefStage *s) {
    for (int p = 0; p < s->base.model->params; p++) s->param[p].gradient_made = false;
    s->stepping = false;
}

void stage_ref_discard(Stage *base) {
    RefStage *s = of(base);
    if (s->stepping) copy_buffers(s, true);
    end_step(s);
}

bool stage_updates(const RefStage *s, int param) {
    return s->active[s->base.model->param[param].block] &&
           param_is_owned(s->base.model, &s->base.settings, param);
}

static double gradient_square(const RefStage *s, int param) {
    const real *gradient = s->param[param].gradient;
    return gradient && stage_updates(s, param)
               ? optimizer_square_sum(gradient, s->base.model->param[param].count)
               : 0;
}

int stage_ref_gradient_squares(Stage *base, double *square) {
    for (int p = 0; p < base->model->params; p++) square[p] = gradient_square(of(base), p);
    return 0;
}

int stage_ref_gradient_norm(Stage *base, double *norm) {
    double sum = 0;
    for (int p = 0; p < base->model->params; p++) sum += gradient_square(of(base), p);
    *norm = sqrt(sum);
    return 0;
}

/* p -= correct_factor lr g */
static void step_frozen(RefStage *s, int param, double lr) {
    const OptimizerSettings plain = {.kind = OPTIMIZER_SGD};
    optimizer_update(&plain, &s->base.model->param[param], s->param[param].data,
                     (real *[2]){NULL, NULL}, s->param[param].gradient, 1,
                     s->base.settings.correct_factor * lr, 1, NULL);
}

/* The passes are over, so the optimizer has the workspace. */
void stage_ref_update(Stage *base, double lr, double gradient_scale) {
    RefStage *s = of(base);
    const Model *m = base->model;
    for (int b = 0; b < m->blocks; b++) s->base.optimizer_step[b] += s->active[b];
    for (int p = 0; p < m->params; p++) {
        const StageParam *param = &s->param[p];
        if (param->gradient && stage_updates(s, p))
            optimizer_update(&base->settings.optimizer, &m->param[p], param->data, param->state,
                             param->gradient, gradient_scale, lr,
                             s->base.optimizer_step[m->param[p].block], s->workspace);
        else if (param->gradient && !s->active[m->param[p].block])
            step_frozen(s, p, lr);
    }
    end_step(s);
}
