/* A device, as the stage sees it: memory, copies, streams, events, graphs.  Two implementations
 * with the same names: gpu/device.c over the CUDA runtime, simt/device.c over the CPU.
 *
 * Work on a stream is asynchronous and in order; its errors are kept and reported by the next
 * device_wait, of any thread.  Functions that allocate give NULL, others -1, and an error line
 * (ref/error.h).  Threads may work side by side, each on streams of its own. */
#ifndef CUDA_DEVICE_H
#define CUDA_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../ref/error.h" /* BCD_PRINTF */

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    char name[96];    /* "NVIDIA H200", "SIMT on the CPU" */
    int major, minor; /* compute capability; 0.0 under SIMT */
    int multiprocessors;
    size_t memory_bytes;                         /* installed */
    size_t free_bytes;                           /* now */
    size_t shared_bytes;                         /* a block may ask for, at most */
    size_t cache_bytes;                          /* level 2 */
    char runtime[48], driver[48], libraries[96]; /* versions, for provenance */
} DeviceInfo;

/* Opens the first device (CUDA_VISIBLE_DEVICES chooses another); of several processes on a node,
 * which LOCAL_RANK, SLURM_LOCALID or OMPI_COMM_WORLD_LOCAL_RANK number, each opens the next one, in
 * turn.  -1 and an error that says what is missing: driver, device, or a compute capability below
 * 8.0.  Each thread that uses the device opens it; again does nothing. */
int device_open(void);
int device_info(DeviceInfo *info);
/* Whether it runs what is compiled for sm_90a: Hopper's products of warpgroups.  Allowed while a
 * graph is recorded. */
bool device_has_wgmma(void);

/* ---- memory ---- */

/* Not zeroed (under SIMT: NaN), aligned to 256 bytes. */
void *device_alloc(size_t bytes);
void device_free(void *device_pointer); /* NULL is ignored; waits for the device */
/* Page-locked host memory: copies from and to it overlap with the kernels. */
void *pinned_alloc(size_t bytes);
void pinned_free(void *host_pointer);

/* ---- streams ---- */

typedef void *Stream; /* NULL is not a stream */

Stream stream_create(void);
void stream_free(Stream stream);
/* Waits until everything on the stream is done.  -1 and an error if anything on the device failed
 * since the last call: the first failure, with the kernel's name. */
int device_wait(Stream stream);
/* Notes an error of work for the device, which the next device_wait reports (printf format). */
void device_note(const char *format, ...) BCD_PRINTF(1, 2);

/* In stream order.  Host memory should be pinned, or the copy may wait for the stream. */
void copy_to_device(Stream stream, void *to, const void *from, size_t bytes);
void copy_to_host(Stream stream, void *to, const void *from, size_t bytes);
void copy_on_device(Stream stream, void *to, const void *from, size_t bytes);
void fill_zero(Stream stream, void *device_pointer, size_t bytes);

/* ---- events ---- */

typedef void *Event;

Event event_create(void); /* with times */
void event_free(Event event);
void event_record(Event event, Stream stream);
void stream_wait_event(Stream stream, Event event);
int event_wait(Event event); /* the host waits */
int event_over(Event event); /* 1: it would not have to; 0; -1 and an error */
/* Milliseconds of device time between two events that are over. */
double event_ms(Event from, Event to);

/* ---- graphs: what was put on a stream once, repeated at the cost of one launch ---- */

typedef void *Graph;

/* Between begin and end work on the stream is recorded, not done: pointers and sizes are kept, so
 * the memory must outlive the graph.  Other streams that wait for an event of this one, and that
 * this one waits for again before the end, are recorded with it. */
int graph_begin(Stream stream);
Graph graph_end(Stream stream); /* NULL and an error */
int graph_launch(Graph graph, Stream stream);
void graph_free(Graph graph);

#ifdef __cplusplus
}
#endif

#endif
