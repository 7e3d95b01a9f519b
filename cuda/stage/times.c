/* Device times for `bcd trace`: an event on the stream wherever the charged count changes. */
#include <stdlib.h>

#include "stage_internal.h"

/* Returns the next free charge, or NULL when memory runs out.  Events are reused. */
static Charge *next_charge(CudaStage *s) {
    if (s->charges == s->charges_capacity) {
        int capacity = s->charges_capacity ? 2 * s->charges_capacity : 64;
        Charge *grown = realloc(s->charge, (size_t)capacity * sizeof *grown);
        if (!grown) return NULL;
        for (int i = s->charges_capacity; i < capacity; i++) grown[i] = (Charge){0};
        s->charge = grown;
        s->charges_capacity = capacity;
    }
    Charge *charge = &s->charge[s->charges];
    if (!charge->event) charge->event = event_create(true);
    return charge->event ? charge : NULL;
}

static void settle(CudaStage *s) {
    if (s->charges == 0) return;
    Event end = s->charge[s->charges - 1].event;
    bool over = event_wait(end) == 0;
    for (int i = 0; i + 1 < s->charges && over; i++)
        if (s->charge[i].ms)
            *s->charge[i].ms += event_ms(s->charge[i].event, s->charge[i + 1].event);
    s->charges = 0;
}

void times_charge(Stage *base, double *ms) {
    CudaStage *s = cuda_stage(base);
    Charge *charge = next_charge(s);
    if (charge) {
        event_record(charge->event, s->run.stream);
        charge->ms = ms;
        s->charges++;
    }
    if (!ms) settle(s);
}

void times_drop(CudaStage *s) { s->charges = 0; }

void times_close(CudaStage *s) {
    for (int i = 0; i < s->charges_capacity; i++) event_free(s->charge[i].event);
    free(s->charge);
}
