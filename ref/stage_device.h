/* What a stage on a device offers besides the calls of stage.h, because the device has memory of
 * its own: work that stays there, without a way through the host.  stage->device is this class, or
 * NULL for a stage in host memory.  The engine of one device uses all of it but messages, and a
 * pipeline messages alone. */
#pragma once

#include "stage.h"

typedef struct StageDeviceClass {
    /* After begin, and with the outputs of the blocks below `first` in place: runs forward from
     * there, loss, gradients and, if `last`, clipping and update, as one piece of work that a
     * device can record and repeat.  Overwrites *loss: with 0 or, if `last`, with that of all
     * micro-batches of the step.  -1 and an error if the loss is not finite or, where gradients are
     * clipped, the gradient's norm; nothing is updated then.  Also -1 and an error if the device
     * has failed.  After -1 the caller discards the step. */
    int (*step)(Stage *stage, int first, double scale, bool last, double lr, Loss *loss);
    /* Charges the device time from this call to the next one to *ms.  With NULL, waits, adds all
     * that was charged, and charges nobody from then on; until then every ms must live.  discard
     * drops what was charged. */
    void (*charge_time)(Stage *stage, double *ms);
    /* Keeps the bytes of a data set's images on the device and makes the images of its batches from
     * them from now on (Dataset.resident).  The data set must outlive the stage.  -1 and an error
     * if it has no bytes, or they do not fit into settings.image_bytes, which all data sets share;
     * if two data sets are there already; or if the device has failed. */
    int (*keep_images)(Stage *stage, Dataset *data);

    /* ---- the prefix cache ---- */

    /* Frees what was there, makes room for as many samples of `width` elements as `bytes` hold, and
     * returns how many; -1 and an error when memory runs out. */
    int (*cache_reserve)(Stage *stage, size_t width, size_t bytes);
    /* Copy the output of `block`, sample i of the n in flight, to and from slots[i]; a negative
     * slot skips the sample. */
    void (*cache_put)(Stage *stage, int block, const int *slots, int n);
    void (*cache_get)(Stage *stage, int block, const int *slots, int n);

    /* ---- messages: copies of block outputs, or of their gradients, which a transport carries from
     * device to device ---- */

    /* Returns an empty message of `count` elements; NULL and an error when memory runs out. */
    void *(*message_create)(Stage *stage, size_t count);
    /* Copies the block's output, or its gradient, of the n samples in flight into the message.  If
     * that is too small, the next call that waits for the device fails. */
    void (*message_pack)(Stage *stage, TensorRole role, int block, void *message);
    /* Copies the other way.  -1 and an error unless the message has exactly that size. */
    int (*message_unpack)(Stage *stage, TensorRole role, int block, void *message);
    /* Needs no stage: another stage on the same device may have created the message. */
    void (*message_free)(void *message);
} StageDeviceClass;

/* ---- the calls, as above; a stage without a device must not be asked for them ---- */

static inline int stage_step(Stage *stage, int first, double scale, bool last, double lr,
                             Loss *loss) {
    return stage->device->step(stage, first, scale, last, lr, loss);
}
static inline void stage_charge_time(Stage *stage, double *ms) {
    stage->device->charge_time(stage, ms);
}
static inline int stage_keep_images(Stage *stage, Dataset *data) {
    return stage->device->keep_images(stage, data);
}
static inline int stage_cache_reserve(Stage *stage, size_t width, size_t bytes) {
    return stage->device->cache_reserve(stage, width, bytes);
}
static inline void stage_cache_put(Stage *stage, int block, const int *slots, int n) {
    stage->device->cache_put(stage, block, slots, n);
}
static inline void stage_cache_get(Stage *stage, int block, const int *slots, int n) {
    stage->device->cache_get(stage, block, slots, n);
}
static inline void *stage_message_create(Stage *stage, size_t count) {
    return stage->device->message_create(stage, count);
}
static inline void stage_message_pack(Stage *stage, TensorRole role, int block, void *message) {
    stage->device->message_pack(stage, role, block, message);
}
static inline int stage_message_unpack(Stage *stage, TensorRole role, int block, void *message) {
    return stage->device->message_unpack(stage, role, block, message);
}
static inline void stage_message_free(Stage *stage, void *message) {
    stage->device->message_free(message);
}
