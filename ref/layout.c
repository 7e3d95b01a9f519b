#include "layout.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

size_t value_count(const Model *model, int value, int batch) {
    return (size_t)batch * shape_count(model->value[value].shape);
}

bool block_is_local(const StageSettings *settings, int block) {
    return !settings->local || settings->local[block];
}

bool value_is_local(const Model *model, const StageSettings *settings, int value) {
    int block = model->value[value].block;
    if (block < 0) return block_is_local(settings, 0);
    if (block_is_local(settings, block)) return true;
    return value == model->block[block].out && block + 1 < model->blocks &&
           block_is_local(settings, block + 1);
}

bool param_is_local(const Model *model, const StageSettings *settings, int param) {
    if (block_is_local(settings, model->param[param].block)) return true;
    for (int i = 0; i < model->nodes; i++) {
        const Node *node = &model->node[i];
        bool uses = node->weight == param || node->bias == param;
        if (uses && block_is_local(settings, node_block(model, node))) return true;
    }
    return false;
}

bool param_is_owned(const Model *model, const StageSettings *settings, int param) {
    return block_is_local(settings, model->param[param].block);
}

int block_in_flight(const StageSettings *settings, int block) {
    return settings->in_flight ? settings->in_flight[block] : 1;
}

size_t value_bytes(const StageSettings *settings) { return precision_bytes(settings->precision); }

int value_stride(const Model *m, const StageSettings *settings, int value) {
    const Node *last = &m->node[m->nodes - 1];
    int c = m->value[value].shape.c, align = settings->logits_align;
    bool gaps = align && value == m->values - 1 && last->kind == OP_LINEAR && last->out == value;
    return gaps ? (c + align - 1) / align * align : c;
}

size_t value_memory(const Model *m, const StageSettings *settings, int value) {
    size_t rows = value_count(m, value, settings->batch) / (size_t)m->value[value].shape.c;
    return rows * (size_t)value_stride(m, settings, value) * value_bytes(settings);
}

static size_t padded_value_bytes(const Layout *l, int value) {
    return align_bytes(value_memory(l->model, l->settings, value));
}

bool block_trains(const Model *model, int block, const bool *trains) {
    const Block *b = &model->block[block];
    for (int i = b->first_node; i < b->end_node; i++)
        if (node_trains(model, &model->node[i], trains)) return true;
    return false;
}

/* Returns true if a later node of the same block reads the value. */
static bool read_later(const Model *m, const Node *node, int value) {
    const Node *end = m->node + m->block[node_block(m, node)].end_node;
    while (++node < end)
        if (node->in == value || node->skip == value) return true;
    return false;
}

InputGradients node_input_gradients(const Layout *l, const Node *node) {
    InputGradients wanted = {.in = l->value[node->in].needs_grad,
                             .skip = node->skip >= 0 && l->value[node->skip].needs_grad};
    wanted.add_in = wanted.in && (node->skip == node->in || read_later(l->model, node, node->in));
    wanted.add_skip = wanted.skip && read_later(l->model, node, node->skip);
    return wanted;
}

bool node_sums_ready(const Layout *l, const Node *node) {
    const InputGradients wanted = node_input_gradients(l, node);
    bool lost = l->settings->deferred && !l->node[node - l->model->node].stored_aux;
    return node->kind == OP_BATCHNORM && (wanted.in || wanted.skip) && !lost &&
           !node_uses_running(l, node);
}

static bool is_output(const Model *model, int value) {
    return value == 0 || model->block[model->value[value].block].out == value;
}

/* Which blocks compute weight gradients. */
static void mark_trains(Layout *l) {
    for (int b = 0; b < l->model->blocks; b++)
        l->trains[b] = l->active[b] || (b > l->lowest && l->settings->correct_factor > 0);
}

/* With recompute only block inputs are stored, and of the rest what gradients read is computed
 * again from them, one block at a time.  Before, layout_mark_stored has marked what gradients read.
 * The output of a block is stored as the input of the next one, and that of the last one is the
 * logits, which their gradient has overwritten by then. */
static void mark_recomputed(Layout *l) {
    const Model *m = l->model;
    for (int i = m->nodes - 1; i >= 0; i--) {
        const Node *node = &m->node[i];
        NodeLayout *layout = &l->node[i];
        const bool ends = m->block[node_block(m, node)].out == node->out;
        const bool aux = layout->stored_aux && node_aux_count(node, 1) > 0;
        layout->stored_aux = false;
        layout->recomputed = aux || (l->value[node->out].stored && !ends);
        if (!layout->recomputed) continue;
        l->value[node->in].stored = true;
        if (node->skip >= 0) l->value[node->skip].stored = true;
    }
    for (int v = 0; v < m->values; v++) l->value[v].stored = false;
    for (int b = 0; b < m->blocks; b++)
        if (l->value[m->block[b].out].needs_grad) l->value[m->block[b].in].stored = true;
}

/* The gradient of a sum is the gradient of both summands, so a summand that nothing else reads
 * shares the sum's array.  A block's output may have readers in other blocks; an inner value has
 * none. */
static void share_gradients(Layout *l) {
    const Model *m = l->model;
    for (int v = 0; v < m->values; v++) l->value[v].gradient_of = v;
    for (int i = m->nodes - 1; i >= 0; i--) {
        const Node *add = &m->node[i];
        if (add->kind != OP_ADD || is_output(m, add->in)) continue;
        const Block *block = &m->block[node_block(m, add)];
        int readers = 0;
        for (int j = block->first_node; j < block->end_node; j++)
            readers += (m->node[j].in == add->in) + (m->node[j].skip == add->in);
        if (readers == 1) l->value[add->in].gradient_of = l->value[add->out].gradient_of;
    }
}

/* Stores the gradients that deferred weight gradients read, since the workspace will have been
 * reused by then.  Recomputed activations are not stored but recomputed once more, because storing
 * them would lose what recompute saves. */
static void mark_stored_gradients(Layout *l) {
    const Model *m = l->model;
    for (int i = 0; i < m->nodes && l->settings->deferred; i++) {
        const Node *node = &m->node[i];
        if (!node_trains(m, node, l->trains) || !block_is_local(l->settings, node_block(m, node)) ||
            node_sums_ready(l, node))
            continue;
        int v = l->value[node->out].gradient_of;
        if (v == m->values - 1)
            l->value[v].stored = true; /* the gradient of the logits overwrites them */
        else
            l->value[v].stored_gradient = true;
    }
}

/* Gives one block's inner values, aux and gradients their offsets in the scratch, and returns its
 * size.  The backward pass reuses the forward pass's scratch, unless it recomputes what is
 * there. */
static size_t assign_block_offsets(Layout *l, const Block *block) {
    const Model *m = l->model;
    size_t forward = 0;
    for (int i = block->first_node; i < block->end_node; i++) {
        int v = m->node[i].out;
        if (!is_output(m, v) && !l->value[v].stored) {
            l->value[v].offset = forward;
            forward += padded_value_bytes(l, v);
        }
        if (!l->node[i].stored_aux) {
            l->node[i].aux_offset = forward;
            forward += align_bytes(node_aux_count(&m->node[i], l->settings->batch) * sizeof(real));
        }
    }
    size_t backward = l->settings->recompute ? forward : 0;
    for (int v = block->first_value; v < block->end_value; v++) {
        ValueLayout *value = &l->value[v];
        if (is_output(m, v) || !value->needs_grad || value->gradient_of != v ||
            value->stored_gradient)
            continue;
        value->gradient_offset = backward;
        backward += padded_value_bytes(l, v);
    }
    return size_max(forward, backward);
}

/* Returns the workspace of the optimizer while a block is active, on the device that updates. */
static size_t update_workspace(const Layout *l, int block) {
    const Model *m = l->model;
    size_t numbers = 0;
    for (int p = m->block[block].first_param; p < m->block[block].end_param; p++)
        numbers = size_max(numbers, optimizer_workspace(&l->settings->optimizer, &m->param[p]));
    return l->active[block] && !l->settings->offload ? align_bytes(numbers * sizeof(real)) : 0;
}

static BlockWorkspace block_workspace(Layout *l, int block) {
    const Model *m = l->model;
    int out = m->block[block].out;
    size_t boundary = padded_value_bytes(l, out);
    /* The gradient of the logits overwrites them. */
    size_t gradient = l->value[out].needs_grad && block < m->blocks - 1 ? boundary : 0;
    return (BlockWorkspace){.scratch = assign_block_offsets(l, &m->block[block]),
                            .boundary = l->value[out].stored ? 0 : boundary,
                            .boundary_gradient = l->value[out].stored_gradient ? 0 : gradient,
                            .sent_gradient = gradient,
                            .update = update_workspace(l, block)};
}

static void assign_offsets(Layout *l) {
    const Model *m = l->model;
    /* Each of the block that needs most; of boundaries, among the even and among the odd blocks. */
    size_t scratch = 0, output[2] = {0}, gradient[2] = {0}, update = 0;
    for (int b = 0; b < m->blocks; b++) {
        if (!value_is_local(m, l->settings, m->block[b].out)) continue;
        const BlockWorkspace need = l->need[b] = block_workspace(l, b);
        if (block_is_local(l->settings, b)) {
            scratch = size_max(scratch, need.scratch);
            update = size_max(update, need.update);
        }
        output[b % 2] = size_max(output[b % 2], need.boundary);
        gradient[b % 2] = size_max(gradient[b % 2], need.boundary_gradient);
    }
    const size_t gradients = scratch + output[0] + output[1];
    for (int b = 0; b < m->blocks; b++) {
        ValueLayout *out = &l->value[m->block[b].out];
        out->offset = scratch + (b % 2 ? output[0] : 0);
        out->gradient_offset = gradients + (b % 2 ? gradient[0] : 0);
    }
    l->workspace = size_max(gradients + gradient[0] + gradient[1], update);
}

int layout_check(const Model *m, const StageSettings *settings, const bool *active) {
    const Layout layout = {.model = m, .settings = settings, .active = active};
    const size_t batch = (size_t)settings->batch;
    for (int i = 0; i < m->nodes; i++)
        if (batch * (size_t)node_positions(&m->node[i]) > INT_MAX)
            return error_set(
                "stage: %zu samples of %s have more positions than an op can count; "
                "use a smaller batch",
                batch, m->name);
    if (lowest_active(m, active) == m->blocks) return 0; /* no training */
    for (int i = 0; i < m->nodes; i++) {
        const Node *node = &m->node[i];
        if (node->kind != OP_BATCHNORM || node_uses_running(&layout, node)) continue;
        if (batch == 1 && node_positions(node) == 1)
            return error_set(
                "batchnorm: %s of %s has one value a channel in a batch, which has no "
                "variance; train with more samples at a time",
                m->block[node_block(m, node)].name, m->name);
    }
    return 0;
}

int layout_make(Layout *l, const Model *m, const StageSettings *settings, const bool *active) {
    *l = (Layout){.model = m,
                  .settings = settings,
                  .active = active,
                  .lowest = lowest_active(m, active),
                  .trains = calloc((size_t)m->blocks, sizeof *l->trains),
                  .value = calloc((size_t)m->values, sizeof *l->value),
                  .node = calloc((size_t)m->nodes, sizeof *l->node),
                  .need = calloc((size_t)m->blocks, sizeof *l->need)};
    if (!l->trains || !l->value || !l->node || !l->need) {
        layout_free(l);
        return error_set("stage: out of memory for the layout of %s", m->name);
    }
    mark_trains(l);
    layout_mark_needs_grad(l);
    layout_mark_stored(l);
    if (settings->recompute) mark_recomputed(l);
    l->value[0].stored = false; /* the model's input belongs to the batch */
    share_gradients(l);
    mark_stored_gradients(l);
    assign_offsets(l);
    return 0;
}

void layout_free(Layout *l) {
    free(l->trains);
    free(l->value);
    free(l->node);
    free(l->need);
    *l = (Layout){0};
}
