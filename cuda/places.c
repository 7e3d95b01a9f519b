#include "places.h"

#include <stdint.h>
#include <stdlib.h>

#include "../ref/error.h"
#include "arena.h"

static void add(Places *places, const Model *m, size_t size, int param) {
    places->param[param] = places->bytes;
    places->requested += m->param[param].count * size;
    places->bytes += arena_pad(m->param[param].count * size);
}

int places_make(Places *places, const Model *m, const StageSettings *settings, size_t size,
                const bool *active) {
    *places = (Places){.param = calloc((size_t)m->params + 1, sizeof(size_t)),
                       .block = calloc((size_t)m->blocks + 1, sizeof(size_t))};
    if (!places->param || !places->block) {
        places_free(places);
        return error_set("stage: out of memory for the tables of %s", m->name);
    }
    for (int p = 0; p < m->params; p++) places->param[p] = SIZE_MAX;
    for (int b = 0; b < m->blocks; b++) {
        places->block[b] = places->bytes;
        if (!block_is_local(settings, b) || (active && !active[b])) continue;
        for (int p = m->block[b].first_param; p < m->block[b].end_param; p++)
            add(places, m, size, p);
    }
    places->block[m->blocks] = places->bytes;
    places->own_requested = places->requested;
    for (int p = 0; p < m->params; p++) {
        int block = m->param[p].block;
        if (block_is_local(settings, block) || (active && !active[block])) continue;
        if (param_is_local(m, settings, p)) add(places, m, size, p);
    }
    return 0;
}

void places_free(Places *places) {
    free(places->param);
    free(places->block);
    *places = (Places){0};
}
