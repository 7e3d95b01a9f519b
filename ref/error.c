#include "error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char message[ERROR_BYTES];

int error_set(const char *format, ...) {
    char next[sizeof message]; /* the one before may be among the arguments */
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(next, sizeof next, format, arguments);
    va_end(arguments);
    memcpy(message, next, sizeof message);
    return -1;
}

const char *error_message(void) { return message; }
