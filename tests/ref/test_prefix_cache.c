/* The prefix cache against an array that keeps everything: which samples it keeps, where, and what
 * it gives back. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../ref/base/error.h"
#include "../../ref/prefix_cache.h"
#include "../test.h"

enum { SAMPLES = 200, WIDTH = 3, BATCH = 7, CHUNK = 64, UNTOUCHED = -77 };
#define CHUNK_BYTES (CHUNK * WIDTH * sizeof(real))

typedef struct {
    const char *name;
    size_t budget;
    int on_device, in_memory; /* samples that fit there */
    bool file;
} Row;

static const Row rows[] = {
    {"nothing", 0, 0, 0, false},
    {"a byte short of a chunk", CHUNK_BYTES - 1, 0, 63, false},
    {"one chunk", CHUNK_BYTES, 0, 64, false},
    {"a byte short of three", 3 * CHUNK_BYTES - 1, 0, 191, false},
    {"all in memory", 4 * CHUNK_BYTES, 0, 256, false},
    {"any budget", (size_t)1 << 40, 0, 1 << 30, false},
    {"a file", 0, 0, 0, true},
    {"memory and a file", 2 * CHUNK_BYTES, 0, 128, true},
    {"device", 0, 50, 0, false},
    {"device and memory", CHUNK_BYTES, 50, 64, false},
    {"device, memory and a file", CHUNK_BYTES, 50, 64, true},
    {"device for all", CHUNK_BYTES, SAMPLES, 64, true},
};

/* A cache, the order in which its samples were kept, and a directory for its file. */
typedef struct {
    const Row *row;
    MemCount counted;
    PrefixCache cache;
    int kept, slot[SAMPLES]; /* slot: the number of samples kept before; -1: not kept */
    char dir[64];
} Cached;

static real value_of(int sample, int element) { return (real)(10 * sample + element); }

static void open_cache(Cached *c, const Row *row) {
    *c = (Cached){.row = row, .dir = "/tmp/test-cache-XXXXXX"};
    if (!mkdtemp(c->dir)) abort();
    CHECK(prefix_cache_init(&c->cache, &c->counted, row->budget, row->file ? c->dir : NULL,
                            SAMPLES) == 0,
          "%s", error_message());
}

static void clear(Cached *c) {
    prefix_cache_clear(&c->cache, WIDTH, c->row->on_device);
    c->kept = 0;
    for (int i = 0; i < SAMPLES; i++) c->slot[i] = -1;
}

static void close_cache(Cached *c) {
    int file = c->cache.file;
    prefix_cache_free(&c->cache);
    CHECK(c->counted.current[MEM_CACHE] == 0, "%s: memory is left", c->row->name);
    CHECK(file < 0 || fcntl(file, F_GETFD) < 0, "%s: the file is open", c->row->name);
    CHECK(rmdir(c->dir) == 0, "%s: a file is left in %s", c->row->name, c->dir);
}

static bool on_device(const Cached *c, int sample) { return c->slot[sample] < c->row->on_device; }

/* Puts a batch, and CHECKs the slots that the device gets. */
static void put(Cached *c, const int *ids) {
    real values[BATCH * WIDTH];
    int slots[BATCH], capacity = c->row->on_device + c->row->in_memory;
    for (int i = 0; i < BATCH * WIDTH; i++) values[i] = value_of(ids[i / WIDTH], i % WIDTH);
    CHECK(prefix_cache_put_reads(&c->cache, BATCH) == (c->kept + BATCH > c->row->on_device),
          "%s: %d kept", c->row->name, c->kept);
    CHECK(prefix_cache_put(&c->cache, values, ids, BATCH, slots) == 0, "%s", error_message());
    for (int i = 0; i < BATCH; i++) {
        bool fresh = c->slot[ids[i]] < 0 && (c->row->file || c->kept < capacity);
        if (fresh) c->slot[ids[i]] = c->kept++;
        int expected = fresh && on_device(c, ids[i]) ? c->slot[ids[i]] : -1;
        CHECK(slots[i] == expected, "%s: slot %d, not %d", c->row->name, slots[i], expected);
    }
}

/* CHECKs what a batch gives back. Samples that are on the device are not given. */
static void get(Cached *c, const int *ids) {
    real values[BATCH * WIDTH];
    bool all = true;
    for (int i = 0; i < BATCH * WIDTH; i++) values[i] = UNTOUCHED;
    for (int i = 0; i < BATCH; i++) all = all && c->slot[ids[i]] >= 0;
    int found = prefix_cache_get(&c->cache, values, ids, BATCH);
    if (!CHECK(found == all, "%s: %d for %d", c->row->name, found, all) || !all) return;
    for (int i = 0; i < BATCH * WIDTH; i++) {
        int sample = ids[i / WIDTH];
        real expected = on_device(c, sample) ? (real)UNTOUCHED : value_of(sample, i % WIDTH);
        CHECK(values[i] == expected, "%s: sample %d: %g, not %g", c->row->name, sample, values[i],
              expected);
    }
}

static void check_memory(const Cached *c) {
    int in_memory = c->kept - c->row->on_device;
    if (in_memory > c->row->in_memory) in_memory = c->row->in_memory;
    if (in_memory < 0) in_memory = 0;
    int slots = (in_memory + CHUNK - 1) / CHUNK * CHUNK, most = SAMPLES - c->row->on_device;
    if (most > c->row->in_memory) most = c->row->in_memory;
    if (slots > most) slots = most;
    size_t expected = (size_t)slots * WIDTH * sizeof(real);
    CHECK(c->counted.current[MEM_CACHE] == expected, "%s: %zu bytes, not %zu", c->row->name,
          c->counted.current[MEM_CACHE], expected);
}

/* Lists a batch of samples in no order.  Some of them come a second time in a later batch, and in
 * every third batch, as at the end of an epoch, one does in the same. */
static void batch_of(int ids[BATCH], int number) {
    for (int i = 0; i < BATCH; i++) ids[i] = (5 * number + i) * 37 % SAMPLES;
    if (number % 3 == 0) ids[BATCH - 1] = ids[2];
}

static void keeps_what_fits(const void *data) {
    enum { BATCHES = 45 };
    Cached c;
    int ids[BATCH];
    open_cache(&c, data);
    for (int round = 0; round < 2; round++) {
        clear(&c); /* the second round must find nothing of the first */
        for (int number = 0; number < BATCHES; number++) {
            batch_of(ids, number);
            get(&c, ids);
            put(&c, ids);
            get(&c, ids);
            check_memory(&c);
        }
        for (int number = 0; number < BATCHES; number++) {
            batch_of(ids, number);
            get(&c, ids);
        }
    }
    close_cache(&c);
}

/* Puts or gets the only sample of a cache that keeps it in a file. */
static int put_first(PrefixCache *cache) {
    const real value[WIDTH] = {1, 2, 3};
    return prefix_cache_put(cache, value, (int[]){0}, 1, NULL);
}

static int get_first(PrefixCache *cache) {
    real value[WIDTH];
    return prefix_cache_get(cache, value, (int[]){0}, 1);
}

static void check_says(int result, const char *expected) {
    CHECK(result == -1 && strstr(error_message(), expected), "%d: \"%s\"", result, error_message());
}

static PrefixCache in_file(MemCount *counted, const char *dir) {
    PrefixCache cache;
    if (prefix_cache_init(&cache, counted, 0, dir, 1)) abort();
    prefix_cache_clear(&cache, WIDTH, 0);
    return cache;
}

static void a_file_that_fails_is_an_error(void) {
    MemCount counted = {.total_current = 0};
    PrefixCache cache = in_file(&counted, "/nowhere");
    check_says(put_first(&cache), "cannot make /nowhere/prefix-cache-");
    CHECK(get_first(&cache) == 0, "kept all the same");
    prefix_cache_free(&cache);

    char longest[4096 - sizeof "/prefix-cache-XXXXXX" + 2];
    memset(longest, '/', sizeof longest);
    memcpy(longest, "/tmp", 4);
    longest[sizeof longest - 1] = 0;
    cache = in_file(&counted, longest);
    check_says(put_first(&cache), "path too long");
    longest[sizeof longest - 2] = 0;
    CHECK(put_first(&cache) == 0, "%s", error_message());
    prefix_cache_free(&cache);

    cache = in_file(&counted, "/tmp");
    CHECK(put_first(&cache) == 0 && get_first(&cache) == 1, "%s", error_message());
    if (ftruncate(cache.file, WIDTH * sizeof(real) - 1)) abort();
    check_says(get_first(&cache), "cannot read back from /tmp");
    prefix_cache_clear(&cache, WIDTH, 0);
    CHECK(put_first(&cache) == 0, "%s", error_message());
    int full = open("/dev/full", O_RDWR);
    if (full < 0 || dup2(full, cache.file) < 0) abort();
    close(full);
    cache.slot[0] = -1;
    check_says(put_first(&cache), "cannot write to /tmp: No space left");
    prefix_cache_free(&cache);
}

void test_prefix_cache(void) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        RUN_ROW(rows[i].name, keeps_what_fits, &rows[i]);
    RUN(a_file_that_fails_is_an_error);
}
