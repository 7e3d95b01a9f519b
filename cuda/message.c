#include "message.h"

#include <pthread.h>
#include <stdlib.h>

#include "../ref/alloc.h"

typedef struct Kept {
    DeviceMessage message; /* must come first: users get a pointer to it */
    size_t capacity;
    struct Kept *next; /* in the list of free messages */
} Kept;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Kept *idle;
static int users;

static void release(Kept *kept) {
    device_free(kept->message.data); /* waits until the device is done with it */
    event_free(kept->message.ready);
    free(kept);
}

static Kept *make(size_t bytes) {
    Kept *kept = calloc(1, sizeof *kept);
    if (!kept) return error_null("message: out of memory");
    kept->capacity = align_bytes(bytes);
    kept->message.data = device_alloc(kept->capacity);
    kept->message.ready = event_create(false);
    if (kept->message.data && kept->message.ready) return kept;
    release(kept);
    return NULL;
}

/* Takes the smallest message that is large enough from the free list; NULL if there is none.  Few
 * sizes occur, because a model has few kinds of boundary and a batch few sizes of part. */
static Kept *take_idle(size_t bytes) {
    Kept **best = NULL;
    for (Kept **k = &idle; *k; k = &(*k)->next)
        if ((*k)->capacity >= bytes && (!best || (*k)->capacity < (*best)->capacity)) best = k;
    Kept *kept = best ? *best : NULL;
    if (kept) *best = kept->next;
    return kept;
}

DeviceMessage *message_new(size_t bytes) {
    pthread_mutex_lock(&lock);
    Kept *kept = take_idle(bytes);
    pthread_mutex_unlock(&lock);
    if (!kept) kept = make(bytes);
    if (!kept) return NULL;
    kept->message.bytes = bytes;
    return &kept->message;
}

void message_free(void *message) {
    Kept *kept = message;
    if (!kept) return;
    pthread_mutex_lock(&lock);
    bool keep = users > 0;
    if (keep) {
        kept->next = idle;
        idle = kept;
    }
    pthread_mutex_unlock(&lock);
    if (!keep) release(kept);
}

void message_users_add(void) {
    pthread_mutex_lock(&lock);
    users++;
    pthread_mutex_unlock(&lock);
}

void message_users_remove(void) {
    Kept *last = NULL;
    pthread_mutex_lock(&lock);
    if (--users == 0) {
        last = idle;
        idle = NULL;
    }
    pthread_mutex_unlock(&lock);
    while (last) {
        Kept *next = last->next;
        release(last);
        last = next;
    }
}
