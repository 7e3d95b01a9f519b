/* Block coordinate descent in one file:  cc -O2 ref/lesson/bcd_lesson.c -lm && ./a.out
 * README.md explains it, chapter by chapter.  A small network learns on which of eight arms of a
 * pinwheel a point is.  Its values have a row for each of N points; 0 is x, and 5 the logits:
 *
 *     0 --linear--> 1 --gelu--> 2 --linear--> 3 --gelu--> 4 --linear--> 5
 *     |         block 0         |         block 1         |   block 2   | */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { BLOCKS = 3, VALUES = 6, N = 256, WIDTH = 8, PHASE = 50 };
static const int width[VALUES] = {2, WIDTH, WIDTH, WIDTH, WIDTH, WIDTH};

/* Returns number i of a sequence even in [0, 1) (Weyl 1916): the fraction of i sqrt(prime). */
static double uniform(int prime, int i) { return fmod(i * sqrt(prime), 1); }

/* y[n][o] = sum_c x[n][c] w[o][c] + b[o]; b follows w */
static void linear_forward(double *y, const double *x, const double *w, int c, int o) {
    for (int n = 0; n < N; n++)
        for (int j = 0; j < o; j++) {
            y[n * o + j] = w[o * c + j];
            for (int k = 0; k < c; k++) y[n * o + j] += x[n * c + k] * w[j * c + k];
        }
}

/* dx[n][c] = sum_o dy[n][o] w[o][c]: reads w, but not x */
static void linear_input_gradient(double *dx, const double *dy, const double *w, int c, int o) {
    for (int n = 0; n < N; n++)
        for (int k = 0; k < c; k++) {
            dx[n * c + k] = 0;
            for (int j = 0; j < o; j++) dx[n * c + k] += dy[n * o + j] * w[j * c + k];
        }
}

/* dw[o][c] = sum_n dy[n][o] x[n][c],  db[o] = sum_n dy[n][o]: reads x, but not w */
static void linear_weight_gradient(double *dw, const double *dy, const double *x, int c, int o) {
    for (int i = 0; i < o * c + o; i++) dw[i] = 0;
    for (int n = 0; n < N; n++)
        for (int j = 0; j < o; j++) {
            for (int k = 0; k < c; k++) dw[j * c + k] += dy[n * o + j] * x[n * c + k];
            dw[o * c + j] += dy[n * o + j];
        }
}

/* y = x/2 (1 + tanh u),  u = s (x + a x^3),  s = sqrt(2 / pi) */
static const double s = 0.7978845608028654, a = 0.044715;
static void gelu_forward(double *y, const double *x, int c) {
    for (int i = 0; i < N * c; i++)
        y[i] = x[i] / 2 * (1 + tanh(s * (x[i] + a * x[i] * x[i] * x[i])));
}

/* dx = dy (1/2 (1 + tanh u) + x/2 (1 - tanh^2 u) s (1 + 3 a x^2)): reads x */
static void gelu_input_gradient(double *dx, const double *dy, const double *x, int c) {
    for (int i = 0; i < N * c; i++) {
        const double t = tanh(s * (x[i] + a * x[i] * x[i] * x[i]));
        dx[i] = dy[i] * ((1 + t) / 2 + x[i] / 2 * (1 - t * t) * s * (1 + 3 * a * x[i] * x[i]));
    }
}

/* Returns the mean of -log p[target], p = softmax(x), and overwrites x with its gradient. */
static double cross_entropy(double *x, const int *target) {
    double loss = 0;
    for (int n = 0; n < N; n++, x += WIDTH) {
        double max = x[0], sum = 0;
        for (int j = 1; j < WIDTH; j++) max = fmax(max, x[j]);
        for (int j = 0; j < WIDTH; j++) sum += exp(x[j] - max);
        loss += (max + log(sum) - x[target[n]]) / N;
        for (int j = 0; j < WIDTH; j++) x[j] = (exp(x[j] - max) / sum - (j == target[n])) / N;
    }
    return loss;
}

enum { WEIGHT, GRADIENT, ADAM_M, ADAM_V, ACTIVATION, ROLES };
typedef struct Training {
    struct {
        int step, submodel, updates[BLOCKS];
    } at;                              /* how far it is; updates: Adam's t of each block */
    int submodels, lowest;             /* M; the lowest active block */
    bool cache, prefix_ready, augment; /* ready: its last value is computed */
    double *param[ACTIVATION][BLOCKS]; /* by role; NULL: not allocated */
    double *value[VALUES];             /* stored ones; the others take turns in the scratch */
    double x[N * 2], scratch[2][N * WIDTH], gradient_scratch[2][N * WIDTH];
    int target[N];
    size_t bytes[ROLES];
} Training;

static int params(int b) { return width[2 * b + 1] * (width[2 * b] + 1); }

/* Step 4 of Algorithm 1: the cyclic order. */
static int select_submodel(Training *t) { return t->at.step / PHASE % t->submodels; }

/* Submodel i of M has the blocks b with b M / BLOCKS = i.  M = 1 is the full update. */
static bool is_active(Training *t, int b) { return b * t->submodels / BLOCKS == t->at.submodel; }

/* The rule that makes BCD cheap.  A value needs a gradient if an active weight is below it.  It is
 * stored if the backward pass reads it: a GELU reads its input (odd) for the gradient of that, a
 * linear layer its input (even) for the gradient of its weights. */
static bool needs_grad(Training *t, int v) { return v > 2 * t->lowest; }
static bool is_stored(Training *t, int v) { return v % 2 ? needs_grad(t, v) : is_active(t, v / 2); }

static double *value(Training *t, int v) { return t->value[v] ? t->value[v] : t->scratch[v % 2]; }

/* Allocates zeros where an array is wanted and missing, and frees it where it is not wanted. */
static void allocate(Training *t, int role, double **p, int count, bool wanted) {
    const size_t size = (size_t)count * sizeof **p;
    if (wanted == (*p != NULL)) return;
    t->bytes[role] += wanted ? size : -size;
    free(*p);
    *p = wanted ? calloc(1, size) : NULL;
    if (wanted && !*p) exit(1);
}

/* Steps 5 to 7: frees what is not active, then allocates what is missing; zeros are a new Adam. */
static void activate(Training *t) {
    for (t->lowest = 0; !is_active(t, t->lowest);) t->lowest++;
    for (int on = 0; on < 2; on++) {
        for (int b = 0; b < BLOCKS; b++)
            for (int role = GRADIENT; role <= ADAM_V; role++)
                if (is_active(t, b) == on) allocate(t, role, &t->param[role][b], params(b), on);
        for (int v = 1; v < VALUES - 1; v++)
            if (is_stored(t, v) == on) allocate(t, ACTIVATION, &t->value[v], N * width[v], on);
    }
    for (int b = 0; b < BLOCKS; b++) t->at.updates[b] *= is_active(t, b); /* Adam: t = 0 */
    t->prefix_ready = false;
}

/* Makes x and target; an augmentation moves the points anew in each update. */
static void fetch(Training *t) {
    for (int n = 0; n < N; n++) {
        const double turn = uniform(2, n), radius = 2 * sqrt(uniform(3, n));
        const double jitter = t->augment ? 0.1 * (uniform(5, t->at.step * N + n) - 0.5) : 0;
        t->x[2 * n] = (radius + jitter) * cos(2 * acos(-1) * turn);
        t->x[2 * n + 1] = (radius + jitter) * sin(2 * acos(-1) * turn);
        t->target[n] = (int)(WIDTH * turn + radius) % WIDTH;
    }
}

/* Computes the values above value `from`, and returns the loss. */
static double forward(Training *t, int from) {
    for (int v = from; v < VALUES - 1; v++) {
        double *y = value(t, v + 1), *x = value(t, v), *w = t->param[WEIGHT][v / 2];
        if (v % 2 == 0) linear_forward(y, x, w, width[v], width[v + 1]);
        if (v % 2 == 1) gelu_forward(y, x, width[v]);
    }
    return cross_entropy(value(t, VALUES - 1), t->target);
}

/* Goes down from the loss to the lowest active block, and not further. */
static void backward(Training *t) {
    double *dy = value(t, VALUES - 1); /* cross_entropy left it there */
    for (int v = VALUES - 2; v >= 2 * t->lowest; v--) {
        double *dx = t->gradient_scratch[v % 2], *x = value(t, v), *w = t->param[WEIGHT][v / 2];
        if (v % 2 == 0 && is_active(t, v / 2))
            linear_weight_gradient(t->param[GRADIENT][v / 2], dy, x, width[v], width[v + 1]);
        if (v % 2 == 0 && needs_grad(t, v))
            linear_input_gradient(dx, dy, w, width[v], width[v + 1]);
        if (v % 2 == 1) gelu_input_gradient(dx, dy, x, width[v]);
        dy = dx;
    }
}

/* Adam (Kingma & Ba 2015, Algorithm 1), on the active blocks. */
static void update(Training *t) {
    const double lr = 0.01, beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
    for (int b = 0; b < BLOCKS; b++) {
        if (!is_active(t, b)) continue;
        double *w = t->param[WEIGHT][b], *m = t->param[ADAM_M][b], *v = t->param[ADAM_V][b];
        const double *g = t->param[GRADIENT][b], k = ++t->at.updates[b];
        for (int i = 0; i < params(b); i++) {
            m[i] = beta1 * m[i] + (1 - beta1) * g[i];
            v[i] = beta2 * v[i] + (1 - beta2) * g[i] * g[i];
            w[i] -= lr * m[i] / (1 - pow(beta1, k)) / (sqrt(v[i] / (1 - pow(beta2, k))) + eps);
        }
    }
}

/* Algorithm 1, whose steps the numbers are.  Returns the loss before the last update. */
static double train(Training *t, int steps) {
    double loss = 0;
    while (t->at.step < steps) {                 /* 3, 10 */
        if (t->at.step % PHASE == 0) {           /* 9: k is step / PHASE */
            t->at.submodel = select_submodel(t); /* 4 */
            activate(t);                         /* 5, 6, 7 */
        }
        fetch(t); /* 8 */
        loss = forward(t, t->cache && t->prefix_ready ? 2 * t->lowest : 0);
        t->prefix_ready = true;
        backward(t);
        update(t);
        t->at.step++;
    }
    return loss;
}

static Training *start(int submodels) {
    static Training pool[32], *next = pool;
    if (submodels < 1 || submodels > BLOCKS) {
        fprintf(stderr, "%d submodels of %d blocks\n", submodels, BLOCKS);
        exit(1);
    }
    if (next == pool + 32) exit(1); /* as without memory */
    Training *t = next++;
    t->submodels = submodels;
    t->value[0] = t->x;
    for (int b = 0; b < BLOCKS; b++) {
        allocate(t, WEIGHT, &t->param[WEIGHT][b], params(b), true);
        for (int i = 0; i < width[2 * b] * width[2 * b + 1]; i++) /* LeCun et al. 1998 */
            t->param[WEIGHT][b][i] = (2 * uniform(7, 100 * b + i) - 1) * sqrt(3.0 / width[2 * b]);
    }
    return t;
}

/* Starts a training where another one is.  This is what a checkpoint has to hold. */
static Training *resume(const Training *from) {
    Training *t = start(from->submodels);
    t->at = from->at;
    activate(t);
    for (int b = 0; b < BLOCKS; b++)
        for (int role = WEIGHT; role <= ADAM_V; role++)
            for (int i = 0; role != GRADIENT && t->param[role][b] && i < params(b); i++)
                t->param[role][b][i] = from->param[role][b][i];
    return t;
}

/* Compares gradient[count], of the mean loss, with central differences in p[count], which only
 * values above value `from` depend on.  Returns N times the largest error: that of the sum. */
static double error(Training *t, int from, double *p, const double *gradient, int count, double h) {
    double largest = 0;
    forward(t, 0);
    backward(t);
    for (int i = 0; i < count; i++) {
        const double at = p[i];
        p[i] = at + h;
        const double above = forward(t, from);
        p[i] = at - h;
        const double below = forward(t, from);
        p[i] = at;
        largest = fmax(largest, N * fabs((above - below) / (2 * h) - gradient[i]));
    }
    return largest;
}

static void losses(int submodels) {
    Training *t = start(submodels);
    for (int steps = 100; steps <= 800; steps *= 2)
        printf("   loss of update %3d: %.4f\n", steps, train(t, steps));
}

static void chapters_2_to_4(void) {
    static const char *const name[] = {"full", "phase 1", "phase 2", "phase 3"};
    Training *t[4]; /* the full update, and three submodels in each of their phases */
    puts("\n2. The full update");
    losses(1);
    puts("\n3. Algorithm 1 with M = 3.  S: stored; G: a gradient exists");
    puts("     value 1    2    3    4    5   weights 0    1    2");
    for (int m = 0; m < 4; m++) {
        t[m] = start(m ? 3 : 1);
        train(t[m], m ? (m - 1) * PHASE + 1 : 1);
        printf("   %-8s", name[m]);
        for (int v = 1; v < VALUES; v++)
            printf(" %c%c  ", t[m]->value[v] ? 'S' : '.', needs_grad(t[m], v) ? 'G' : '.');
        for (int b = 0; b < BLOCKS; b++) printf("%5c", t[m]->param[GRADIENT][b] ? 'G' : '.');
        puts("");
    }
    losses(3);
    puts("\n4. Bytes:  weights gradients   Adam    sum   W (1 + 3/M)   activations");
    for (int m = 0; m < 4; m++) {
        const size_t *bytes = t[m]->bytes, adam = bytes[ADAM_M] + bytes[ADAM_V];
        printf("   %-8s%7zu%10zu%7zu%7zu%14zu%14zu\n", name[m], bytes[WEIGHT], bytes[GRADIENT],
               adam, bytes[WEIGHT] + bytes[GRADIENT] + adam,
               bytes[WEIGHT] + 3 * bytes[WEIGHT] / (size_t)t[m]->submodels, bytes[ACTIVATION]);
    }
}

static void chapter_5(void) {
    const char *name[] = {"plain", "cached", "resumed", "augmented", "augmented, cached"};
    double loss[5];
    puts("\n5. The cached prefix, and a resume: the loss of update 400");
    for (int i = 0; i < 5; i++) {
        Training *t = start(3);
        t->cache = i == 1 || i == 4;
        t->augment = i >= 3;
        if (i == 2) train(t, 333);
        loss[i] = train(i == 2 ? resume(t) : t, 400);
        printf("   %-18s%.6f%s\n", name[i], loss[i],
               i > 0 && loss[i] == loss[0] ? ", the same bits" : "");
    }
}

/* Returns the error per cycle of exact BCD on a quadratic of M variables, each with curvature 1,
 * and c with any other.  With step < 1 a variable goes only that part of the way to its minimum.
 * The errors turn as they shrink.  So the largest one of the last 49 cycles before `cycles` is
 * compared with that before twice as many, which is as many cycles later. */
static double error_per_cycle(int M, double c, double step, int cycles) {
    double x[32], largest[2] = {0, 0};
    for (int i = 0; i < M; i++) x[i] = 1;
    for (int k = 0; k < 2 * cycles * M; k++) {
        const int i = k % M, cycle = k / M, end = cycle / cycles;
        double gradient = (1 - c) * x[i];
        for (int j = 0; j < M; j++) gradient += c * x[j];
        x[i] -= step * gradient;
        if (cycle % cycles > cycles - 50) largest[end] = fmax(largest[end], fabs(x[i]));
    }
    return pow(largest[1] / largest[0], 1.0 / cycles);
}

/* M layers of one weight, y = w_1 ... w_M x, learn y = (1 + d) x with weight decay d.  The loss is
 * 1/2 (w_1 ... w_M - 1 - d)^2 + 1/2 d sum w_i^2.  Both return the updates until all w_i are 1
 * within 1e-8.  This one does exact ones, of one layer after another. */
static int chain_bcd(int M, double d) {
    double w[32], product = 1, largest = 1;
    int updates = 0;
    for (int i = 0; i < M; i++) product *= w[i] = 1 + 0.1 * i / M;
    for (; largest > 1e-8; updates += M) {
        largest = 0;
        for (int i = 0; i < M; i++) {
            const double others = product / w[i];
            largest = fmax(largest, fabs(w[i] - 1));
            w[i] = (1 + d) * others / (others * others + d);
            product = others * w[i];
        }
    }
    return updates;
}

/* This one does gradient steps, of all layers together. */
static int chain_full(int M, double d, double step) {
    double w[32], largest = 1;
    int updates = 0;
    for (int i = 0; i < M; i++) w[i] = 1 + 0.1 * i / M;
    for (; largest > 1e-8; updates++) {
        double product = 1;
        largest = 0;
        for (int i = 0; i < M; i++) product *= w[i];
        for (int i = 0; i < M; i++) {
            largest = fmax(largest, fabs(w[i] - 1));
            w[i] -= step * ((product - 1 - d) * product / w[i] + d * w[i]);
        }
    }
    return updates;
}

int main(void) {
    Training *t = start(1);
    train(t, 1);
    puts("1. Gradients: the error of central differences");
    puts("       h   linear, weights   linear, input   GELU, input");
    for (double h = 0.1; h > 5e-4; h /= 10)
        printf("%8g%18.1e%16.1e%14.1e\n", h,
               error(t, 2, t->param[WEIGHT][1], t->param[GRADIENT][1], params(1), h),
               error(t, 2, t->value[2], t->gradient_scratch[0], N * WIDTH, h),
               error(t, 1, t->value[1], t->gradient_scratch[1], N * WIDTH, h));
    chapters_2_to_4();
    chapter_5();
    puts("\n6. Exact BCD on a convex quadratic of three variables: the error per cycle");
    puts("   coupling c    c^(3/2)   measured   half steps");
    for (double c = 0.5; c < 0.99; c = 1 - (1 - c) / 5)
        printf("%13g%11.3f%11.3f%13.3f\n", c, pow(c, 1.5), error_per_cycle(3, c, 1, 300),
               error_per_cycle(3, c, 0.5, 300));
    puts("\n7. A chain of M layers of one weight: the updates that it takes");
    puts("    M   coupling c   error per cycle     BCD   full update");
    for (int M = 2; M <= 16; M *= 2) {
        const double d = 0.01, c = (1 - d) / (1 + d), step = 2 / (M * (1 - d) + 4 * d);
        printf("%5d%13.4f%18.4f%8d%14d\n", M, c, error_per_cycle(M, c, 1, 3000), chain_bcd(M, d),
               chain_full(M, d, step));
    }
    return 0;
}
