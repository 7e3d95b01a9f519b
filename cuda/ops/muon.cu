/* Muon's update of matrices: ref/optimizers/muon.c has the equations.  The products of
 * Newton-Schulz are those of matmul.h; the kernels here are what comes before, between and after
 * them.  A part of a matrix is updated at a time, in the workspace x, the next x, and two products
 * of side x side. */
#include "../matmul.h"
#include "update.cuh"

enum { MUON_BLOCK = 256 };

/* One part of a matrix, in device memory. */
typedef struct {
    void *p;
    float *master, *m;
    const float *g;
    int rows, columns, side; /* the shorter of the two */
    size_t count;
    int factors; /* index in plan.factors */
} MuonPart;

/* Thread blocks take UPDATE_CHUNK numbers each. */
static DEVICE size_t chunk_begin(void) { return (size_t)blockIdx.x * UPDATE_CHUNK + threadIdx.x; }
static DEVICE size_t chunk_end(size_t count) {
    const size_t end = ((size_t)blockIdx.x + 1) * UPDATE_CHUNK;
    return end < count ? end : count;
}

/* m and x = u, and the sum of squares of each chunk of x.  If the step is refused m stays, and x is
 * 0, so that the products have numbers. */
__global__ void __launch_bounds__(MUON_BLOCK)
    muon_momentum(UpdatePlan plan, MuonPart part, float *x, const LossSums *sums) {
    SHARED(double, scratch, [32]);
    const bool refused = is_refused(plan, sums);
    const OptimizerFactors f = plan.factors[part.factors];
    const float scale = plan.numbers->scale;
    double sum = 0;
    for (size_t i = chunk_begin(); i < chunk_end(part.count); i += MUON_BLOCK) {
        float u = 0;
        if (!refused) {
            const float step = f.one_minus_momentum * scale * part.g[i];
            const float m = f.momentum * part.m[i] + step;
            part.m[i] = m;
            u = f.momentum * m + step;
        }
        x[i] = u;
        sum += (double)u * (double)u;
    }
    sum = block_sum(sum, scratch);
    if (threadIdx.x == 0) plan.partial[blockIdx.x] = sum;
}

/* Divides x by its norm, which every thread block sums in the same order. */
__global__ void __launch_bounds__(MUON_BLOCK)
    muon_normalise(const double *partial, float *x, size_t count, double min_norm) {
    SHARED(double, scratch, [32]);
    double sum = 0;
    for (unsigned i = threadIdx.x; i < gridDim.x; i += MUON_BLOCK) sum += partial[i];
    sum = block_sum(sum, scratch);
    const float factor = (float)(1 / fmax(sqrt(sum), min_norm));
    for (size_t i = chunk_begin(); i < chunk_end(count); i += MUON_BLOCK) x[i] *= factor;
}

/* square = a + b gram + c square */
__global__ void __launch_bounds__(MUON_BLOCK)
    muon_combine(float *square, const float *gram, int side, float a, float b, float c) {
    const size_t count = (size_t)side * side;
    for (size_t i = chunk_begin(); i < chunk_end(count); i += MUON_BLOCK) {
        const bool diagonal = i % ((size_t)side + 1) == 0;
        square[i] = (diagonal ? a : 0) + b * gram[i] + c * square[i];
    }
}

template <typename T>
__global__ void __launch_bounds__(MUON_BLOCK)
    muon_move(UpdatePlan plan, MuonPart part, const float *x, double rate, const LossSums *sums) {
    if (is_refused(plan, sums)) return;
    const OptimizerFactors f = plan.factors[part.factors];
    const float step = (float)((double)f.lr * rate);
    for (size_t i = chunk_begin(); i < chunk_end(part.count); i += MUON_BLOCK) {
        const float p[1] = {part.master[i] - (f.decay_step * part.master[i] + step * x[i])};
        part.master[i] = p[0];
        if (sizeof(T) != sizeof(float)) store_floats((T *)part.p + i, p);
    }
}

/* ---- the products ---- */

/* y = (a + b x x' + c (x x')^2) x or, if x is higher than wide, the same with x' x on its right
 * side. */
static void newton_schulz(const Run *run, const MuonPart *part, float *y, const float *x,
                          float *gram, float *square) {
    const MuonNumbers numbers = muon_numbers();
    const int n = part->side, width = part->columns;
    const bool wide = part->rows == n;
    Product product = {};
    product.c = gram;
    product.a = product.b = x;
    product.ldc = n;
    product.lda = product.ldb = width;
    product.transpose_a = !wide;
    product.transpose_b = wide;
    product.m = product.n = n;
    product.k = wide ? width : part->rows;
    cuda_matmul(run, &product);

    product = {};
    product.c = square;
    product.a = product.b = gram;
    product.ldc = product.lda = product.ldb = n;
    product.m = product.n = product.k = n;
    cuda_matmul(run, &product);
    LAUNCH(muon_combine, (unsigned)update_chunks((size_t)n * n), MUON_BLOCK, 0, run->stream, square,
           gram, n, numbers.a, numbers.b, numbers.c);

    product = {};
    product.c = y;
    product.a = wide ? square : x;
    product.b = wide ? x : square;
    product.ldc = width;
    product.lda = wide ? n : width;
    product.ldb = wide ? width : n;
    product.m = part->rows;
    product.n = width;
    product.k = n;
    cuda_matmul(run, &product);
}

static void update_part(const Run *run, const UpdatePlan *plan, const MuonPart *part,
                        const LossSums *sums, float *workspace) {
    const unsigned chunks = (unsigned)update_chunks(part->count);
    const size_t square = (size_t)part->side * part->side;
    float *x = workspace, *y = x + part->count, *gram = y + part->count;
    Run products = *run;
    if (run->precision == PRECISION_BF16) products.precision = PRECISION_TF32;
    LAUNCH(muon_momentum, chunks, MUON_BLOCK, 0, run->stream, *plan, *part, x, sums);
    LAUNCH(muon_normalise, chunks, MUON_BLOCK, 0, run->stream, plan->partial, x, part->count,
           muon_numbers().min_norm);
    for (int step = 0; step < MUON_STEPS; step++) {
        newton_schulz(&products, part, y, x, gram, gram + square);
        float *next = y;
        y = x;
        x = next;
    }
    const double rate = muon_rate(1, part->rows, part->columns);
    WITH_VALUES(
        run, T,
        LAUNCH(muon_move<T>, chunks, MUON_BLOCK, 0, run->stream, *plan, *part, x, rate, sums));
}

void update_muon(const Run *run, const Updater *updater, const LossSums *sums, float *workspace) {
    for (const UpdateTensor *t = updater->matrix; t < updater->matrix + updater->matrices; t++) {
        size_t first = 0;
        for (int i = 0; i < t->parts; i++) {
            const int rows = t->part_rows[i];
            MuonPart part = {};
            part.p = run->precision == PRECISION_BF16 ? (void *)((__nv_bfloat16 *)t->p + first)
                                                      : (void *)((float *)t->p + first);
            part.master = t->master + first;
            part.m = t->state[0] + first;
            part.g = t->g + first;
            part.rows = rows;
            part.columns = t->columns;
            part.side = rows < t->columns ? rows : t->columns;
            part.count = (size_t)rows * t->columns;
            part.factors = 2 * t->block + t->decay;
            update_part(run, &updater->plan, &part, sums, workspace);
            first += part.count;
        }
    }
}
