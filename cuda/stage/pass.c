/* Forward and backward passes: walks a block's nodes, hands each one the arrays it needs, and
 * leaves the mathematics to node.h, or to a launcher that does two nodes at once (fuse.h). */
#include "../node.h"
#include "stage_internal.h"

DeviceIO pass_node_io(const CudaStage *s, int index) {
    const Model *m = s->base.model;
    const Node *node = &m->node[index];
    DeviceIO io = {.n = s->n,
                   .x = value_at(s, node->in),
                   .skip = node->skip < 0 ? NULL : value_at(s, node->skip),
                   .tokens = m->tokens ? fixed_at(s, s->fixed.inputs) : NULL,
                   .y = value_at(s, node->out),
                   .y_stride = value_stride(m, &s->base.settings, node->out),
                   .aux = aux_at(s, index),
                   .weight = node->weight < 0 ? NULL : weight_at(s, node->weight),
                   .bias = node->bias < 0 ? NULL : weight_at(s, node->bias)};
    if (node->running >= 0) {
        io.running_mean = buffer_at(s, node->running);
        io.running_var = buffer_at(s, node->running + 1);
        io.use_running = s->mode != MODE_TRAIN || node_uses_running(&s->layout, node);
        /* A frozen block must not change, so only active blocks update running statistics. */
        io.hold_running = !s->active[node_block(m, node)];
    }
    return io;
}

/* ---- forward ---- */

/* Writes the gelu's input only if the backward pass reads it.  The forward pass and recomputation
 * decide this alike, because another choice could run another kernel and change the last bit. */
static void linear_gelu(const CudaStage *s, int index) {
    const Node *node = &s->base.model->node[index];
    DeviceIO io = pass_node_io(s, index);
    io.gelu = true;
    if (s->mode == MODE_TRAIN && s->layout.value[node->out].needs_grad) io.saved = io.y;
    io.y = value_at(s, node[1].out);
    cuda_node_forward(&s->run, node, &io);
}

static bool apart(const void *a, size_t a_bytes, const void *b, size_t b_bytes) {
    const char *x = a, *y = b;
    return x + a_bytes <= y || y + b_bytes <= x;
}

/* Returns true when the first norm of block + 1 may run together with the last add of `block`.  In
 * a pipeline the micro-batch may enter block + 1 later, or on another stage, and the slot that it
 * will use there may still hold an earlier micro-batch.  The slot is certainly free if block + 1
 * has at least as many slots as `block`: the micro-batch whose slot is now reused in `block` has
 * gone backward through block + 1 first.  Deferred weight gradients may read it after that. */
static bool may_run_ahead(const CudaStage *s, int block) {
    const StageSettings *settings = &s->base.settings;
    if (!settings->in_flight) return true;
    if (!block_is_local(settings, block + 1)) return false;
    if (block + 1 < s->layout.lowest) return true; /* it has no backward pass */
    return block >= s->layout.lowest && !settings->deferred &&
           block_in_flight(settings, block + 1) >= block_in_flight(settings, block);
}

/* Returns true when a block's last add, node `index`, may run with the next block's first norm.
 * Blocks share their scratch, so the norm's outputs may overlap the inputs of the add. */
static bool may_add_norm(const CudaStage *s, int index) {
    const Model *m = s->base.model;
    const Node *node = &m->node[index];
    if (!may_run_ahead(s, node_block(m, node))) return false;
    DeviceIO add = pass_node_io(s, index), norm = pass_node_io(s, index + 1);
    size_t aux = node_aux_count(&node[1], s->n) * sizeof(float);
    size_t bytes = value_count(m, node->out, s->n) * value_bytes(&s->base.settings);
    return apart(add.x, bytes, norm.y, bytes) && apart(add.x, bytes, norm.aux, aux) &&
           apart(add.skip, bytes, norm.y, bytes) && apart(add.skip, bytes, norm.aux, aux);
}

static void add_norm(const CudaStage *s, int index) {
    DeviceIO add = pass_node_io(s, index), norm = pass_node_io(s, index + 1);
    norm.x = add.x;
    norm.skip = add.skip;
    norm.sum = add.y;
    cuda_node_forward(&s->run, &s->base.model->node[index + 1], &norm);
}

/* Runs the nodes of a block; with `again`, those that its gradients need again. */
static void run_forward(CudaStage *s, const Block *block, bool again) {
    const Model *m = s->base.model;
    for (int i = block->first_node; i < block->end_node; i++) {
        if (again && !s->layout.node[i].recomputed) continue;
        bool last = i + 1 == block->end_node;
        if (!again && s->norm_done == i) {
            s->norm_done = -1;
        } else if (s->fusion[i].gelu_next) {
            linear_gelu(s, i++);
        } else if (s->fusion[i].norm_next && !last) {
            add_norm(s, i++);
        } else if (s->fusion[i].norm_next && !again && may_add_norm(s, i)) {
            add_norm(s, i);
            s->norm_done = i + 1;
        } else {
            DeviceIO io = pass_node_io(s, i);
            io.hold_running |= again;
            cuda_node_forward(&s->run, &m->node[i], &io);
        }
    }
}

void pass_forward(Stage *base, int block) {
    if (block == 0) batch_send_inputs(cuda_stage(base));
    run_forward(cuda_stage(base), &base->model->block[block], false);
}

void pass_loss(CudaStage *s, LossSums *sums, bool add) {
    const Model *m = s->base.model;
    int rows = s->n * m->targets;
    bool gradient = s->mode == MODE_TRAIN && s->layout.lowest < m->blocks;
    batch_send_targets(s);
    float *loss = fixed_at(s, s->fixed.loss);
    unsigned char *correct = fixed_at(s, s->fixed.correct);
    const int *targets = fixed_at(s, s->fixed.targets);
    cuda_cross_entropy(&s->run, loss, correct, value_at(s, m->values - 1), targets,
                       gradient ? fixed_at(s, s->fixed.scale) : NULL, rows, m->outputs,
                       value_stride(m, &s->base.settings, m->values - 1));
    cuda_loss_sums(&s->run, sums, loss, correct, targets, rows, add);
}

/* ---- input gradients ---- */

static float *claim_gradient(CudaStage *s, int param, bool *add) {
    if (param < 0 || !s->active[s->base.model->param[param].block]) return NULL;
    *add = s->gradient_made[param];
    s->gradient_made[param] = true;
    return gradient_at(s, param);
}

static void want_weight_gradient(CudaStage *s, const Node *node, DeviceIO *io) {
    io->dweight = claim_gradient(s, node->weight, &io->add_dweight);
    io->dbias = claim_gradient(s, node->bias, &io->add_dbias);
}

/* Returns true if a node's input gradient also computes its weight gradient.  Deferred weight
 * gradients are computed apart, because they add up micro-batches in an order of their own. */
static bool gives_weight_gradient(const CudaStage *s, const Node *node) {
    return cuda_node_one_pass(node->kind) && !s->base.settings.deferred &&
           node_input_gradients(&s->layout, node).in;
}

/* Computes the input gradients of a linear node and of the gelu before it in one launch. */
static void gelu_linear_gradient(CudaStage *s, int index) {
    const Node *node = &s->base.model->node[index], *gelu = node - 1;
    DeviceIO io = pass_node_io(s, index);
    if (!s->layout.value[gelu->in].needs_grad) return;
    io.gelu = true;
    io.saved = value_at(s, gelu->in);
    io.dy = value_gradient_at(s, node->out);
    io.dx = value_gradient_at(s, gelu->in);
    cuda_node_input_gradient(&s->run, node, &io);
}

static void node_gradient(CudaStage *s, int index) {
    const Node *node = &s->base.model->node[index];
    const Fusion *fusion = &s->fusion[index];
    DeviceIO io = pass_node_io(s, index);
    io.dy = value_gradient_at(s, node->out);
    const InputGradients wanted = node_input_gradients(&s->layout, node);
    if (wanted.skip && !fusion->skip_gradient_by_norm) io.dskip = value_gradient_at(s, node->skip);
    if (wanted.in) io.dx = value_gradient_at(s, node->in);
    io.add_dskip = wanted.add_skip;
    io.add_dx = wanted.add_in;
    if (fusion->residual >= 0) io.residual = value_gradient_at(s, fusion->residual);
    if (io.dx == io.dy) io.dx = NULL; /* an add's input may share its output's gradient */
    if (gives_weight_gradient(s, node)) want_weight_gradient(s, node, &io);
    cuda_node_input_gradient(&s->run, node, &io);
}

void pass_input_gradient(Stage *base, int block) {
    CudaStage *s = cuda_stage(base);
    const Block *b = &base->model->block[block];
    if (block < s->layout.lowest) return;
    if (block == 0) batch_send_inputs(s);
    if (base->settings.recompute) run_forward(s, b, true);
    for (int i = b->end_node - 1; i >= b->first_node; i--) {
        if (!s->layout.value[base->model->node[i].out].needs_grad) continue;
        if (s->fusion[i].gelu_before) {
            gelu_linear_gradient(s, i);
            i--; /* the gelu is done too */
        } else {
            node_gradient(s, i);
        }
    }
}

/* ---- weight gradients ---- */

void pass_weight_gradient(Stage *base, int block) {
    CudaStage *s = cuda_stage(base);
    const Model *m = base->model;
    const Block *b = &m->block[block];
    if (!block_trains(m, block, s->active)) return;
    if (block == 0) batch_send_inputs(s);
    if (base->settings.deferred && base->settings.recompute) run_forward(s, b, true);
    for (int i = b->end_node - 1; i >= b->first_node; i--) {
        const Node *node = &m->node[i];
        if (!node_trains(m, node, s->active) || gives_weight_gradient(s, node)) continue;
        DeviceIO io = pass_node_io(s, i);
        io.dy = value_gradient_at(s, node->out);
        want_weight_gradient(s, node, &io);
        io.sums_ready = node_sums_ready(&s->layout, node);
        cuda_node_weight_gradient(&s->run, node, &io);
    }
}
