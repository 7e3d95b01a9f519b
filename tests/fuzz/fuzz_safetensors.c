/* Headers of safetensors: refused, or every tensor lies in the file and is as long as its shape
 * says. */
#include <stdlib.h>
#include <string.h>

#include "../../data/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
    enum { NUMBERS = 1000 };
    Safetensors file = {.path = "fuzz"};
    size_t size = 8 + count + NUMBERS;
    if (safetensors_parse(&file, (const char *)bytes, count, size) == 0)
        for (int i = 0; i < file.tensors; i++) {
            const SafeTensor *t = &file.tensor[i];
            size_t width = t->kind == NUMBER_F32 ? 4 : 2, numbers = 1;
            for (int d = 0; d < t->rank; d++) numbers *= t->dim[d];
            if (t->first < 8 + count || t->first > size || numbers != t->count) abort();
            if (t->kind != NUMBER_OTHER && t->first + t->count * width > size) abort();
            if (!safetensors_find(&file, t->name)) abort();
        }
    safetensors_close(&file);
    return 0;
}
