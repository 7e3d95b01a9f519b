#include "random.h"

#include <math.h>

void philox4x32(uint32_t out[4], const uint32_t counter[4], const uint32_t key[2]) {
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c0;
        uint64_t p1 = (uint64_t)0xCD9E8D57u * c2;
        uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0, n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)p1;
        c3 = (uint32_t)p0;
        c0 = n0;
        c2 = n2;
        k0 += 0x9E3779B9u; /* Weyl sequences: golden ratio and sqrt(3) - 1 */
        k1 += 0xBB67AE85u;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

static void draw(uint32_t out[4], uint64_t seed, uint32_t stream, uint32_t number, uint64_t index) {
    const uint32_t counter[4] = {(uint32_t)index, (uint32_t)(index >> 32), stream, number};
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    philox4x32(out, counter, key);
}

static double unit(uint32_t high, uint32_t low) {
    return (double)(((uint64_t)high << 32 | low) >> 11) * 0x1p-53;
}

uint64_t random_bits(uint64_t seed, uint32_t stream, uint64_t index) {
    uint32_t r[4];
    draw(r, seed, stream, 0, index);
    return (uint64_t)r[0] << 32 | r[1];
}

double random_uniform(uint64_t seed, uint32_t stream, uint64_t index) {
    uint32_t r[4];
    draw(r, seed, stream, 0, index);
    return unit(r[0], r[1]);
}

double random_normal(uint64_t seed, uint32_t stream, uint64_t index) {
    uint32_t r[4];
    draw(r, seed, stream, 0, index);
    double radius = sqrt(-2.0 * log(1.0 - unit(r[0], r[1]))); /* 1 - u is never 0 */
    return radius * cos(6.283185307179586 * unit(r[2], r[3]));
}

uint32_t random_below(uint64_t seed, uint32_t stream, uint64_t index, uint32_t bound) {
    return (uint32_t)(((random_bits(seed, stream, index) >> 32) * bound) >> 32);
}

void random_permutation(int *order, int n, uint64_t seed, uint32_t stream, uint64_t number) {
    for (int i = 0; i < n; i++) order[i] = i;
    for (int i = n - 1; i > 0; i--) {
        uint32_t r[4];
        draw(r, seed, stream, (uint32_t)number, (uint64_t)i);
        int j = (int)(((uint64_t)r[0] * (uint32_t)(i + 1)) >> 32);
        int swapped = order[i];
        order[i] = order[j];
        order[j] = swapped;
    }
}

int random_permuted(int i, int n, uint64_t seed, uint32_t stream, uint64_t number) {
    enum { ROUNDS = 8 };
    const uint32_t side = (uint32_t)ceil(sqrt((double)n));
    uint32_t at = (uint32_t)i;
    do {
        uint32_t left = at / side, right = at % side;
        for (uint32_t round = 0; round < ROUNDS; round++) {
            uint32_t r[4];
            draw(r, seed, stream, (uint32_t)number, (uint64_t)round << 32 | right);
            const uint32_t sum = left + (uint32_t)(((uint64_t)r[0] * side) >> 32);
            left = right;
            right = sum % side;
        }
        at = left * side + right;
    } while (at >= (uint32_t)n);
    return (int)at;
}
