/* Specifications of models: each text is refused with one line, or it gives a model in which every
 * shape is set and whose canonical specification gives the same model. */
#include <stdlib.h>
#include <string.h>

#include "../../ref/base/error.h"
#include "../../ref/blocks/models.h"
#include "../../ref/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

static void check_shapes(const Model *m) {
    for (int v = 0; v < m->values; v++) {
        const Shape shape = m->value[v].shape;
        if (shape.h < 1 || shape.w < 1 || shape.c < 1) abort();
    }
    for (int p = 0; p < m->params; p++)
        for (int i = 0; i < m->param[p].rank; i++)
            if (m->param[p].dim[i] < 1) abort();
    for (int i = 0; i < m->nodes; i++)
        for (Pass phase = 0; phase < PASSES; phase++)
            if (!(node_flops(&m->node[i], phase) >= 0)) abort();
}

static void check_canonical(const Model *m) {
    Model *again = model_create(m->spec);
    if (!again || strcmp(again->spec, m->spec) != 0 || again->param_count != m->param_count)
        abort();
    model_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
    char *text = malloc(count + 1);
    memcpy(text, bytes, count);
    text[count] = 0;
    Model *m = model_create(text);
    if (m) {
        check_shapes(m);
        check_canonical(m);
    } else if (!*error_message() || strlen(error_message()) > 511) {
        abort();
    }
    model_free(m);
    free(text);
    return 0;
}
