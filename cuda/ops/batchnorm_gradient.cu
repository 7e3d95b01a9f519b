/* Gradients of batch normalisation, through the relu and to the residual input.
 *
 * dz is dy or, with relu, dy where the output y is positive and 0 elsewhere.  The input gradient
 * needs two sums over the batch first, so dy, x and y are read twice. */
#include "column_sums.cuh"

/* ---- sums: dz, and dz * xhat ---- */

template <typename T>
struct GradientTerm {
    static constexpr int sums = 2;
    const T *dy, *x, *y; /* y NULL: no relu */
    const float *mean;
    template <int V>
    struct Row {
        Pack<T, V> dy, x, y;
    };
    template <int V>
    DEVICE Row<V> load(size_t at) const {
        Row<V> row = {};
        row.dy = load_pack<V>(dy + at);
        row.x = load_pack<V>(x + at);
        if (y) row.y = load_pack<V>(y + at);
        return row;
    }
    template <int V>
    DEVICE void add(float (&sum)[2][V], const Row<V> &row, int column) const {
        float dz[V], value[V], out[V], center[V];
        unpack(dz, row.dy);
        unpack(value, row.x);
        unpack(out, row.y);
        load_floats(center, mean + column);
#pragma unroll
        for (int j = 0; j < V; j++) {
            if (y) dz[j] = out[j] <= 0 ? 0 : dz[j];
            sum[0][j] += dz[j];
            sum[1][j] = fmaf(dz[j], value[j] - center[j], sum[1][j]);
        }
    }
};

/* Stores the sums; the gradients of scale and shift are these sums too. */
struct StoreGradientSums {
    float *sums, *dg, *db; /* dg, db NULL: not wanted */
    const float *rstd;
    int c;
    bool add_dg, add_db;
    DEVICE void finish(int column, const double (&total)[2]) const {
        const float dz = (float)total[0], product = (float)(total[1] * (double)rstd[column]);
        sums[column] = dz;
        sums[c + column] = product;
        if (dg) put(dg + column, product, add_dg);
        if (db) put(db + column, dz, add_db);
    }
};

/* Leaves the sums in aux, and in or on top of dg and db where these are not NULL. */
static void gradient_sums(const Call *k, float *dg, float *db) {
    const DeviceIO &io = *k->io;
    const float *mean = io.aux, *rstd = io.aux + k->c;
    const StoreGradientSums result = {io.aux + 2 * k->c, dg,          db, rstd, k->c,
                                      io.add_dweight,    io.add_dbias};
    const void *y = k->node->relu ? io.y : NULL;
    WITH_VALUE_PACKS(
        k->run, T, V, packable(k->c, V, io.dy, io.x, y, mean),
        const GradientTerm<T> term = {(const T *)io.dy, (const T *)io.x, (const T *)y, mean};
        column_sums<V>(k->run, term, result, k->rows, k->c, k->c));
}

static __global__ void take_sums(float *dg, float *db, const float *sums, int c, bool add_dg,
                                 bool add_db) {
    const int j = (int)grid_thread();
    if (j >= c) return;
    if (db) put(db + j, sums[j], add_db);
    if (dg) put(dg + j, sums[c + j], add_dg);
}

/* ---- input gradient ----
 * dx = g rstd dz - (g rstd^2 sums[1] / n) (x - mean) - g rstd sums[0] / n, which needs three
 * constants and the mean of each channel. */

template <typename T>
struct Gradient {
    T *dx, *dskip;       /* NULL: not wanted */
    const T *dy, *x, *y; /* x NULL: not needed; y NULL: no relu */
    const T *g;
    const float *mean, *rstd, *sums;
    int n, c;
    bool add_dx, add_dskip;
};

struct Terms {
    float mean, scale, slope, shift;
};

template <typename T>
static DEVICE Terms gradient_terms(const Gradient<T> &a, int j) {
    Terms t = {};
    t.scale = to_float(a.g[j]) * a.rstd[j];
    if (!a.x) return t;
    t.mean = a.mean[j];
    t.slope = -t.scale * a.rstd[j] * a.sums[a.c + j] / (float)a.n;
    t.shift = -t.scale * a.sums[j] / (float)a.n;
    return t;
}

static DEVICE float input_gradient(float dz, float x, const Terms &t, bool batch) {
    return batch ? fmaf(dz, t.scale, fmaf(x - t.mean, t.slope, t.shift)) : dz * t.scale;
}

/* Version 1: a thread computes one element at a time. */
template <typename T>
static __global__ void gradient_plain(Gradient<T> a, size_t count) {
    for (size_t i = grid_thread(); i < count; i += grid_threads()) {
        const int j = (int)(i % a.c);
        const bool batch = a.x;
        float dz = to_float(a.dy[i]);
        if (a.y) dz = to_float(a.y[i]) <= 0 ? 0 : dz;
        if (a.dskip) put(a.dskip + i, dz, a.add_dskip);
        if (!a.dx) continue;
        const Terms t = gradient_terms(a, j);
        put(a.dx + i, input_gradient(dz, batch ? to_float(a.x[i]) : 0, t, batch), a.add_dx);
    }
}

/* What version 2 loads for one pack. */
template <typename T, int V>
struct Loaded {
    Pack<T, V> dy, x, y, dx, dskip;
};

template <typename T, int V>
static DEVICE void load_gradient(Loaded<T, V> *in, const Gradient<T> &a, size_t at) {
    in->dy = load_pack<V>(a.dy + at);
    if (a.x) in->x = load_pack<V>(a.x + at);
    if (a.y) in->y = load_pack<V>(a.y + at);
    if (a.dx && a.add_dx) in->dx = load_pack<V>(a.dx + at);
    if (a.dskip && a.add_dskip) in->dskip = load_pack<V>(a.dskip + at);
}

template <typename T, int V>
static DEVICE void store_gradient(const Loaded<T, V> &in, const Gradient<T> &a, const Terms (&t)[V],
                                  size_t at) {
    float dz[V], x[V] = {}, other[V] = {};
    unpack(dz, in.dy);
    if (a.y) {
        unpack(other, in.y);
#pragma unroll
        for (int j = 0; j < V; j++) dz[j] = other[j] <= 0 ? 0 : dz[j];
    }
    if (a.dskip) {
        if (a.add_dskip) unpack(other, in.dskip);
#pragma unroll
        for (int j = 0; j < V; j++) other[j] = a.add_dskip ? __fadd_rn(other[j], dz[j]) : dz[j];
        store_floats(a.dskip + at, other);
    }
    if (!a.dx) return;
    if (a.x) unpack(x, in.x);
    if (a.add_dx) unpack(other, in.dx);
#pragma unroll
    for (int j = 0; j < V; j++) {
        const float d = input_gradient(dz[j], x[j], t[j], a.x);
        x[j] = a.add_dx ? __fadd_rn(other[j], d) : d;
    }
    store_floats(a.dx + at, x);
}

/* Version 2: a thread stays in the columns of one pack, whose four constants each it keeps in
 * registers, and goes down the rows.  It loads two rows of up to five packs before it uses the
 * first. */
template <typename T, int V>
static __global__ void __launch_bounds__(COLUMN_THREADS)
    gradient_packed(Gradient<T> a, Columns cut) {
    const ColumnPlace p = column_place<V>(cut);
    if (p.row == p.end) return;
    Terms t[V];
#pragma unroll
    for (int j = 0; j < V; j++) t[j] = gradient_terms(a, p.column + j);
    for (int row = p.row; row < p.end; row += 2 * cut.rows) {
        const size_t at = (size_t)row * cut.c + p.column;
        const size_t next = at + (size_t)cut.rows * cut.c;
        const bool two = row + cut.rows < p.end;
        Loaded<T, V> one = {}, other = {};
        load_gradient(&one, a, at);
        if (two) load_gradient(&other, a, next);
        store_gradient(one, a, t, at);
        if (two) store_gradient(other, a, t, next);
    }
}

template <typename T>
static void gradient(const Call *k) {
    const DeviceIO &io = *k->io;
    const float *mean = io.aux, *rstd = mean + k->c, *sums = rstd + k->c;
    const void *x = io.use_running || !io.dx ? NULL : io.x, *y = k->node->relu ? io.y : NULL;
    const Gradient<T> a = {(T *)io.dx,   (T *)io.dskip, (const T *)io.dy,
                           (const T *)x, (const T *)y,  (const T *)io.weight,
                           mean,         rstd,          sums,
                           k->rows,      k->c,          io.add_dx,
                           io.add_dskip};
    if (k->run->version == 1) {
        LAUNCH((gradient_plain<T>), grid_blocks(k->count, COLUMN_THREADS), COLUMN_THREADS, 0,
               k->run->stream, a, k->count);
        return;
    }
    WITH_PACKS(V, pack_width<T>(), packable(k->c, V, a.dx, a.dskip, a.dy, a.x, a.y),
               const Columns cut = columns_cut(k->rows, k->c, V, ELEMENT_BLOCKS);
               LAUNCH((gradient_packed<T, V>), columns_grid(cut), COLUMN_THREADS, 0, k->run->stream,
                      a, cut));
}

void cuda_batchnorm_input_gradient(const Call *k) {
    const DeviceIO &io = *k->io;
    float *dg = io.dx ? io.dweight : NULL, *db = io.dx ? io.dbias : NULL;
    if (!io.use_running || dg || db) gradient_sums(k, dg, db);
    WITH_VALUES(k->run, T, gradient<T>(k));
}

/* Where the input gradient has run, its sums are the gradients; they are float in any precision. */
void cuda_batchnorm_weight_gradient(const Call *k) {
    const DeviceIO &io = *k->io;
    if (!io.sums_ready) {
        gradient_sums(k, io.dweight, io.dbias);
        return;
    }
    LAUNCH(take_sums, grid_blocks(k->c, COLUMN_THREADS), COLUMN_THREADS, 0, k->run->stream,
           io.dweight, io.dbias, io.aux + 2 * k->c, k->c, io.add_dweight, io.add_dbias);
}
