/* The optimizer step: the equations of ref/optimizers/ in one pass over all tensors.  Memory
 * traffic sets its time: with Adam 28 bytes for each parameter, to read it, its gradient and two
 * moments and to write all but the gradient (and 2 more in bf16). */
#include "update.cuh"

enum { UPDATE_BLOCK = 256 };

static DEVICE bool aligned16(const void *p) { return (uintptr_t)p % 16 == 0; }

/* The numbers of a chunk: the first, how many, and how many packs of V they make (0 if not
 * aligned). */
typedef struct {
    size_t first;
    int count, packs;
} Extent;

template <int V>
static DEVICE Extent extent_of(const UpdateTensor &tensor, UpdateChunk chunk, bool aligned) {
    Extent extent;
    extent.first = (size_t)chunk.number * UPDATE_CHUNK;
    extent.count = (int)min((unsigned long long)(tensor.count - extent.first),
                            (unsigned long long)UPDATE_CHUNK);
    extent.packs = aligned ? extent.count / V : 0;
    return extent;
}

/* ---- norm ----
 * Version 1 is V = 1, version 2 reads 128 bits at a time. */

template <int V>
__global__ void __launch_bounds__(UPDATE_BLOCK) square_sums(UpdatePlan plan) {
    SHARED(double, scratch, [32]);
    const UpdateChunk chunk = plan.chunk[blockIdx.x];
    const UpdateTensor tensor = plan.tensor[chunk.tensor];
    const Extent own = extent_of<V>(tensor, chunk, V == 1 || aligned16(tensor.g));
    const float *g = tensor.g + own.first;
    double sum = 0;
#pragma unroll 4
    for (int i = (int)threadIdx.x; i < own.packs; i += UPDATE_BLOCK) {
        float x[V];
        load_floats(x, g + i * V);
#pragma unroll
        for (int j = 0; j < V; j++) sum += (double)x[j] * (double)x[j];
    }
    for (int i = own.packs * V + (int)threadIdx.x; i < own.count; i += UPDATE_BLOCK)
        sum += (double)g[i] * (double)g[i];
    sum = block_sum(sum, scratch);
    if (threadIdx.x == 0) plan.partial[blockIdx.x] = sum;
}

enum { NORM_BLOCK = 1024 };
__global__ void __launch_bounds__(NORM_BLOCK) norm_of_sums(UpdatePlan plan) {
    SHARED(double, scratch, [32]);
    double sum = 0;
    for (int i = (int)threadIdx.x; i < plan.chunks; i += NORM_BLOCK) sum += plan.partial[i];
    sum = block_sum(sum, scratch);
    if (threadIdx.x) return;
    UpdateNumbers *numbers = plan.numbers;
    const double norm = sqrt(sum);
    const double clip = plan.clip_norm > 0 && norm > plan.clip_norm ? plan.clip_norm / norm : 1;
    numbers->norm = norm;
    numbers->scale = (float)(clip * numbers->gradient_scale);
    numbers->refused = !is_finite(norm);
}

void update_squares(const Run *run, const Updater *updater) {
    const UpdatePlan *plan = &updater->plan;
    if (!plan->chunks) return;
    WITH_PACKS(V, 4, run->version != 1,
               LAUNCH(square_sums<V>, plan->chunks, UPDATE_BLOCK, 0, run->stream, *plan));
}

void update_norm(const Run *run, const Updater *updater, double *norm) {
    update_squares(run, updater);
    LAUNCH(norm_of_sums, 1, NORM_BLOCK, 0, run->stream, updater->plan);
    if (norm) copy_to_host(run->stream, norm, &updater->plan.numbers->norm, sizeof *norm);
}

/* ---- update ----
 * Version 1 is V = 1, version 2 moves 128 bits at a time. */

template <UpdateRule rule>
static DEVICE void update_one(float *p, float *m, float *v, float g, const OptimizerFactors &f) {
    if (rule == UPDATE_LION) {
        const float c = f.beta1 * *m + f.one_minus_beta1 * g;
        const float sign = c > 0 ? 1 : c < 0 ? -1 : c;
        *p -= f.decay_step * *p + f.lr * sign;
        *m = f.beta2 * *m + f.one_minus_beta2 * g;
        return;
    }
    g += f.coupled_decay * *p;
    if (rule == UPDATE_ADAM) {
        *m = f.beta1 * *m + f.one_minus_beta1 * g;
        *v = f.beta2 * *v + f.one_minus_beta2 * g * g;
        const float sqrt_v_hat = sqrtf(*v) * f.rsqrt_bias_correction2;
        *p -= f.decay_step * *p + f.step_size * *m / (sqrt_v_hat + f.eps);
    } else {
        if (rule == UPDATE_MOMENTUM) *m = g = f.momentum * *m + g;
        *p -= f.lr * g;
    }
}

/* Updates V numbers from number i on. */
template <typename T, UpdateRule rule, int V>
static DEVICE void update_pack(const UpdateTensor &tensor, size_t i, float scale,
                               const OptimizerFactors &f) {
    const int states = rule == UPDATE_ADAM ? 2 : rule == UPDATE_SGD ? 0 : 1;
    float p[V], g[V], m[V], v[V];
    load_floats(g, tensor.g + i);
    load_floats(p, tensor.master + i);
    if (states > 0) load_floats(m, tensor.state[0] + i);
    if (states > 1) load_floats(v, tensor.state[1] + i);
#pragma unroll
    for (int j = 0; j < V; j++) update_one<rule>(&p[j], &m[j], &v[j], scale * g[j], f);
    store_floats(tensor.master + i, p);
    if (states > 0) store_floats(tensor.state[0] + i, m);
    if (states > 1) store_floats(tensor.state[1] + i, v);
    if (sizeof(T) != sizeof(float)) store_floats((T *)tensor.p + i, p);
}

template <typename T, UpdateRule rule, int V>
__global__ void __launch_bounds__(UPDATE_BLOCK)
    update_tensors(UpdatePlan plan, const LossSums *sums) {
    if (is_refused(plan, sums)) return;
    const UpdateChunk chunk = plan.chunk[blockIdx.x];
    const UpdateTensor tensor = plan.tensor[chunk.tensor];
    if (tensor.columns) return; /* a matrix, which muon.cu updates */
    const OptimizerFactors f = plan.factors[2 * tensor.block + tensor.decay];
    const float scale = plan.numbers->scale;
    const bool aligned = aligned16(tensor.g) && aligned16(tensor.master) && aligned16(tensor.p) &&
                         aligned16(tensor.state[0]) && aligned16(tensor.state[1]);
    const Extent own = extent_of<V>(tensor, chunk, V == 1 || aligned);
    for (int i = (int)threadIdx.x; i < own.packs; i += UPDATE_BLOCK)
        update_pack<T, rule, V>(tensor, own.first + (size_t)i * V, scale, f);
    for (int i = own.packs * V + (int)threadIdx.x; i < own.count; i += UPDATE_BLOCK)
        update_pack<T, rule, 1>(tensor, own.first + i, scale, f);
}

template <UpdateRule rule>
static void apply(const Run *run, const UpdatePlan *plan, const LossSums *sums) {
    WITH_VALUES(run, T,
                WITH_PACKS(V, 4, run->version != 1,
                           LAUNCH((update_tensors<T, rule, V>), plan->chunks, UPDATE_BLOCK, 0,
                                  run->stream, *plan, sums)));
}

/* By UpdateRule. */
static void (*const appliers[])(const Run *, const UpdatePlan *, const LossSums *) = {
    NULL, apply<UPDATE_SGD>, apply<UPDATE_MOMENTUM>, apply<UPDATE_ADAM>, apply<UPDATE_LION>};
static_assert(sizeof appliers / sizeof *appliers == UPDATE_RULES, "a kernel for every rule");

void update_apply(const Run *run, const Updater *updater, const LossSums *sums, float *workspace) {
    if (updater->plan.chunks) appliers[updater->plan.rule](run, &updater->plan, sums);
    update_muon(run, updater, sums, workspace);
}
