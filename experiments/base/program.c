#include "program.h"

#include <unistd.h>

#include "../../ref/base/error.h"

int program_path(char *path, size_t size, const char *flag) {
    ssize_t length = readlink("/proc/self/exe", path, size - 1);
    if (length < 0) return error_set("%s: cannot find the path of the program", flag);
    path[length] = 0;
    return 0;
}
