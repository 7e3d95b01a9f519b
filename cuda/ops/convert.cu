/* Conversion of floats to values, and gathering and scattering of rows. */
#include "common.cuh"

enum { THREADS = 256 };

/* ---- rounding ---- */

/* Version 1 is V = 1; version 2 moves 128 bits of values at a time. */
template <typename T, int V>
__global__ void convert(T *y, const float *x, size_t packs) {
    for (size_t i = grid_thread(); i < packs; i += grid_threads()) {
        float values[V];
        load_floats(values, x + i * V);
        store_floats(y + i * V, values);
    }
}

void cuda_from_float(const Run *run, void *y, const float *x, size_t count) {
    if (!count) return;
    WITH_VALUE_PACKS(run, T, V, run->version != 1 && packable(count, V, y, x),
                     LAUNCH((convert<T, V>), grid_blocks(count / V, THREADS), THREADS, 0,
                            run->stream, (T *)y, x, count / V));
}

/* ---- rows ----
 * A block moves a piece of one row at a time, so that all its threads use the same slot. */

/* Rows are `packs` packs of V. */
template <typename T, int V>
__global__ void move_rows(T *to, const T *from, const int *slot, int n, size_t packs, bool gather) {
    const size_t first = grid_thread();
    for (unsigned i = blockIdx.y; i < (unsigned)n; i += gridDim.y) {
        if (slot[i] < 0) continue;
        const size_t other = (size_t)slot[i], row = gather ? other : i, at = gather ? i : other;
        for (size_t pack = first; pack < packs; pack += grid_threads())
            store_pack(to + (at * packs + pack) * V, load_pack<V>(from + (row * packs + pack) * V));
    }
}

void cuda_move_rows(const Run *run, void *to, const void *from, const int *slot, int n,
                    size_t width, bool gather) {
    const unsigned max_rows = 65535, rows = (unsigned)n < max_rows ? (unsigned)n : max_rows;
    if (n <= 0 || !width) return;
    WITH_VALUE_PACKS(run, T, V, run->version != 1 && packable(width, V, to, from),
                     LAUNCH((move_rows<T, V>), dim3(grid_blocks(width / V, THREADS), rows), THREADS,
                            0, run->stream, (T *)to, (const T *)from, slot, n, width / V, gather));
}
