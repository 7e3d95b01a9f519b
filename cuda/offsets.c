#include "offsets.h"

#include <stdint.h>
#include <stdlib.h>

#include "../ref/error.h"
#include "arena.h"

static void add(ParamOffsets *offsets, const Model *m, size_t size, int param) {
    offsets->param[param] = offsets->bytes;
    offsets->requested += m->param[param].count * size;
    offsets->bytes += align_bytes(m->param[param].count * size);
}

int param_offsets_create(ParamOffsets *offsets, const Model *m, const StageSettings *settings,
                         size_t size, const bool *active) {
    *offsets = (ParamOffsets){.param = calloc((size_t)m->params + 1, sizeof(size_t)),
                              .block = calloc((size_t)m->blocks + 1, sizeof(size_t))};
    if (!offsets->param || !offsets->block) {
        param_offsets_destroy(offsets);
        return error_set("stage: out of memory for the tables of %s", m->name);
    }
    for (int p = 0; p < m->params; p++) offsets->param[p] = SIZE_MAX;
    for (int b = 0; b < m->blocks; b++) {
        offsets->block[b] = offsets->bytes;
        if (!block_is_local(settings, b) || (active && !active[b])) continue;
        for (int p = m->block[b].first_param; p < m->block[b].end_param; p++)
            add(offsets, m, size, p);
    }
    offsets->block[m->blocks] = offsets->bytes;
    offsets->own_requested = offsets->requested;
    for (int p = 0; p < m->params; p++) {
        int block = m->param[p].block;
        if (block_is_local(settings, block) || (active && !active[block])) continue;
        if (param_is_local(m, settings, p)) add(offsets, m, size, p);
    }
    return 0;
}

void param_offsets_destroy(ParamOffsets *offsets) {
    free(offsets->param);
    free(offsets->block);
    *offsets = (ParamOffsets){0};
}
