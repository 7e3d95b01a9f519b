/* A device, as the stage sees it: memory, copies, streams, events, graphs.  Two files implement it:
 * gpu/device.c with the CUDA runtime, simt/device.c on the CPU.
 *
 * Work on a stream is asynchronous and in order.  Its errors are kept, and the next device_wait, of
 * any thread, reports the first and forgets them.  graph_end, or a call that itself fails, may do
 * so before.  On failure, functions that allocate return NULL and functions that return int -1,
 * with an error (ref/base/error.h).  Threads may work at the same time, each on streams of its own.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../ref/base/error.h" /* BCD_PRINTF */

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    char name[96];    /* "NVIDIA H200", "SIMT on the CPU" */
    int major, minor; /* compute capability; 0.0 under SIMT */
    int multiprocessors;
    size_t memory_bytes;                         /* installed */
    size_t free_bytes;                           /* now */
    size_t cache_bytes;                          /* level 2 */
    unsigned char uuid[16];                      /* which GPU of all it is; 0 under SIMT */
    char runtime[48], driver[48], libraries[96]; /* versions, for provenance */
} DeviceInfo;

/* Opens the first device (CUDA_VISIBLE_DEVICES chooses another).  Where LOCAL_RANK,
 * OMPI_COMM_WORLD_LOCAL_RANK (Open MPI), MPI_LOCALRANKID (MPICH) or SLURM_LOCALID numbers the
 * processes of a node, process i opens device i modulo the number of devices.  -1 and an error that
 * says what is missing: driver, device, or a compute capability of at least 8.0.  Each thread that
 * uses the device must call this; a second call of a thread does nothing. */
int device_open(void);
/* Overwrites *info with what is known of the device, which this thread must have opened. */
int device_info(DeviceInfo *info);
/* Returns true if the device runs code for sm_90a: Hopper's warpgroup matrix products.  May be
 * called while a graph is captured. */
bool device_has_wgmma(void);

/* ---- memory ---- */

/* The memory is aligned to 256 bytes and not zeroed (under SIMT it is NaN). */
void *device_alloc(size_t bytes);
void device_free(void *device_pointer); /* NULL is ignored; waits for the device */
/* Page-locked host memory, with any contents: copies from and to it overlap with the kernels. */
void *pinned_alloc(size_t bytes);
void pinned_free(void *host_pointer); /* NULL is ignored */

/* ---- streams ---- */

typedef void *Stream; /* NULL is not a stream */

Stream stream_create(void);
void stream_free(Stream stream); /* NULL is ignored */
/* Waits until everything on the stream is done.  Returns -1 if anything on the device has failed
 * since a failure was last reported; the error is the first one, with the kernel's name. */
int device_wait(Stream stream);
/* Notes an error (printf format) that the next device_wait reports. */
void device_note(const char *format, ...) BCD_PRINTF(1, 2);

/* These run in stream order.  Host memory should be page-locked, else a copy may wait for the
 * stream. */
void copy_to_device(Stream stream, void *to, const void *from, size_t bytes);
void copy_to_host(Stream stream, void *to, const void *from, size_t bytes);
void copy_on_device(Stream stream, void *to, const void *from, size_t bytes);
void fill_zero(Stream stream, void *device_pointer, size_t bytes);

/* ---- events ---- */

typedef void *Event;

Event event_create(bool timed); /* event_ms needs timed ones, which are slower */
void event_free(Event event);   /* NULL is ignored */
void event_record(Event event, Stream stream);
void stream_wait_event(Stream stream, Event event);
int event_wait(Event event); /* makes the host wait */
/* The same, where the next device_wait reports an error. */
static inline void event_finish(Event event) {
    if (event_wait(event)) device_note("%s", error_message());
}
int event_over(Event event); /* returns 1 if it is over, 0 if not; -1 and an error */
/* Returns the milliseconds of device time between two events that are over. */
double event_ms(Event from, Event to);

/* ---- graphs: work that is captured once, and repeated by one launch ---- */

typedef void *Graph;

/* Between begin and end, work on the stream is captured instead of run.  The graph keeps pointers
 * and sizes, so the memory must outlive it.  The stream must not wait for events of other
 * streams meanwhile, nor they for its own. */
int graph_begin(Stream stream);
Graph graph_end(Stream stream); /* NULL and an error when the capture failed */
int graph_launch(Graph graph, Stream stream);
void graph_free(Graph graph); /* NULL is ignored */

#ifdef __cplusplus
}
#endif
