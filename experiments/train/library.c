#include "library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../../ref/error.h"
#include "../../ref/headers.h"

int program_path(char *path, size_t size, const char *flag) {
    ssize_t length = readlink("/proc/self/exe", path, size - 1);
    if (length < 0) return error_set("%s: cannot tell where the program lies", flag);
    path[length] = 0;
    return 0;
}

/* libbcd-NAME.so in the program's directory. */
static int library_path(char *path, size_t size, const char *name, const char *flag) {
    char program[512];
    if (program_path(program, sizeof program, flag)) return -1;
    *strrchr(program, '/') = 0;
    snprintf(path, size, "%s/libbcd-%s.so", program, name);
    return 0;
}

void *library_open(const char *name, const char *flag, const char *where) {
    char path[600];
    if (library_path(path, sizeof path, name, flag)) return NULL;
    if (access(path, F_OK)) {
        error_set("%s: there is no %s; make builds it%s", flag, path, where);
        return NULL;
    }
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        error_set("%s: %s", flag, dlerror());
        return NULL;
    }
    const char *headers = dlsym(library, "bcd_headers"); /* its own, before the program's */
    if (!headers || strcmp(headers, bcd_headers) != 0) {
        error_set("%s: %s was built with another version of this program; make builds it anew",
                  flag, path);
        return NULL;
    }
    return library;
}

/* Functions cannot be cast from object pointers in C; POSIX says that their bytes are the same. */
int library_find(void *library, const char *symbol, void *function) {
    void *address = dlsym(library, symbol);
    if (!address) return error_set("%s", dlerror());
    memcpy(function, &address, sizeof address);
    return 0;
}
