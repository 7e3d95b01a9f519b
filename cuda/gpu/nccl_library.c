#include "nccl_library.h"

NcclLibrary nccl;

int nccl_open(void) {
    static const char *const names[] = {NCCL_FUNCTIONS(LIBRARY_NAME)};
    return library_load(&nccl, names, sizeof names / sizeof *names, "libnccl.so.2",
                        "install NCCL 2.14 or later, or name its directory in LD_LIBRARY_PATH");
}
