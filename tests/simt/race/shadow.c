#include <stdlib.h>
#include <string.h>

#include "race.h"

/* What is known of one granule of memory: its last write, and the reads since.  Reads are kept for
 * one block and one interval between its barriers; for readers in one warp, their lanes and the
 * oldest of their clocks. */
typedef struct {
    RacePlace write_place, read_place;
    unsigned write_block, read_block;       /* of the launch, from 1; 0: none */
    unsigned write_interval, read_interval; /* barriers that the block had passed */
    unsigned write_clock, read_clock;
    uint16_t write_thread, read_thread;
    unsigned read_lanes;
    bool write_atomic, read_warps, read_blocks; /* reads from several warps, from several blocks */
} ShadowCell;

/* The granules of 4096 bytes; each is as large as the accesses seen there so far allow. */
enum { PAGE_BITS = 12, LARGEST_SHIFT = 4, PAGES = 1 << 20 };
static const size_t cell_bytes_kept = (size_t)256 << 20; /* from launch to launch */
typedef struct {
    uintptr_t number; /* address >> PAGE_BITS; 0: free */
    uint64_t stamp;   /* of its cells: the launch or, for shared memory, the block */
    int shift;
    bool shared;
    ShadowCell *cell;
} Page;
static Page *pages;
/* The pages used last, indexed by the low bits of their numbers. */
enum { RECENT = 64 };
static Page none, *recent[RECENT];
static size_t page_count, cell_bytes;

static struct {
    bool running;
    unsigned block, interval;
    uint64_t serial;                                    /* counts the blocks of all launches */
    unsigned clock[SIMT_WARPS][SIMT_LANES][SIMT_LANES]; /* [w][i][j]: what lane i knows of j */
} now;

/* ---- pages ---- */

static void start_over(void) {
    for (size_t i = 0; pages && i < PAGES; i++) free(pages[i].cell);
    free(pages);
    pages = calloc(PAGES, sizeof *pages);
    if (!pages) abort();
    for (int i = 0; i < RECENT; i++) recent[i] = &none;
    page_count = cell_bytes = 0;
}

static size_t cells_of(const Page *page) { return (size_t)1 << (PAGE_BITS - page->shift); }

static void page_cells(Page *page, int shift) {
    ShadowCell *old = page->cell;
    int old_shift = page->shift;
    page->shift = shift;
    page->cell = calloc(cells_of(page), sizeof *page->cell);
    if (!page->cell) abort();
    cell_bytes += cells_of(page) * sizeof *page->cell;
    for (size_t i = 0; old && i < cells_of(page); i++)
        page->cell[i] = old[i >> (old_shift - shift)];
    free(old);
}

static Page *page_of(uintptr_t address, size_t bytes) {
    uintptr_t number = address >> PAGE_BITS;
    Page *page = recent[number % RECENT];
    if (page->number != number) {
        size_t slot = (size_t)(number * 0x9e3779b97f4a7c15u >> 40) % PAGES;
        while (pages[slot].number && pages[slot].number != number) slot = (slot + 1) % PAGES;
        page = recent[number % RECENT] = &pages[slot];
        if (!page->number) {
            if (++page_count == PAGES) abort();
            page->number = number;
            page->shared = simt_in_shared((const void *)address);
            page_cells(page, LARGEST_SHIFT);
        }
    }
    uint64_t stamp = page->shared ? now.serial : simt_launch_number;
    if (page->stamp != stamp) {
        memset(page->cell, 0, cells_of(page) * sizeof *page->cell);
        page->stamp = stamp;
    }
    int shift = page->shift;
    while ((address | bytes) & (((uintptr_t)1 << shift) - 1)) shift--;
    if (shift < page->shift) page_cells(page, shift);
    return page;
}

/* ---- the check ---- */

typedef struct {
    RaceAccess access;
    unsigned warp, lane;
    const void *memory;
} Now;

static void tell(const Now *n, RacePlace place, RaceKind kind, unsigned block, unsigned thread) {
    race_report(n->memory, (RaceAccess){place, kind, block - 1, thread}, n->access);
}

static bool after_write(const ShadowCell *cell, const Now *n) {
    if (cell->write_block != now.block + 1) return false;
    if (cell->write_thread == n->access.thread || cell->write_interval < now.interval) return true;
    return cell->write_thread / SIMT_LANES == n->warp &&
           now.clock[n->warp][n->lane][cell->write_thread % SIMT_LANES] >= cell->write_clock;
}

/* Returns true when all readers of the cell come before the running access. */
static bool after_reads(const ShadowCell *cell, const Now *n) {
    if (cell->read_blocks || cell->read_block != now.block + 1) return false;
    if (cell->read_interval < now.interval) return true;
    if (cell->read_warps || cell->read_thread / SIMT_LANES != n->warp) return false;
    const unsigned *known = now.clock[n->warp][n->lane];
    for (unsigned lanes = cell->read_lanes & ~(1u << n->lane); lanes; lanes &= lanes - 1)
        if (known[__builtin_ctz(lanes)] < cell->read_clock) return false;
    return true;
}

static void add_reader(ShadowCell *cell, const Now *n) {
    unsigned clock = now.clock[n->warp][n->lane][n->lane];
    bool first = !cell->read_block, alone = first || after_reads(cell, n);
    if (cell->read_block && cell->read_block != now.block + 1) cell->read_blocks = true;
    bool new_interval = cell->read_block != now.block + 1 || cell->read_interval != now.interval;
    if (alone || new_interval) {
        cell->read_lanes = 0;
        cell->read_warps = false;
        cell->read_clock = clock;
    } else if (cell->read_thread / SIMT_LANES != n->warp) {
        cell->read_warps = true;
    }
    if (clock < cell->read_clock) cell->read_clock = clock;
    cell->read_lanes |= 1u << n->lane;
    cell->read_block = now.block + 1;
    cell->read_interval = now.interval;
    cell->read_thread = (uint16_t)n->access.thread;
    cell->read_place = n->access.place;
}

/* Returns true when the thread has read this before, and nothing has been written or waited for
 * since. */
static bool read_again(const ShadowCell *cell, const Now *n) {
    return cell->read_block == now.block + 1 && cell->read_thread == n->access.thread &&
           cell->read_interval == now.interval &&
           cell->read_clock == now.clock[n->warp][n->lane][n->lane];
}

static void check(ShadowCell *cell, const Now *n) {
    bool atomic = n->access.kind == RACE_ATOMIC;
    if (n->access.kind == RACE_READ && read_again(cell, n)) return;
    if (cell->write_block && !(atomic && cell->write_atomic) && !after_write(cell, n))
        tell(n, cell->write_place, cell->write_atomic ? RACE_ATOMIC : RACE_WRITE, cell->write_block,
             cell->write_thread);
    if (n->access.kind == RACE_READ) {
        add_reader(cell, n);
        return;
    }
    if (cell->read_block && !after_reads(cell, n))
        tell(n, cell->read_place, RACE_READ, cell->read_block, cell->read_thread);
    cell->read_block = 0;
    cell->read_blocks = cell->read_warps = false;
    cell->write_block = now.block + 1;
    cell->write_interval = now.interval;
    cell->write_clock = now.clock[n->warp][n->lane][n->lane];
    cell->write_thread = (uint16_t)n->access.thread;
    cell->write_atomic = atomic;
    cell->write_place = n->access.place;
}

static void access_by(unsigned thread, const void *memory, size_t bytes, RaceKind kind,
                      RacePlace place) {
    const Now n = {
        {place, kind, now.block, thread}, thread / SIMT_LANES, thread % SIMT_LANES, memory};
    const uintptr_t end = (uintptr_t)memory + bytes;
    for (uintptr_t a = (uintptr_t)memory; a < end;) {
        uintptr_t page_end = (a >> PAGE_BITS << PAGE_BITS) + (1 << PAGE_BITS);
        uintptr_t stop = end < page_end ? end : page_end;
        Page *page = page_of(a, stop - a);
        for (; a < stop; a += (uintptr_t)1 << page->shift)
            check(&page->cell[(a & ((1 << PAGE_BITS) - 1)) >> page->shift], &n);
    }
}

bool race_running(void) { return now.running; }

void race_access(const void *memory, size_t bytes, RaceKind kind, RacePlace place) {
    if (!now.running || simt_is_own(memory) || simt_on_stack(memory)) return;
    access_by(simt_thread(), memory, bytes, kind, place);
}

/* ---- events of the engine ---- */

static void on_launch(bool begin) {
    now.running = begin;
    if (!begin) return;
    if (!pages || cell_bytes > cell_bytes_kept) start_over();
}

static void on_block(void) {
    now.block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    now.serial++;
    now.interval = 0;
    memset(now.clock, 0, sizeof now.clock);
    for (int w = 0; w < SIMT_WARPS; w++)
        for (int i = 0; i < SIMT_LANES; i++) now.clock[w][i][i] = 1;
}

static void on_barrier(void) { now.interval++; }

static void on_sync_warp(const SimtWarp *warp, unsigned mask) {
    unsigned(*clock)[SIMT_LANES] = now.clock[warp->number], joined[SIMT_LANES] = {0};
    for (unsigned i = 0; i < SIMT_LANES; i++)
        for (unsigned j = 0; mask >> i & 1u && j < SIMT_LANES; j++)
            if (clock[i][j] > joined[j]) joined[j] = clock[i][j];
    for (unsigned i = 0; i < SIMT_LANES; i++) {
        if (!(mask >> i & 1u)) continue;
        memcpy(clock[i], joined, sizeof joined);
        clock[i][i]++;
    }
}

static void on_access(const void *memory, size_t bytes, bool write, unsigned thread,
                      SimtSite site) {
    access_by(thread, memory, bytes, write ? RACE_WRITE : RACE_READ, race_site(site));
}

const SimtRace race_checker = {on_launch, on_block, on_barrier, on_sync_warp, on_access};
