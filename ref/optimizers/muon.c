/* Muon (Jordan et al. 2024, "Muon: An optimizer for hidden layers in neural networks"), with the
 * scale of Liu et al. 2025, "Muon is scalable for LLM training":
 *
 *     m = momentum m + (1 - momentum) g
 *     u = momentum m + (1 - momentum) g                                Nesterov's momentum
 *     x = u / |u|;  five times: x = (a + b x x' + c (x x')^2) x        Newton-Schulz
 *     p = p - lr weight_decay p - lr 0.2 sqrt(max(rows, columns)) x
 *
 * The steps of Newton-Schulz bring the singular values of u near 1: between about 0.7 and 1.2, save
 * the smallest.  An update of AdamW has a root mean square of about 0.2, and the scale gives this
 * one the same, so that one rate and one weight decay serve both.
 *
 * Each part of a packed matrix, as q, k and v, is a matrix of its own, and a convolution is a
 * matrix of [out][kernel kernel in].  AdamW updates the rest: vectors, embeddings, and the layer
 * that makes the outputs.  So a matrix has one vector of state, and the rest has two.  Jordan et
 * al. leave the input layer to AdamW as well; that of a language model is its embedding, but where
 * the inputs are numbers, as in the first convolution of a ResNet or the first layer of a
 * perceptron, it is a matrix like the others here.
 *
 * PyTorch's torch.optim.Muon with adjust_lr_fn="match_rms_adamw" is the same, except that it rounds
 * the products of Newton-Schulz to bf16.  Here all is in `real`. */
#include <math.h>

#include "../fast/matmul.h"
#include "optimizers.h"

/* The coefficients and steps of Jordan et al.  A norm below the least one counts as that, so that
 * 0 / 0 is 0. */
MuonNumbers muon_numbers(void) {
    return (MuonNumbers){
        .a = (real)3.4445, .b = (real)-4.7750, .c = (real)2.0315, .min_norm = 1e-7};
}

double muon_rate(double lr, int rows, int columns) {
    return lr * 0.2 * sqrt(rows > columns ? rows : columns);
}

/* One part of a parameter. */
typedef struct {
    int rows, columns, side; /* the shorter of the two */
    size_t count;
} Matrix;

static Matrix matrix_of(const Param *param, int part) {
    const int rows = param->part_rows[part], columns = (int)(param->count / (size_t)param->dim[0]);
    return (Matrix){.rows = rows,
                    .columns = columns,
                    .side = rows < columns ? rows : columns,
                    .count = (size_t)rows * (size_t)columns};
}

/* Newton-Schulz needs x, the next x, and two products of side x side. */
static size_t muon_workspace(const Param *param) {
    size_t max = 0;
    for (int part = 0; part < param->parts; part++) {
        const Matrix matrix = matrix_of(param, part);
        const size_t need = 2 * (matrix.count + (size_t)matrix.side * (size_t)matrix.side);
        if (need > max) max = need;
    }
    return max;
}

static double muon_flops(const Param *param) {
    double flops = 0;
    for (int part = 0; part < param->parts; part++) {
        const Matrix matrix = matrix_of(param, part);
        const double side = matrix.side;
        flops += MUON_STEPS * 2 * side * side * (2 * (double)(matrix.rows + matrix.columns) - side);
    }
    return flops;
}

/* square = a + b gram + c square; both arrays have side x side numbers. */
static void combine(real *restrict square, const real *restrict gram, int side) {
    const MuonNumbers k = muon_numbers();
#pragma omp parallel for if ((size_t)side * (size_t)side > WORTH_THREADS)
    for (int row = 0; row < side; row++)
        for (int column = 0; column < side; column++) {
            const size_t i = (size_t)row * (size_t)side + (size_t)column;
            square[i] = (row == column ? k.a : 0) + k.b * gram[i] + k.c * square[i];
        }
}

/* y = (a + b x x' + c (x x')^2) x or, if x is higher than wide, the same with x' x on its right
 * side: the shorter side makes the smaller products. */
static void newton_schulz(const Matrix *matrix, real *y, const real *x, real *gram, real *square) {
    const int n = matrix->side, width = matrix->columns;
    const bool wide = matrix->rows == n;
    matmul(gram, n, x, width, !wide, x, width, wide, NULL, n, n, wide ? width : matrix->rows,
           false);
    matmul(square, n, gram, n, false, gram, n, false, NULL, n, n, n, false);
    combine(square, gram, n);
    if (wide)
        matmul(y, width, square, n, false, x, width, false, NULL, n, width, n, false);
    else
        matmul(y, width, x, width, false, square, n, false, NULL, matrix->rows, n, n, false);
}

/* m and x = u. */
static void add_momentum(size_t count, real *restrict x, real *restrict m, const real *restrict g,
                         real g_scale, OptimizerFactors f) {
#pragma omp parallel for if (count > WORTH_THREADS)
    for (size_t i = 0; i < count; i++) {
        const real step = f.one_minus_momentum * g_scale * g[i];
        m[i] = f.momentum * m[i] + step;
        x[i] = f.momentum * m[i] + step;
    }
}

/* Divides x by its norm. */
static void normalise(size_t count, real *x) {
    const double norm = sqrt(optimizer_square_sum(x, count));
    const real factor = (real)(1 / fmax(norm, muon_numbers().min_norm));
#pragma omp parallel for if (count > WORTH_THREADS)
    for (size_t i = 0; i < count; i++) x[i] *= factor;
}

static void move(const Matrix *matrix, real *restrict p, const real *restrict x,
                 OptimizerFactors f) {
    const real step = (real)muon_rate((double)f.lr, matrix->rows, matrix->columns);
#pragma omp parallel for if (matrix->count > WORTH_THREADS)
    for (size_t i = 0; i < matrix->count; i++) p[i] -= f.decay_step * p[i] + step * x[i];
}

static void muon_update(const Param *param, real *p, real *const state[STATE_VECTORS],
                        const real *g, real g_scale, OptimizerFactors f, real *workspace) {
    real *m = state[0];
    for (int part = 0; part < param->parts; part++) {
        const Matrix matrix = matrix_of(param, part);
        real *x = workspace, *y = x + matrix.count, *gram = y + matrix.count;
        add_momentum(matrix.count, x, m, g, g_scale, f);
        normalise(matrix.count, x);
        for (int step = 0; step < MUON_STEPS; step++) {
            newton_schulz(&matrix, y, x, gram, gram + (size_t)matrix.side * (size_t)matrix.side);
            real *next = y;
            y = x;
            x = next;
        }
        move(&matrix, p, x, f);
        p += matrix.count, m += matrix.count, g += matrix.count;
    }
}

/* Momentum and weight decay are PyTorch's; those of AdamW are what both papers used. */
const Optimizer optimizer_muon = {
    .defaults = {.lr = 1e-4,
                 .momentum = 0.95,
                 .beta1 = 0.9,
                 .beta2 = 0.95,
                 .eps = 1e-8,
                 .weight_decay = 0.1},
    .lr = {[USE_LANGUAGE] = 3e-4, [USE_TUNING] = 1e-5},
    .state_vectors = 1,
    .decoupled_decay = true,
    .others = &optimizer_adamw,
    .workspace = muon_workspace,
    .flops = muon_flops,
    .update = muon_update,
};
