/* How rows of pixels and weights come into shared memory, as elements of a way to multiply. */
#pragma once

#include "conv2d.cuh"

static DEVICE float4 four_at(const float *from) { return __ldg((const float4 *)from); }
static DEVICE float4 four_at(const __nv_bfloat16 *from) {
    const uint2 bits = __ldg((const uint2 *)from);
    return make_float4(__uint_as_float(bits.x << 16), __uint_as_float(bits.x & 0xffff0000u),
                       __uint_as_float(bits.y << 16), __uint_as_float(bits.y & 0xffff0000u));
}

/* Returns four numbers of which `left` exist; the others are 0.  whole: either all four exist or
 * none, and they are aligned. */
template <typename T>
static DEVICE float4 load_four(const T *from, int left, bool whole) {
    float4 v = make_float4(0, 0, 0, 0);
    if (whole) return left > 0 ? four_at(from) : v;
    if (left > 0) v.x = to_float(from[0]);
    if (left > 1) v.y = to_float(from[1]);
    if (left > 2) v.z = to_float(from[2]);
    if (left > 3) v.w = to_float(from[3]);
    return v;
}

template <typename T>
static DEVICE float4 to_operand(Ffma<T>, float4 v) {
    return v;
}
static DEVICE float4 to_operand(Tf32, float4 v) {
    return make_float4(__uint_as_float(tf32_round(v.x)), __uint_as_float(tf32_round(v.y)),
                       __uint_as_float(tf32_round(v.z)), __uint_as_float(tf32_round(v.w)));
}

/* Fills tile[rows][pitch] with numbers first .. first + groups * GROUP - 1 of the rows that
 * source(row) points to (NULL: zeros), and with zeros from number `end` on.  All THREADS of the
 * block call it; the tile is complete after copy_async_wait and a barrier.  whole: `end` and the
 * starts of rows are multiples of GROUP.  BATCH: how many loads through registers are in flight. */
template <int THREADS, int BATCH, typename Mode, typename Element, typename Source>
static DEVICE void fill_rows(Mode mode, Element *tile, int pitch, int rows, int groups,
                             Source source, int first, int end, bool whole) {
    constexpr int GROUP = Mode::GROUP;
    const int across = THREADS / groups, g = (int)threadIdx.x % groups * GROUP;
    const int left = end - first - g;
    int r = (int)threadIdx.x / groups;
    if (r >= across) return;
    if constexpr (Mode::DIRECT) {
#pragma unroll 4
        for (; r < rows; r += across) {
            const Element *from = source(r);
            Element *to = tile + r * pitch + g;
            const bool some = from && left > 0;
            if (whole) {
                copy_async16(to, from + (some ? first + g : 0), some);
            } else {
                for (int k = 0; k < GROUP; k++)
                    to[k] = some && k < left ? from[first + g + k] : Element(0.f);
            }
        }
    } else {
        for (; r < rows; r += BATCH * across) {
            float4 v[BATCH];
#pragma unroll
            for (int b = 0; b < BATCH; b++) {
                const int row = r + b * across;
                const typename Mode::Value *from = row < rows ? source(row) : NULL;
                v[b] = load_four(from + (from ? first + g : 0), from ? left : 0, whole);
            }
#pragma unroll
            for (int b = 0; b < BATCH; b++)
                if (r + b * across < rows)
                    *(float4 *)(tile + (r + b * across) * pitch + g) = to_operand(mode, v[b]);
        }
    }
}

/* The halo tile of a block: input pixels first .. first + count - 1, which the taps of its output
 * pixels, from m0 on, reach. */
struct Span {
    int m0, first, count;
};

/* Returns the span of at most `tile` output pixels; m0 < c.pixels. */
static DEVICE Span span_of(const Correlation &c, int m0, int tile) {
    const int first = place_of(c, m0).at, last = place_of(c, min(m0 + tile, c.pixels) - 1).at;
    return {m0, first, last - first + (c.rows - 1) * c.in_w + c.columns};
}

/* Where the first tap of an output pixel lies in the halo tile, in numbers, and a mask of the taps
 * that are inside the image. */
struct Line {
    int at;
    unsigned inside;

    /* Returns where a tap lies that is `shift` numbers from the first one: in the row of zeros if
     * it is outside the image. */
    DEVICE int tap(int number, int shift) const { return inside >> number & 1 ? at + shift : 0; }
};

/* Returns the line of output pixel m of the span; the mask begins with tap `first`. */
static DEVICE Line line_of(const Correlation &c, Span span, int m, bool gather, int first,
                           int pitch) {
    const Place place = place_of(c, span.m0 + m);
    return {((gather ? m : place.at - span.first) + 1) * pitch,
            gather ? ~0u : taps_inside(c, place) >> first};
}

/* Fills halo[1 + pixels][pitch] with a row of zeros, then with `groups` groups of channels from k0
 * on: of all pixels of the span or, if `gathered` is not 0, of the pixels where one tap of so many
 * output pixels lies.  The BATCH arguments are those of fill_rows. */
template <int THREADS, int HALO_BATCH, int GATHER_BATCH, typename Mode, typename T, typename E>
static DEVICE void fill_halo(Mode mode, E *halo, int pitch, const T *in, const Correlation &c,
                             Span span, int gathered, int tap, int k0, int groups) {
    const bool whole = c.in_c % Mode::GROUP == 0;
    for (int k = (int)threadIdx.x; k < pitch; k += THREADS) halo[k] = 0.f;
    if (gathered) {
        const auto source = [&](int row) -> const T * {
            const Place place = place_of(c, span.m0 + row);
            const int r = quotient(tap, c.by_columns), q = tap - r * c.columns;
            const int pixel = place.at + r * c.in_w + q;
            return tap_inside(c, place, r, q) ? in + (size_t)pixel * c.in_c : NULL;
        };
        fill_rows<THREADS, GATHER_BATCH>(mode, halo + pitch, pitch, gathered, groups, source, k0,
                                         c.in_c, whole);
    } else {
        const int pixels = c.n * c.in_h * c.in_w;
        const auto source = [&](int row) -> const T * {
            const int pixel = span.first + row;
            return (unsigned)pixel < (unsigned)pixels ? in + (size_t)pixel * c.in_c : NULL;
        };
        fill_rows<THREADS, HALO_BATCH>(mode, halo + pitch, pitch, span.count, groups, source, k0,
                                       c.in_c, whole);
    }
}
