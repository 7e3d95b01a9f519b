#include "places.h"

#include <stdint.h>
#include <stdlib.h>

#include "../ref/error.h"
#include "arena.h"

int places_make(Places *places, const Model *m, size_t size, const bool *active) {
    *places = (Places){.param = calloc((size_t)m->params + 1, sizeof(size_t)),
                       .block = calloc((size_t)m->blocks + 1, sizeof(size_t))};
    if (!places->param || !places->block) {
        places_free(places);
        return error_set("stage: out of memory for the tables of %s", m->name);
    }
    for (int b = 0; b < m->blocks; b++) {
        places->block[b] = places->bytes;
        for (int p = m->block[b].first_param; p < m->block[b].end_param; p++) {
            places->param[p] = SIZE_MAX;
            if (active && !active[b]) continue;
            places->param[p] = places->bytes;
            places->requested += m->param[p].count * size;
            places->bytes += arena_pad(m->param[p].count * size);
        }
    }
    places->block[m->blocks] = places->bytes;
    return 0;
}

void places_free(Places *places) {
    free(places->param);
    free(places->block);
    *places = (Places){0};
}
