#include "scratch.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../data/file.h"

static char directory[256];
static char expected[1024];

static void remove_directory(void) {
    char command[512];
    snprintf(command, sizeof command, "rm -rf '%s'", directory);
    if (system(command) != 0) fprintf(stderr, "%s is left behind\n", directory);
}

static void make_directory(void) {
    if (*directory) return;
    const char *root = getenv("TMPDIR");
    snprintf(directory, sizeof directory, "%s/bcd-data-XXXXXX", root ? root : "/tmp");
    if (!mkdtemp(directory)) {
        perror(directory);
        exit(1);
    }
    atexit(remove_directory);
}

const char *scratch_directory(void) {
    make_directory();
    return directory;
}

const char *scratch_path(const char *name) {
    static char path[8][600];
    static int next;
    make_directory();
    char *result = path[next++ % 8];
    snprintf(result, sizeof path[0], "%s/%s", directory, name);
    for (char *slash = result + strlen(directory) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = 0;
        mkdir(result, 0777);
        *slash = '/';
    }
    return result;
}

const char *scratch_file(const char *name, const void *bytes, size_t count) {
    const char *path = scratch_path(name);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(bytes, 1, count, file) != count || fclose(file) != 0) {
        perror(path);
        exit(1);
    }
    return path;
}

const char *scratch_text(const char *name, const char *text) {
    return scratch_file(name, text, strlen(text));
}

char *scratch_read(const char *path, size_t *count) {
    char *bytes = (char *)file_read("test", path, "it is read", count);
    if (bytes) return bytes;
    *count = 0;
    return calloc(1, 1);
}

bool file_exists(const char *path) { return access(path, F_OK) == 0; }

bool error_is(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(expected, sizeof expected, format, arguments);
    va_end(arguments);
    return strcmp(error_message(), expected) == 0;
}

const char *scratch_expected(void) { return expected; }

const char *real_file(const char *name) {
    static char path[1024];
    const char *root = getenv("BCD_DATA");
    snprintf(path, sizeof path, "%s/%s", root && *root ? root : "datasets", name);
    return file_exists(path) ? path : NULL;
}

Batch batch_one(const Dataset *dataset, int sample, uint64_t position) {
    const size_t count = shape_count(dataset->input);
    Batch batch = {.n = 1};
    batch.ids = malloc(sizeof(int));
    batch.ids[0] = sample;
    batch.targets = malloc((dataset->tokens ? count : 1) * sizeof(int));
    if (dataset->tokens)
        batch.tokens = malloc(count * sizeof(int));
    else
        batch.images = malloc(count * sizeof(real));
    dataset->fetch(dataset, &batch, position);
    return batch;
}
