/* Captures a whole step as a CUDA graph: forward, loss, gradients, clipping and update.  The first
 * step of a shape runs without a graph, so that libraries choose their algorithms; the second is
 * captured, and from then on one launch repeats it.  What changes from step to step lies at
 * addresses that never change: the batch (batch.c), the scale of the loss, the optimizer's rate and
 * steps (update_prepare), and the loss and norm that the host reads back. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/base/error.h"
#include "stage_internal.h"

static LossSums *step_sums(const CudaStage *s) { return fixed_at(s, s->fixed.sums); }

/* The passes are over when the parameters are updated, so the optimizer has the scratch. */
static float *update_workspace(const CudaStage *s) { return (float *)(void *)s->scratch.base; }

static bool any_gradient_made(const CudaStage *s) {
    for (int p = 0; p < s->base.model->params; p++)
        if (s->gradient_made[p]) return true;
    return false;
}

static void note_gradients(CudaStage *s, bool made) {
    const Model *m = s->base.model;
    for (int p = 0; p < m->params; p++) s->gradient_made[p] = made && s->active[m->param[p].block];
}

/* ---- the work ---- */

/* Puts a step on the stream.  On the host it only notes which gradients exist; step_run notes it
 * again, because a step repeated from its graph does not come here. */
static void run_step(CudaStage *s, StepShape shape) {
    Stage *base = &s->base;
    int blocks = base->model->blocks;
    bool offload = base->settings.offload;
    s->norm_done =
        -1; /* the first norm runs in this step: one graph serves computed and cached inputs */
    for (int b = shape.first; b < blocks; b++) pass_forward(base, b);
    pass_loss(s, step_sums(s), shape.accumulate);
    if (shape.last) copy_to_host(s->run.stream, &s->answer->sums, step_sums(s), sizeof(LossSums));
    if (shape.last && offload) event_record(s->offload.loss_on_host, s->run.stream);
    for (int b = blocks - 1; b >= s->layout.lowest; b--) {
        pass_input_gradient(base, b);
        pass_weight_gradient(base, b);
        if (shape.last && offload) offload_send(s, b);
    }
    if (!shape.last || offload) return;
    if (clip_norm(s) > 0) update_norm(&s->run, s->updater, &s->answer->norm);
    update_apply(&s->run, s->updater, step_sums(s), update_workspace(s));
}

/* ---- captures ---- */

static bool same_shape(StepShape a, StepShape b) {
    return a.n == b.n && a.first == b.first && a.accumulate == b.accumulate && a.last == b.last;
}

void step_forget(CudaStage *s) {
    for (int i = 0; i < CAPTURED_STEPS; i++) {
        graph_free(s->captured[i].graph);
        s->captured[i] = (CapturedStep){0};
    }
}

/* Returns the capture of a shape.  A new one replaces the least recently used. */
static CapturedStep *find_capture(CudaStage *s, StepShape shape) {
    CapturedStep *oldest = &s->captured[0];
    for (int i = 0; i < CAPTURED_STEPS; i++) {
        CapturedStep *r = &s->captured[i];
        if (r->used && same_shape(r->shape, shape)) return r;
        if (r->used < oldest->used) oldest = r;
    }
    graph_free(oldest->graph);
    *oldest = (CapturedStep){.shape = shape};
    return oldest;
}

static int capture_step(CudaStage *s, CapturedStep *capture) {
    if (graph_begin(s->run.stream)) return -1;
    run_step(s, capture->shape);
    capture->graph = graph_end(s->run.stream);
    return capture->graph ? 0 : -1;
}

/* A driver or a library may refuse a capture.  Launched one by one the kernels give the same bits,
 * more slowly, which is said. */
static int go_on_without_graphs(CudaStage *s, StepShape shape) {
    fprintf(stderr, "bcd: steps run without CUDA graphs, as none can be made: %s\n",
            error_message());
    if (device_wait(s->run.stream)) return -1;
    s->tuning.graphs = false;
    note_gradients(s, shape.accumulate); /* as before the capture */
    run_step(s, shape);
    return 0;
}

/* Runs a step, from a graph if it can.  Offload's steps cannot be captured, because the host waits
 * for the device and updates the weights in the middle. */
static int perform(CudaStage *s, StepShape shape) {
    CapturedStep *r = find_capture(s, shape);
    bool first_time = r->used == 0;
    r->used = ++s->steps;
    if (first_time || !s->tuning.graphs || s->base.settings.offload) {
        run_step(s, shape);
        return 0;
    }
    if (!r->graph && capture_step(s, r)) return go_on_without_graphs(s, shape);
    return graph_launch(r->graph, s->run.stream);
}

/* ---- a step ---- */

static void count_optimizer_steps(CudaStage *s, bool up) {
    for (int b = 0; b < s->base.model->blocks; b++)
        if (s->active[b]) s->base.optimizer_step[b] += up ? 1 : (uint64_t)-1;
}

Loss step_loss(const CudaStage *s) {
    const LossSums *sums = &s->answer->sums;
    return (Loss){sums->loss_sum, (size_t)sums->count, (size_t)sums->correct};
}

static int check_answer(const CudaStage *s) {
    if (optimizer_check_loss(s->answer->sums.loss_sum)) return -1;
    return clip_norm(s) > 0 ? optimizer_check_norm(s->answer->norm) : 0;
}

/* Finishes a step whose gradients are on their way to the host: waits for the loss, then clips and
 * updates on the host, block by block.  By then all gradients have arrived, so that the wait only
 * asks whether anything has failed. */
static int finish_offload(CudaStage *s, double lr) {
    if (event_wait(s->offload.loss_on_host)) return -1;
    s->answer->norm = 0;
    if ((clip_norm(s) > 0 && offload_norm(s, &s->answer->norm)) || check_answer(s)) return -1;
    count_optimizer_steps(s, true);
    double scale = optimizer_clip(&s->base.settings.optimizer, s->answer->norm);
    return offload_update(s, lr, scale) ? -1 : device_wait(s->offload.gradient_stream);
}

/* Waits for the loss and the norm.  -1 and an error if the device failed or if one of them is not
 * finite; in the second case no parameter has been updated. */
static int finish(CudaStage *s, double lr) {
    if (s->base.settings.offload) return finish_offload(s, lr);
    return device_wait(s->run.stream) ? -1 : check_answer(s);
}

int step_run(Stage *base, int first, double scale, bool last, double lr, Loss *loss) {
    CudaStage *s = cuda_stage(base);
    StepShape shape = {s->n, first, any_gradient_made(s), last};
    bool updates = last && !base->settings.offload;
    *loss = (Loss){0};
    if (first == 0 || s->layout.lowest == 0) batch_send_inputs(s);
    batch_send_targets(s);
    batch_send_scale(s, scale);
    if (updates) {
        count_optimizer_steps(s, true);
        update_prepare(s->updater, s->run.stream, lr, 1, s->base.optimizer_step);
    }
    int failed = perform(s, shape);
    note_gradients(s, !last);
    if (!failed && !last) return 0; /* the last micro-batch's loss includes it */
    if (!failed) failed = finish(s, lr);
    if (failed && updates) count_optimizer_steps(s, false);
    if (failed) return -1;
    *loss = step_loss(s);
    s->stepping = false;
    return 0;
}

/* ---- the parts of a step, called one by one ---- */

void step_discard(Stage *base) {
    CudaStage *s = cuda_stage(base);
    if (s->stepping)
        copy_on_device(s->run.stream, s->buffers.base, s->buffers_before.base, s->buffer_bytes);
    s->stepping = false;
    note_gradients(s, false);
    offload_forget(s);
    times_drop(s);
}

int step_gradient_norm(Stage *base, double *norm) {
    CudaStage *s = cuda_stage(base);
    *norm = 0;
    if (base->settings.offload) return offload_norm(s, norm);
    if (!s->updater) return 0;
    update_norm(&s->run, s->updater, &s->answer->norm);
    if (device_wait(s->run.stream)) return -1;
    *norm = s->answer->norm;
    return 0;
}

/* The updater has the tensors in the order of parameters. */
int step_gradient_squares(Stage *base, double *square) {
    CudaStage *s = cuda_stage(base);
    const Model *m = base->model;
    memset(square, 0, (size_t)m->params * sizeof *square);
    if (!s->updater) return 0;
    size_t bytes = (size_t)s->updater->plan.chunks * sizeof(double);
    double *partial = malloc(bytes), *next = partial;
    if (!partial) return error_set("update: out of memory for a norm");
    update_squares(&s->run, s->updater);
    copy_to_host(s->run.stream, partial, s->updater->plan.partial, bytes);
    int failed = device_wait(s->run.stream);
    for (int p = 0; p < m->params; p++)
        for (int k = 0; is_updated(s, p) && k < update_chunks(m->param[p].count); k++)
            square[p] += *next++;
    free(partial);
    return failed;
}

void step_update(Stage *base, double lr, double gradient_scale) {
    CudaStage *s = cuda_stage(base);
    count_optimizer_steps(s, true);
    if (base->settings.offload) {
        /* The next wait reports it. */
        if (offload_update(s, lr, gradient_scale)) device_note("%s", error_message());
    } else if (s->updater) {
        update_prepare(s->updater, s->run.stream, lr, gradient_scale, s->base.optimizer_step);
        update_apply(&s->run, s->updater, NULL, update_workspace(s));
    }
    s->stepping = false;
    note_gradients(s, false);
}
