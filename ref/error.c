#include "error.h"

#include <stdarg.h>
#include <stdio.h>

static _Thread_local char message[512];

int error_set(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return -1;
}

const char *error_message(void) { return message; }
