#include "message_stage.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "../../ref/base/error.h"
#include "../../ref/stage_device.h"

static atomic_int alive, peak, made;

/* The mark shows a host array where a message is expected. */
typedef struct {
    unsigned mark;
    real data[];
} Message;
enum { MARK = 0x6d736721 };

static Message *message_of(void *message) {
    Message *m = message;
    if (m->mark != MARK) abort();
    return m;
}

static void *message_create(Stage *stage, size_t count) {
    (void)stage;
    Message *m = malloc(sizeof *m + count * sizeof *m->data);
    if (!m) {
        error_set("tests: out of memory");
        return NULL;
    }
    m->mark = MARK;
    int now = ++alive, known = peak;
    while (now > known && !atomic_compare_exchange_weak(&peak, &known, now)) continue;
    made++;
    return m;
}

static void message_pack(Stage *stage, TensorRole role, int block, void *message) {
    stage_read(stage, role, block, message_of(message)->data);
}

static int message_unpack(Stage *stage, TensorRole role, int block, void *message) {
    return stage_write(stage, role, block, message_of(message)->data);
}

void message_stage_free(void *message) {
    message_of(message)->mark = 0;
    free(message);
    alive--;
}

int message_stage_alive(void) { return alive; }
int message_stage_made(void) { return made; }
int message_stage_peak(void) { return atomic_exchange(&peak, alive); }

Stage *message_stage_create(const Model *model, StageSettings settings) {
    /* A pipeline calls nothing else of this class. */
    static const StageDeviceClass messages = {
        .message_create = message_create,
        .message_pack = message_pack,
        .message_unpack = message_unpack,
        .message_free = message_stage_free,
    };
    Stage *stage = stage_ref_create(model, settings);
    if (stage) stage->device = &messages;
    return stage;
}
