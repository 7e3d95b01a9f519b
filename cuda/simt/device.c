/* cuda/device.h on the CPU.  Work is done when it is put on a stream, or late (late.h); a GPU may
 * choose either order.  A stream that is being captured keeps it instead, as on a GPU.  Mistakes
 * that fail on a GPU are errors here: copies from or to memory of the wrong kind or beyond its end,
 * waiting for a stream that is being captured, and for an event across the border of a
 * capture. */
#include "../device.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../ref/base/checksum.h"
#include "engine.h"
#include "late.h"

int device_open(void) {
    capture_open();
    return 0;
}

bool device_has_wgmma(void) { return true; } /* simt/wgmma.c */

int device_info(DeviceInfo *info) {
    const size_t installed = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGE_SIZE);
    *info = (DeviceInfo){
        .name = "SIMT on the CPU",
        .multiprocessors = 1,
        .memory_bytes = installed,
        .free_bytes = installed, /* as on the CPU, no more is known */
        .runtime = "cuda/simt",
    };
    return 0;
}

void device_note(const char *format, ...) {
    char text[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    simt_note_error("%s", text);
}

/* ---- memory: ordinary memory whose kind and bounds are remembered ---- */

typedef enum { MEMORY_DEVICE, MEMORY_PINNED } MemoryKind;

typedef struct Piece {
    struct Piece *next;
    MemoryKind kind;
    uintptr_t start;
    size_t bytes;
} Piece;

static pthread_mutex_t pieces_lock = PTHREAD_MUTEX_INITIALIZER;
static Piece *pieces;

/* Returns the link to the piece that holds these bytes, or NULL.  With bytes 0 the address must lie
 * in the piece. */
static Piece **find(MemoryKind kind, const void *memory, size_t bytes) {
    uintptr_t at = (uintptr_t)memory;
    for (Piece **p = &pieces; *p; p = &(*p)->next)
        if ((*p)->kind == kind && at >= (*p)->start && at - (*p)->start < (*p)->bytes &&
            bytes <= (*p)->bytes - (at - (*p)->start))
            return p;
    return NULL;
}

/* Returns memory aligned to 256 bytes, device memory filled with NaN; NULL and an error when there
 * is none. */
static void *memory_alloc(MemoryKind kind, size_t bytes) {
    Piece *piece = malloc(sizeof *piece);
    void *memory;
    if (bytes == 0) bytes = 1;
    if (!piece || posix_memalign(&memory, 256, bytes)) {
        free(piece);
        return error_null("no memory for %zu bytes", bytes);
    }
    if (kind == MEMORY_DEVICE) simt_poison(memory, bytes);
    pthread_mutex_lock(&pieces_lock);
    *piece = (Piece){pieces, kind, (uintptr_t)memory, bytes};
    pieces = piece;
    pthread_mutex_unlock(&pieces_lock);
    return memory;
}

/* Freeing memory that is not allocated is an error, which device_wait reports. */
static void memory_free(MemoryKind kind, void *memory) {
    if (!memory) return;
    pthread_mutex_lock(&pieces_lock);
    Piece **place = find(kind, memory, 0), *piece = place ? *place : NULL;
    if (piece && piece->start == (uintptr_t)memory)
        *place = piece->next;
    else
        piece = NULL;
    pthread_mutex_unlock(&pieces_lock);
    if (piece)
        free(memory);
    else
        simt_note_error("%p was freed and is not the start of %s memory", memory,
                        kind == MEMORY_DEVICE ? "device" : "pinned");
    free(piece);
}

/* Returns true when these bytes lie in one piece of memory of this kind. */
static bool memory_holds(MemoryKind kind, const void *memory, size_t bytes) {
    pthread_mutex_lock(&pieces_lock);
    bool holds = find(kind, memory, bytes) != NULL;
    pthread_mutex_unlock(&pieces_lock);
    return holds;
}

void *device_alloc(size_t bytes) {
    if (capture_refuses("device memory cannot be allocated while a stream is being captured"))
        return NULL;
    return memory_alloc(MEMORY_DEVICE, bytes);
}

void device_free(void *device_pointer) {
    late_finish_all();
    memory_free(MEMORY_DEVICE, device_pointer);
}

void *pinned_alloc(size_t bytes) { return memory_alloc(MEMORY_PINNED, bytes); }

void pinned_free(void *host_pointer) { memory_free(MEMORY_PINNED, host_pointer); }

/* ---- work ---- */

typedef struct {
    void *to;
    const void *from; /* NULL: zeros */
    size_t bytes;
    const void *pinned; /* if not NULL, page-locked memory that must still be allocated */
    uint64_t sum;       /* of the bytes at `pinned`, if it is copied from: they must not change */
    bool inside;        /* the bytes to copy follow this struct */
} StreamCopy;

static void do_copy(const void *closure) {
    const StreamCopy *copy = closure;
    if (copy->pinned && !memory_holds(MEMORY_PINNED, copy->pinned, copy->bytes))
        simt_note_error("page-locked memory was freed before its %zu bytes were copied",
                        copy->bytes);
    else if (copy->pinned == copy->from && copy->from &&
             checksum_bytes(CHECKSUM_START, copy->from, copy->bytes) != copy->sum)
        simt_note_error("page-locked memory changed before its %zu bytes were copied", copy->bytes);
    else if (copy->inside)
        memcpy(copy->to, copy + 1, copy->bytes);
    else if (copy->from)
        memcpy(copy->to, copy->from, copy->bytes);
    else
        memset(copy->to, 0, copy->bytes);
}

static void submit(Stream stream, StreamCopy copy) {
    if (copy.bytes) simt_submit(stream, do_copy, &copy, sizeof copy);
}

/* Submits a copy with the bytes themselves, because the source may change from now on. */
static void submit_inside(Stream stream, StreamCopy copy) {
    StreamCopy *whole = malloc(sizeof copy + copy.bytes);
    if (!whole) {
        simt_note_error("no memory for a copy of %zu bytes", copy.bytes);
        return;
    }
    memcpy(whole + 1, copy.from, copy.bytes);
    copy.inside = true;
    *whole = copy;
    simt_submit(stream, do_copy, whole, sizeof copy + copy.bytes);
    free(whole);
}

/* Submits a copy between the host and a stream that may be late.  Page-locked memory must not
 * change before it has been copied, and reads as NaN before it has been copied to.  Other memory is
 * copied from at once, and copies to it are waited for, as a GPU's driver does. */
static void submit_host(Stream stream, StreamCopy copy, bool down) {
    bool late = late_on() && copy.bytes && !((LateQueue *)stream)->capture;
    const void *host = down ? copy.to : copy.from;
    bool pinned = memory_holds(MEMORY_PINNED, host, copy.bytes);
    if (late && pinned && down) simt_poison(copy.to, copy.bytes);
    if (late && pinned) copy.pinned = host;
    if (late && pinned && !down) copy.sum = checksum_bytes(CHECKSUM_START, host, copy.bytes);
    if (late && !pinned && !down) {
        submit_inside(stream, copy);
        return;
    }
    submit(stream, copy);
    if (late && !pinned) late_finish(stream);
}

/* Returns true if the memory is of the right kind, else notes an error.  Host memory is any that is
 * not the device's. */
static bool check_memory(const char *what, const void *memory, size_t bytes, bool device) {
    bool found = memory_holds(MEMORY_DEVICE, memory, device ? bytes : 0);
    if (found != device && bytes)
        simt_note_error("%s: %zu bytes at %p are not %s memory", what, bytes, memory,
                        device ? "device" : "host");
    return found == device;
}

void copy_to_device(Stream stream, void *to, const void *from, size_t bytes) {
    if (check_memory("copy_to_device, to", to, bytes, true) &&
        check_memory("copy_to_device, from", from, bytes, false))
        submit_host(stream, (StreamCopy){.to = to, .from = from, .bytes = bytes}, false);
}

void copy_to_host(Stream stream, void *to, const void *from, size_t bytes) {
    if (check_memory("copy_to_host, to", to, bytes, false) &&
        check_memory("copy_to_host, from", from, bytes, true))
        submit_host(stream, (StreamCopy){.to = to, .from = from, .bytes = bytes}, true);
}

void copy_on_device(Stream stream, void *to, const void *from, size_t bytes) {
    if (check_memory("copy_on_device, to", to, bytes, true) &&
        check_memory("copy_on_device, from", from, bytes, true))
        submit(stream, (StreamCopy){.to = to, .from = from, .bytes = bytes});
}

void fill_zero(Stream stream, void *device_pointer, size_t bytes) {
    if (check_memory("fill_zero", device_pointer, bytes, true))
        submit(stream, (StreamCopy){.to = device_pointer, .bytes = bytes});
}
