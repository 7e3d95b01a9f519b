#include "nccl_library.h"

#include "../../ref/base/error.h"

NcclLibrary nccl;

int nccl_open(void) {
    static const char *const names[] = {NCCL_FUNCTIONS(LIBRARY_NAME)};
    static const char advice[] =
        "install NCCL 2.22 or later, or name its directory in LD_LIBRARY_PATH";
    int version = 0;
    if (library_load(&nccl, names, sizeof names / sizeof *names, "libnccl.so.2", advice)) return -1;
    if (nccl.ncclGetVersion(&version) == ncclSuccess && version >= 22200) return 0;
    return error_set("libnccl.so.2 has version %d.%d: %s", version / 10000, version / 100 % 100,
                     advice);
}
