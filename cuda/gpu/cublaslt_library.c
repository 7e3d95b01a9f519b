#include "cublaslt_library.h"

#define TEXT_OF(macro) #macro
#define NAME_OF(major) "libcublasLt.so." TEXT_OF(major)
#define VERSION_OF(major, minor, patch) TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(patch)

CublasLt cublaslt;

/* cuda/check/libraries reads the version out of this text. */
static const char advice[] =
    "install CUDA's libraries, of version " VERSION_OF(
        CUBLAS_VER_MAJOR, CUBLAS_VER_MINOR, CUBLAS_VER_PATCH) " or later, or name their directory "
    "in LD_LIBRARY_PATH";

int cublaslt_open(void) {
    static const char *const names[] = {CUBLASLT_FUNCTIONS(LIBRARY_NAME)};
    return library_load(&cublaslt, names, sizeof names / sizeof *names, NAME_OF(CUBLAS_VER_MAJOR),
                        advice);
}
