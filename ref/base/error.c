#include "error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char message[ERROR_BYTES];
static _Thread_local bool diverged;

static void record(const char *format, va_list arguments) {
    char next[sizeof message]; /* the one before may be among the arguments */
    vsnprintf(next, sizeof next, format, arguments);
    memcpy(message, next, sizeof message);
    diverged = false;
}

int error_set(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    record(format, arguments);
    va_end(arguments);
    return -1;
}

int error_diverged(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    record(format, arguments);
    va_end(arguments);
    diverged = true;
    return -1;
}

void *error_null(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    record(format, arguments);
    va_end(arguments);
    return NULL;
}

const char *error_message(void) { return message; }

bool error_is_diverged(void) { return diverged; }
