#include "library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "../../ref/base/error.h"

/* POSIX gives pointers to functions and objects the same bytes; ISO C has no cast between them. */
static int find(char *functions, const char *const *names, int n, const char *file,
                const char *advice) {
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!library) return error_set("%s was not found (%.150s): %s", file, dlerror(), advice);
    for (int i = n - 1; i >= 0; i--) { /* the first one last: it says that all are there */
        void *function = dlsym(library, names[i]);
        if (!function) return error_set("%s has no %s: %s", file, names[i], advice);
        memcpy(functions + (size_t)i * sizeof function, &function, sizeof function);
    }
    return 0;
}

int library_load(void *functions, const char *const *names, int n, const char *file,
                 const char *advice) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    void *first;
    pthread_mutex_lock(&lock);
    memcpy(&first, functions, sizeof first);
    int failed = first ? 0 : find(functions, names, n, file, advice);
    pthread_mutex_unlock(&lock);
    return failed;
}
