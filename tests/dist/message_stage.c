#include "message_stage.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "../../ref/base/error.h"
#include "../../ref/stage_device.h"

/* Of the messages that a rank has created. */
typedef struct {
    atomic_int alive, peak, made;
} MessageCount;

/* By the lowest block of the rank. */
enum { MAX_BLOCKS = 16 };
static MessageCount counts[MAX_BLOCKS];

/* The mark shows a host array where a message is expected. */
typedef struct {
    unsigned mark;
    int maker; /* the lowest block of the rank that created it */
    real data[];
} Message;
enum { MARK = 0x6d736721 };

static Message *message_of(void *message) {
    Message *m = message;
    if (m->mark != MARK) abort();
    return m;
}

static int lowest_block(const Stage *stage) {
    int b = 0;
    while (stage->settings.local && !stage->settings.local[b]) b++;
    return b;
}

static void *message_create(Stage *stage, size_t count) {
    MessageCount *c = &counts[lowest_block(stage)];
    Message *m = malloc(sizeof *m + count * sizeof *m->data);
    if (!m) {
        error_set("tests: out of memory");
        return NULL;
    }
    m->mark = MARK;
    m->maker = lowest_block(stage);
    int now = ++c->alive, known = c->peak;
    while (now > known && !atomic_compare_exchange_weak(&c->peak, &known, now)) continue;
    c->made++;
    return m;
}

static void message_pack(Stage *stage, TensorRole role, int block, void *message) {
    stage_read(stage, role, block, message_of(message)->data);
}

static int message_unpack(Stage *stage, TensorRole role, int block, void *message) {
    return stage_write(stage, role, block, message_of(message)->data);
}

void message_stage_free(void *message) {
    counts[message_of(message)->maker].alive--;
    message_of(message)->mark = 0;
    free(message);
}

int message_stage_made_by(int block) { return counts[block].made; }
int message_stage_peak_by(int block) {
    return atomic_exchange(&counts[block].peak, counts[block].alive);
}

int message_stage_alive(void) {
    int sum = 0;
    for (int b = 0; b < MAX_BLOCKS; b++) sum += counts[b].alive;
    return sum;
}

int message_stage_made(void) {
    int sum = 0;
    for (int b = 0; b < MAX_BLOCKS; b++) sum += counts[b].made;
    return sum;
}

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
