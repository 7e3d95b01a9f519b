/* CUDA's vector types with CUDA's alignments, and dim3. */
#ifndef SIMT_VECTORS_H
#define SIMT_VECTORS_H

#define SIMT_VECTORS(type, name, align2, align4)                                       \
    struct name##1 {                                                                   \
        type x;                                                                        \
    };                                                                                 \
    struct alignas(align2) name##2 {                                                   \
        type x, y;                                                                     \
    };                                                                                 \
    struct name##3 {                                                                   \
        type x, y, z;                                                                  \
    };                                                                                 \
    struct alignas(align4) name##4 {                                                   \
        type x, y, z, w;                                                               \
    };                                                                                 \
    static inline name##1 make_##name##1(type x) { return {x}; }                       \
    static inline name##2 make_##name##2(type x, type y) { return {x, y}; }            \
    static inline name##3 make_##name##3(type x, type y, type z) { return {x, y, z}; } \
    static inline name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }

SIMT_VECTORS(signed char, char, 2, 4)
SIMT_VECTORS(unsigned char, uchar, 2, 4)
SIMT_VECTORS(short, short, 4, 8)
SIMT_VECTORS(unsigned short, ushort, 4, 8)
SIMT_VECTORS(int, int, 8, 16)
SIMT_VECTORS(unsigned, uint, 8, 16)
SIMT_VECTORS(long long, longlong, 16, 16)
SIMT_VECTORS(unsigned long long, ulonglong, 16, 16)
SIMT_VECTORS(float, float, 8, 16)
SIMT_VECTORS(double, double, 16, 16)

#undef SIMT_VECTORS

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned vx = 1, unsigned vy = 1, unsigned vz = 1) : x(vx), y(vy), z(vz) {}
    constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
};

#endif
