#include "cublaslt_library.h"

#define TEXT_OF(macro) #macro
#define NAME_OF(major) "libcublasLt.so." TEXT_OF(major)

CublasLt cublaslt;

int cublaslt_open(void) {
    static const char *const names[] = {CUBLASLT_FUNCTIONS(LIBRARY_NAME)};
    return library_load(&cublaslt, names, sizeof names / sizeof *names, NAME_OF(CUBLAS_VER_MAJOR),
                        "install CUDA's libraries, or name their directory in LD_LIBRARY_PATH");
}
