/* Boundary values of a pipeline on their way between stages, in device memory (StageClass.message_*
 * of ref/stage.h).
 *
 * Nothing waits for the host.  `ready` stands for the last work on the data: whoever reads or
 * writes them puts, on a stream of its own, a wait for it before, and records it after:
 *
 *     stream_wait_event(stream, message->ready);
 *     ... work on message->data ...
 *     event_record(message->ready, stream);
 *
 * So a message may be freed while the device still works on it: its memory goes to the next one,
 * whose first user waits for that. */
#ifndef CUDA_MESSAGE_H
#define CUDA_MESSAGE_H

#include "device.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    void *data;   /* device memory, not zeroed, aligned to 256 bytes */
    size_t bytes; /* as asked for */
    Event ready;
} DeviceMessage;

/* Any thread that has called device_open.  Memory is that of a message freed before, if one fits,
 * so that the device is not stopped for an allocation.  NULL and an error. */
DeviceMessage *message_new(size_t bytes);
/* Of a DeviceMessage; any thread, any time; NULL is ignored. */
void message_free(void *message);

/* Memory of free messages is kept while anyone uses them: each stage, and each transport that makes
 * messages, for as long as it lives. */
void message_users_add(void);
void message_users_remove(void); /* the last one waits for the device */

#ifdef __cplusplus
}
#endif

#endif
