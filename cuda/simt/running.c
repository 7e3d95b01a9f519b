/* The launch that runs now, and the first error. */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "internal.h"

SimtIndex threadIdx, blockIdx;
SimtSize blockDim, gridDim;
const SimtLaunch *simt_running;
uint64_t simt_launch_number;
const SimtRace *simt_race;

static pthread_mutex_t error_lock = PTHREAD_MUTEX_INITIALIZER; /* any thread may note an error */
static struct {
    bool set;
    char text[SIMT_ERROR_BYTES];
} error;

bool simt_take_error(char text[SIMT_ERROR_BYTES]) {
    pthread_mutex_lock(&error_lock);
    bool set = error.set;
    if (set) memcpy(text, error.text, sizeof error.text);
    error.set = false;
    pthread_mutex_unlock(&error_lock);
    return set;
}
const char *simt_error(void) {
    pthread_mutex_lock(&error_lock);
    const char *text = error.set ? error.text : NULL;
    pthread_mutex_unlock(&error_lock);
    return text;
}
void simt_clear_error(void) {
    char text[SIMT_ERROR_BYTES];
    simt_take_error(text);
}

static void note(const char *prefix, const char *format, va_list arguments) {
    char text[SIMT_ERROR_BYTES] = "";
    int length = snprintf(text, sizeof text, "%s", prefix);
    size_t used = length < 0 ? 0 : (size_t)length;
    if (used < sizeof text) vsnprintf(text + used, sizeof text - used, format, arguments);
    pthread_mutex_lock(&error_lock);
    if (!error.set) memcpy(error.text, text, sizeof text);
    error.set = true;
    pthread_mutex_unlock(&error_lock);
}

void simt_note_error(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    note("", format, arguments);
    va_end(arguments);
}

void simt_note_thread_error(SimtIndex thread, SimtSite site, const char *format, ...) {
    char prefix[512];
    snprintf(prefix, sizeof prefix,
             "kernel %s, block (%u,%u,%u), thread (%u,%u,%u), %s:%d: ", simt_running->kernel,
             blockIdx.x, blockIdx.y, blockIdx.z, thread.x, thread.y, thread.z,
             site.file ? site.file : simt_running->site.file,
             site.file ? site.line : simt_running->site.line);
    va_list arguments;
    va_start(arguments, format);
    note(prefix, format, arguments);
    va_end(arguments);
}
