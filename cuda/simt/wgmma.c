/* Products of four warps.  The layouts are those of the PTX ISA: "Register Fragments and Shared
 * Memory Matrix Layouts" of the warpgroup-level instructions, 128-byte swizzle, and "Matrix
 * Descriptor Format". */
#include <string.h>

#include "../../ref/base/bf16.h"
#include "internal.h"

enum { ROWS = 16, DEPTH = 16, MAX_COLUMNS = 128, IN_FLIGHT = 16 };

/* An instruction that a warp has issued and not waited for. */
typedef struct {
    float *d[SIMT_LANES];
    unsigned a[SIMT_LANES][4];
    SimtGroupProduct first; /* of lane 0; what `a` points to may have changed */
    SimtSite site;
} Issued;
static struct {
    Issued issued[IN_FLIGHT];
    int count;
    bool begun;   /* since the last wait */
    uint64_t all; /* a checksum of what the warp has issued in this block, in order */
    SimtSite last;
} queues[SIMT_WARPS];

void simt_wgmma_drop(void) {
    for (int i = 0; i < SIMT_WARPS; i++) {
        queues[i].count = 0;
        queues[i].begun = false;
        queues[i].all = 0;
    }
}

bool simt_wgmma_agree(void) {
    for (unsigned i = 0; i < SIMT_WARPS; i++) {
        const unsigned other = i - i % 4;
        if (queues[i].all == queues[other].all) continue;
        const unsigned says = queues[i].all ? i : other; /* one that has issued some */
        simt_note_thread_error((SimtIndex){says * SIMT_LANES, 0, 0}, queues[says].last,
                               "wgmma that the four warps of a group do not issue alike");
        return false;
    }
    return true;
}

static uint64_t checksum(uint64_t so_far, uint64_t number) {
    return (so_far ^ (number + 1)) * 0x9e3779b97f4a7c15u + (so_far >> 29);
}

static const SimtGroupProduct *product_of(const SimtWarp *warp, unsigned lane) {
    return (const SimtGroupProduct *)(uintptr_t)warp->value[lane];
}

static void fail(const SimtWarp *warp, SimtSite site, const char *what) {
    simt_note_thread_error(warp->index[0], site, "wgmma %s", what);
    simt_give_up();
}

void simt_resolve_wgmma_begin(SimtWarp *warp, unsigned mask) {
    (void)mask;
    queues[warp->number].begun = true;
}

void simt_resolve_wgmma(SimtWarp *warp, unsigned mask) {
    (void)mask;
    const SimtGroupProduct *first = product_of(warp, 0);
    const SimtSite site = warp->site[0];
    if (!queues[warp->number].begun) fail(warp, site, "without wgmma_begin before it");
    if (queues[warp->number].count == IN_FLIGHT) fail(warp, site, "is one too many in flight");
    if (simt_unfenced_copies())
        fail(warp, site, "reads copies that no async_proxy_fence has followed");
    queues[warp->number].last = site;
    queues[warp->number].all =
        checksum(checksum(checksum(queues[warp->number].all, first->a ? 1 : first->a_matrix),
                          first->b_matrix),
                 (uint64_t)first->n);
    Issued *issued = &queues[warp->number].issued[queues[warp->number].count++];
    issued->first = *first;
    issued->site = site;
    for (unsigned lane = 0; lane < SIMT_LANES; lane++) {
        const SimtGroupProduct *product = product_of(warp, lane);
        if (product->a_matrix != first->a_matrix || product->b_matrix != first->b_matrix)
            fail(warp, site, "with matrices that differ among lanes");
        issued->d[lane] = product->d;
        if (product->a) memcpy(issued->a[lane], product->a, sizeof issued->a[lane]);
    }
}

/* Returns the number at byte `offset` of a swizzled matrix.  The number of a 16-byte chunk in its
 * row of 128 bytes is exclusive-ored with the number of the row modulo 8. */
static float number_at(const SimtWarp *warp, const Issued *issued, uint64_t matrix,
                       unsigned offset) {
    const unsigned address = ((unsigned)(matrix & 0x3fff) << 4) + offset;
    const void *from = simt_shared_at(address ^ (address >> 7 & 7u) << 4);
    uint16_t half;
    if (simt_race && offset % 16 == 0) /* for the whole chunk */
        simt_race->access(from, 16, false, warp->number * SIMT_LANES, issued->site);
    memcpy(&half, from, sizeof half);
    return float_of_bf16(half);
}

static unsigned leading_bytes(uint64_t matrix) { return (unsigned)(matrix >> 16 & 0x3fff) << 4; }
static unsigned stride_bytes(uint64_t matrix) { return (unsigned)(matrix >> 32 & 0x3fff) << 4; }

/* Returns the offset of number k of row i, where the numbers of a row are contiguous ("K-major").
 */
static unsigned along_rows(uint64_t matrix, unsigned i, unsigned k) {
    return i / 8 * stride_bytes(matrix) + i % 8 * 128 + 2 * k;
}
/* Returns the offset of column j in row k, where 64 columns of a row are contiguous ("MN-major").
 */
static unsigned along_columns(uint64_t matrix, unsigned j, unsigned k) {
    return j / 64 * leading_bytes(matrix) + k / 8 * stride_bytes(matrix) + k % 8 * 128 + j % 64 * 2;
}

static void multiply(const SimtWarp *warp, const Issued *issued) {
    static float a[ROWS][DEPTH], b[DEPTH][MAX_COLUMNS];
    const uint64_t from_a = issued->first.a_matrix, from_b = issued->first.b_matrix;
    const bool in_registers = issued->first.a != NULL;
    const unsigned tiles = (unsigned)issued->first.n; /* of 8 columns */
    if ((!in_registers && from_a >> 62 != 1) || from_b >> 62 != 1)
        fail(warp, issued->site, "of a matrix without the 128-byte swizzle");
    for (unsigned lane = 0; in_registers && lane < SIMT_LANES; lane++)
        for (unsigned i = 0; i < 4; i++)
            for (unsigned half = 0; half < 2; half++)
                a[lane / 4 + i % 2 * 8][lane % 4 * 2 + half + i / 2 * 8] =
                    float_of_bf16((uint16_t)(issued->a[lane][i] >> 16 * half));
    for (unsigned i = 0; !in_registers && i < ROWS; i++)
        for (unsigned k = 0; k < DEPTH; k++)
            a[i][k] =
                number_at(warp, issued, from_a, along_rows(from_a, warp->number % 4 * ROWS + i, k));
    for (unsigned j = 0; j < 8 * tiles; j++)
        for (unsigned k = 0; k < DEPTH; k++)
            b[k][j] =
                number_at(warp, issued, from_b,
                          in_registers ? along_columns(from_b, j, k) : along_rows(from_b, j, k));
    for (unsigned lane = 0; lane < SIMT_LANES; lane++)
        for (unsigned j = 0; j < tiles; j++)
            for (unsigned i = 0; i < 4; i++) {
                const unsigned row = lane / 4 + i / 2 * 8, column = 8 * j + lane % 4 * 2 + i % 2;
                float *d = &issued->d[lane][4 * j + i];
                for (unsigned k = 0; k < DEPTH; k++) *d += a[row][k] * b[k][column];
            }
}

void simt_resolve_wgmma_end(SimtWarp *warp, unsigned mask) {
    (void)mask;
    for (int i = 0; i < queues[warp->number].count; i++)
        multiply(warp, &queues[warp->number].issued[i]);
    queues[warp->number].count = 0;
    queues[warp->number].begun = false;
}
