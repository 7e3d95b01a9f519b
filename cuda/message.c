#include "message.h"

#include <pthread.h>
#include <stdlib.h>

#include "../ref/base/alloc.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static DeviceMessage *idle;
static int users;

static void release(DeviceMessage *m) {
    device_free(m->data); /* waits until the device is done with it */
    event_free(m->ready);
    free(m);
}

static DeviceMessage *make(size_t bytes) {
    DeviceMessage *m = calloc(1, sizeof *m);
    if (!m) return error_null("message: out of memory");
    m->capacity = align_bytes(bytes);
    m->data = device_alloc(m->capacity);
    m->ready = event_create(false);
    if (m->data && m->ready) return m;
    release(m);
    return NULL;
}

/* Takes the smallest message that is large enough from the free list; NULL if there is none.  Few
 * sizes occur, because a model has few kinds of boundary and a batch few sizes of part. */
static DeviceMessage *take_idle(size_t bytes) {
    DeviceMessage **best = NULL;
    for (DeviceMessage **m = &idle; *m; m = &(*m)->next)
        if ((*m)->capacity >= bytes && (!best || (*m)->capacity < (*best)->capacity)) best = m;
    DeviceMessage *taken = best ? *best : NULL;
    if (taken) *best = taken->next;
    return taken;
}

DeviceMessage *message_new(size_t bytes) {
    pthread_mutex_lock(&lock);
    DeviceMessage *m = take_idle(bytes);
    pthread_mutex_unlock(&lock);
    if (!m) m = make(bytes);
    if (m) m->bytes = bytes;
    return m;
}

void message_free(void *message) {
    DeviceMessage *m = message;
    if (!m) return;
    pthread_mutex_lock(&lock);
    bool keep = users > 0;
    if (keep) {
        m->next = idle;
        idle = m;
    }
    pthread_mutex_unlock(&lock);
    if (!keep) release(m);
}

void message_users_add(void) {
    pthread_mutex_lock(&lock);
    users++;
    pthread_mutex_unlock(&lock);
}

void message_users_remove(void) {
    DeviceMessage *last = NULL;
    pthread_mutex_lock(&lock);
    if (--users == 0) {
        last = idle;
        idle = NULL;
    }
    pthread_mutex_unlock(&lock);
    while (last) {
        DeviceMessage *next = last->next;
        release(last);
        last = next;
    }
}
