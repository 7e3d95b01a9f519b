/* Cross-entropy of softmax(logits).  The softmax is never stored: a row's logits are read once for
 * the loss and once more, from shared memory or the cache, to be overwritten by their gradient.
 *
 * With m = max x and s = sum exp(x - m) of a row, and the target's logit x_t,
 *   loss = m - x_t + log s,    d loss / d x_j = exp(x_j - m) / s - (j == t)
 * and `correct` says whether x_t is the first of the largest.  NaN in a row makes its loss NaN, and
 * `correct` 0. */
#include "common.cuh"

/* Returns true when logit x of class j beats the target's, `own` of class t: when it is larger, or
 * equal and of a smaller class. */
static DEVICE bool beats(float x, int j, float own, int t) { return j < t ? x >= own : x > own; }

/* Returns the target's probability minus 1, without cancellation where it is near 1. */
static DEVICE float own_gradient(float own, float max, float sum) {
    return expm1f(own - max - logf(sum));
}

/* x[from..to) = 0, by `lanes` threads. */
template <typename T>
static DEVICE void clear(T *x, int from, int to, int lane, int lanes) {
    for (int j = from + lane; j < to; j += lanes) x[j] = from_float<T>(0);
}

/* ---- version 1: a block a row, one number at a time: largest, sum, gradient ---- */

template <typename T>
__global__ void cross_entropy_plain(float *loss, unsigned char *correct, T *logits,
                                    const int *targets, const float *scale, int classes,
                                    int stride) {
    SHARED(float, scratch, [32]);
    const int row = (int)blockIdx.x, t = targets[row], first = (int)threadIdx.x;
    T *x = logits + (size_t)row * stride;
    if (t < 0) {
        if (scale) clear(x, 0, stride, first, (int)blockDim.x);
        if (first == 0) loss[row] = correct[row] = 0;
        return;
    }
    const float own = to_float(x[t]);
    float max = -INFINITY, beaten = 0, sum = 0;
    for (int j = first; j < classes; j += (int)blockDim.x) {
        max = max_nan(max, to_float(x[j]));
        if (beats(to_float(x[j]), j, own, t)) beaten = 1;
    }
    max = block_max(max, scratch);
    beaten = block_max(beaten, scratch);
    for (int j = first; j < classes; j += (int)blockDim.x) sum += expf(to_float(x[j]) - max);
    sum = block_sum(sum, scratch);
    if (first == 0) {
        const float own_loss = max - own + logf(sum);
        loss[row] = own_loss;
        correct[row] = beaten == 0 && own_loss == own_loss;
    }
    if (!scale) return;
    for (int j = first; j < classes; j += (int)blockDim.x) {
        const float p = expf(to_float(x[j]) - max) / sum;
        x[j] = from_float<T>(*scale * (j == t ? own_gradient(own, max, sum) : p));
    }
    clear(x, classes, stride, first, (int)blockDim.x);
}

/* ---- version 2: largest and sum in one pass (Milakov & Gimelshein 2018), 128 bits at a time ----
 * Rows begin at multiples of 16 bytes.  A warp takes a row, or a block where rows are long; a block
 * keeps the row in shared memory for the second pass if it fits, as 50,304 classes in bf16 do for
 * two blocks a multiprocessor of sm_90.  The second pass goes backwards, because what was read last
 * is still in the cache.  The bits are the same whether the row is kept or not. */

template <typename T>
struct Row {
    T *x;
    T *held;         /* where the second pass reads logits: a copy, or x */
    int lane, lanes; /* number of this thread, of those that share the row */
    int packs;       /* of the row; after them come less than a pack of single logits */
};

typedef struct {
    float max, sum; /* sum of exp(x - max) */
    bool beaten;    /* some logit beats the target's */
} RowSums;

static DEVICE float exp_fast(float x) { return exp2_fast(x * LOG2_E); }

/* Returns what to subtract before exp: `max`, or 0 while all logits were -infinity, because
 * -infinity minus itself is NaN. */
static DEVICE float shift_of(float max) { return max == -INFINITY ? 0.0f : max; }

template <int N>
static DEVICE void add_logits(RowSums *sums, const float (&x)[N], int j, float own, int t) {
    float max = x[0];
#pragma unroll
    for (int i = 1; i < N; i++) max = max_nan(max, x[i]);
    if (!sums->beaten && !(max < own)) {
#pragma unroll
        for (int i = 0; i < N; i++) sums->beaten |= beats(x[i], j + i, own, t);
    }
    max = max_nan(sums->max, max);
    const float shift = shift_of(max);
    /* fmaf, so that no instance chooses whether to round between. */
    float sum = fmaf(sums->sum, exp_fast(sums->max - shift), exp_fast(x[0] - shift));
#pragma unroll
    for (int i = 1; i < N; i++) sum += exp_fast(x[i] - shift);
    sums->max = max;
    sums->sum = sum;
}

/* Packs that a lane loads before it uses the first: enough in flight to keep memory busy. */
enum { AT_ONCE = 4 };

template <bool hold, typename T>
static DEVICE RowSums sum_row(const Row<T> &row, int classes, float own, int t) {
    const int V = pack_width<T>(), last = row.packs * V + row.lane;
    RowSums sums = {-INFINITY, 0, false};
    float many[V];
    for (int i = row.lane; i < row.packs; i += AT_ONCE * row.lanes) {
        Pack<T, V> pack[AT_ONCE];
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++)
            if (i + k * row.lanes < row.packs)
                pack[k] = load_pack<V>(row.x + (i + k * row.lanes) * V);
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++) {
            if (i + k * row.lanes >= row.packs) break;
            if (hold) store_pack(row.held + (i + k * row.lanes) * V, pack[k]);
            unpack(many, pack[k]);
            add_logits(&sums, many, (i + k * row.lanes) * V, own, t);
        }
    }
    if (last >= classes) return sums;
    const float one[1] = {to_float(row.x[last])};
    if (hold) row.held[last] = row.x[last];
    add_logits(&sums, one, last, own, t);
    return sums;
}

/* x = factor exp(held - shift) */
template <typename T>
static DEVICE void write_row(const Row<T> &row, int classes, float shift, float factor) {
    const int V = pack_width<T>(), last = row.packs * V + row.lane;
    if (last < classes)
        row.x[last] = from_float<T>(factor * exp_fast(to_float(row.held[last]) - shift));
    for (int i = row.packs - 1 - row.lane; i >= 0; i -= AT_ONCE * row.lanes) {
        Pack<T, V> pack[AT_ONCE];
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++)
            if (i >= k * row.lanes) pack[k] = load_pack<V>(row.held + (i - k * row.lanes) * V);
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++) {
            if (i < k * row.lanes) break;
            float many[V];
            unpack(many, pack[k]);
#pragma unroll
            for (int v = 0; v < V; v++) many[v] = factor * exp_fast(many[v] - shift);
            store_floats(row.x + (i - k * row.lanes) * V, many);
        }
    }
}

/* Combines what the lanes of a row have summed; each gets the result.  It also orders what they
 * have read before what they write next. */
template <bool wide>
static DEVICE RowSums combined(RowSums sums, float *scratch) {
    const float own = sums.max;
    sums.max = wide ? block_max(own, scratch) : warp_max(own);
    sums.sum *= exp_fast(own - shift_of(sums.max));
    sums.sum = wide ? block_sum(sums.sum, scratch) : warp_sum(sums.sum);
    sums.beaten = wide ? __syncthreads_or(sums.beaten) : __any_sync(0xffffffffu, sums.beaten);
    if (!wide) __syncwarp();
    return sums;
}

enum { WIDE = 512, ROWS = 4 /* of a block that is not wide */ };

template <typename T, bool wide, bool hold>
__global__ void __launch_bounds__(wide ? WIDE : 32 * ROWS)
    cross_entropy_rows(float *loss, unsigned char *correct, T *logits, const int *targets,
                       const float *scale, int rows, int classes, int stride) {
    SHARED(float, scratch, [32]);
    DYNAMIC_SHARED(T, shared);
    const int lanes = wide ? WIDE : 32, lane = (int)threadIdx.x % lanes;
    const int number = wide ? (int)blockIdx.x : (int)blockIdx.x * ROWS + (int)threadIdx.x / 32;
    if (number >= rows) return;
    const int t = targets[number];
    T *const x = logits + (size_t)number * stride;
    if (t < 0) {
        if (scale) clear(x, 0, stride, lane, lanes);
        if (lane == 0) loss[number] = correct[number] = 0;
        return;
    }
    const Row<T> row = {x, hold ? shared : x, lane, lanes, classes / pack_width<T>()};
    const float own = to_float(x[t]);
    const RowSums sums = combined<wide>(sum_row<hold>(row, classes, own, t), scratch);
    if (lane == 0) {
        const float own_loss = sums.max - own + logf(sums.sum);
        loss[number] = own_loss;
        correct[number] = !sums.beaten && own_loss == own_loss;
    }
    if (!scale) return;
    write_row(row, classes, sums.max, *scale / sums.sum);
    clear(x, classes, stride, lane, lanes);
    if (wide)
        __syncthreads();
    else
        __syncwarp();
    if (lane == 0) x[t] = from_float<T>(*scale * own_gradient(own, sums.max, sums.sum));
}

template <typename T>
static void cross_entropy(const Run *run, float *loss, unsigned char *correct, T *logits,
                          const int *targets, const float *scale, int rows, int classes,
                          int stride) {
    const int wide_from = 1024;
    const size_t row_bytes = (size_t)classes * sizeof(T);
    if (rows <= 0) return;
    if (run->version == 1 || !packable(stride, pack_width<T>(), logits)) {
        LAUNCH(cross_entropy_plain<T>, rows, 256, 0, run->stream, loss, correct, logits, targets,
               scale, classes, stride);
    } else if (classes >= wide_from && scale && row_bytes <= DYNAMIC_MAX) {
        SHARED_LIMIT((cross_entropy_rows<T, true, true>), DYNAMIC_MAX);
        LAUNCH((cross_entropy_rows<T, true, true>), rows, WIDE, row_bytes, run->stream, loss,
               correct, logits, targets, scale, rows, classes, stride);
    } else if (classes >= wide_from) {
        LAUNCH((cross_entropy_rows<T, true, false>), rows, WIDE, 0, run->stream, loss, correct,
               logits, targets, scale, rows, classes, stride);
    } else {
        LAUNCH((cross_entropy_rows<T, false, false>), grid_blocks(rows, ROWS), 32 * ROWS, 0,
               run->stream, loss, correct, logits, targets, scale, rows, classes, stride);
    }
}

void cuda_cross_entropy(const Run *run, float *loss, unsigned char *correct, void *logits,
                        const int *targets, const float *scale, int rows, int classes, int stride) {
    WITH_VALUES(
        run, T,
        cross_entropy(run, loss, correct, (T *)logits, targets, scale, rows, classes, stride));
}

/* ---- sums of a micro-batch ----
 * One block is enough, because there is only one number for each target. */

enum { SUMMED = 1024 };
__global__ void __launch_bounds__(SUMMED)
    loss_sums(LossSums *sums, const float *loss, const unsigned char *correct, const int *targets,
              int rows, bool add) {
    SHARED(double, real_scratch, [32]);
    SHARED(int, whole_scratch, [32]);
    double sum = 0;
    int count = 0, right = 0;
    for (int i = (int)threadIdx.x; i < rows; i += SUMMED) {
        if (targets[i] < 0) continue;
        sum += (double)loss[i];
        right += correct[i];
        count++;
    }
    sum = block_sum(sum, real_scratch);
    count = block_sum(count, whole_scratch);
    right = block_sum(right, whole_scratch);
    if (threadIdx.x) return;
    const LossSums before = add ? *sums : LossSums{0, 0, 0};
    sums->loss_sum = before.loss_sum + sum;
    sums->count = before.count + (unsigned long long)count;
    sums->correct = before.correct + (unsigned long long)right;
}

void cuda_loss_sums(const Run *run, LossSums *sums, const float *loss, const unsigned char *correct,
                    const int *targets, int rows, bool add) {
    LAUNCH(loss_sums, 1, SUMMED, 0, run->stream, sums, loss, correct, targets, rows, add);
}
