/* Makes batches of images from bytes that stay on the device: ImageBytes of ref/dataset.h. */
#include "../../ref/base/random.h"
#include "common.cuh"

/* random_bits of ref/base/random.h: the first two of the four numbers of Philox4x32-10. */
static __device__ uint64_t philox_bits(uint64_t seed, uint32_t stream, uint64_t index) {
    uint32_t c0 = (uint32_t)index, c1 = (uint32_t)(index >> 32), c2 = stream, c3 = 0;
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    for (int round = 0; round < 10; round++) {
        const uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)p1;
        c3 = (uint32_t)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return (uint64_t)c0 << 32 | c1;
}

/* A thread for each pixel.  Each draws its image's augmentation by itself, which costs less than to
 * wait for another thread. */
template <typename T>
static __global__ void make_images(T *y, const int *ids, size_t pixels, DeviceImages images,
                                   uint64_t position) {
    const int h = images.h, w = images.w;
    const size_t plane = (size_t)h * w;
    for (size_t i = grid_thread(); i < pixels; i += grid_threads()) {
        const int sample = ids[i / plane], at = (int)(i % plane);
        int row = at / w, column = at % w;
        if (images.augmented) {
            const uint64_t bits =
                philox_bits(images.seed, STREAM_AUGMENT, position << 32 | (uint32_t)sample);
            const uint32_t places = 2 * (uint32_t)images.pad + 1;
            if (bits >> 63) column = w - 1 - column;
            row += (int)(((uint32_t)bits & 0xffff) * places >> 16) - images.pad;
            column += (int)(((uint32_t)bits >> 16) * places >> 16) - images.pad;
        }
        const bool inside = row >= 0 && row < h && column >= 0 && column < w;
        const unsigned char *from =
            images.planes + (size_t)sample * images.c * plane + (inside ? row * w + column : 0);
        for (int c = 0; c < images.c; c++) {
            const int byte = inside ? from[(size_t)c * plane] : 0;
            y[i * images.c + c] = from_float<T>(images.normal[c * 256 + byte]);
        }
    }
}

void cuda_make_images(const Run *run, void *y, const int *ids, int n, DeviceImages images,
                      uint64_t position) {
    const size_t pixels = (size_t)n * images.h * images.w;
    const unsigned block = 256;
    WITH_VALUES(run, T,
                LAUNCH(make_images<T>, grid_blocks(pixels, block), block, 0, run->stream, (T *)y,
                       ids, pixels, images, position));
}
