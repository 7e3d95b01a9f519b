/* CIFAR records: whatever the bytes are, they are refused or every label is in range. */
#include <stdlib.h>

#include "../../data/images.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
    for (int kind = 0; kind < 2; kind++) {
        const size_t record = (size_t)(kind == CIFAR_100 ? 2 : 1) + IMAGE_BYTES;
        const int samples = (int)(count / record);
        if (cifar_check(bytes, count, (CifarKind)kind, samples, "fuzz")) continue;
        for (int n = 0; n < samples; n++)
            if (bytes[(size_t)n * record + record - IMAGE_BYTES - 1] >=
                (kind == CIFAR_100 ? 100 : 10))
                abort();
    }
    return 0;
}
