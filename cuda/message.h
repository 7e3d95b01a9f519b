/* Boundary values of a pipeline on their way between stages, in device memory (the messages of
 * ref/stage_device.h).
 *
 * Nothing waits for the host.  The event `ready` marks the last work on the data.  Whoever reads or
 * writes the data waits for it on a stream of its own before, and records it after:
 *
 *     stream_wait_event(stream, message->ready);
 *     ... work on message->data ...
 *     event_record(message->ready, stream);
 *
 * So a message may be freed while the device still works on it: its memory goes to the next
 * message, whose first user waits for `ready`. */
#pragma once

#include "device.h"

typedef struct DeviceMessage {
    void *data;   /* device memory, not zeroed, aligned to 256 bytes */
    size_t bytes; /* as asked for */
    Event ready;
    /* message.c: */
    size_t capacity;
    struct DeviceMessage *next; /* in the list of free messages */
} DeviceMessage;

/* Returns a message of `bytes`; NULL and an error when memory runs out.  It reuses the memory of a
 * freed message if one fits, because an allocation would stop the device.  May be called by any
 * thread that has called device_open. */
DeviceMessage *message_new(size_t bytes);
/* Frees a DeviceMessage.  May be called by any thread at any time; NULL is ignored. */
void message_free(void *message);

/* Memory of free messages is kept while anyone uses them: each stage, and each transport that makes
 * messages, for as long as it lives. */
void message_users_add(void);
void message_users_remove(void); /* the last one waits for the device */
