#include "sources.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../ref/error.h"
#include "file.h"

#ifndef BCD_SOURCE_DIR
#error "the Makefile defines BCD_SOURCE_DIR, the root of the source tree"
#endif

enum { MAX_DEPTH = 8 };

typedef struct {
    unsigned char *data;
    size_t count, capacity;
} Text;

/* Makes room for more bytes.  The capacity doubles, so that appending takes linear time. */
static int reserve_text(Text *text, size_t bytes) {
    size_t capacity = text->count + bytes + 1;
    if (capacity <= text->capacity) return 0;
    if (capacity < 2 * text->capacity) capacity = 2 * text->capacity;
    unsigned char *grown = realloc(text->data, capacity);
    if (!grown) return -1;
    text->data = grown;
    text->capacity = capacity;
    return 0;
}

static int append_file(Text *text, const char *path) {
    size_t bytes;
    unsigned char *data = file_read("text", path, "check that it can be read", &bytes);
    if (!data) return -1;
    int failed = reserve_text(text, bytes);
    if (failed) error_set("text: no memory for %s", path);
    if (!failed) memcpy(text->data + text->count, data, bytes);
    if (!failed) text->count += bytes;
    free(data);
    return failed;
}

static bool is_source(const char *name) {
    static const char *const endings[] = {".c", ".h", ".cu", ".md"};
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot && i < sizeof endings / sizeof *endings; i++)
        if (strcmp(dot, endings[i]) == 0) return true;
    return false;
}

/* Compares bytes, where alphasort would follow the user's language. */
static int by_name(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int append_directory(Text *text, const char *dir, int depth);

static int append_entry(Text *text, const char *dir, const char *name, int depth) {
    char path[PATH_BYTES];
    struct stat status;
    if (path_join(path, dir, name)) return -1;
    if (name[0] == '.' || lstat(path, &status) != 0) return 0;
    if (S_ISREG(status.st_mode) && is_source(name)) return append_file(text, path);
    if (S_ISDIR(status.st_mode) && depth > 0) return append_directory(text, path, depth - 1);
    return 0;
}

static int append_directory(Text *text, const char *dir, int depth) {
    struct dirent **entries;
    int count = scandir(dir, &entries, NULL, by_name), failed = 0;
    if (count < 0) return 0; /* a directory that does not exist */
    for (int i = 0; i < count; i++) {
        if (!failed) failed = append_entry(text, dir, entries[i]->d_name, depth);
        free(entries[i]);
    }
    free(entries);
    return failed;
}

unsigned char *sources_read_below(const char *root, size_t *bytes) {
    /* Listed, so that builds, results and data in the tree are not read. */
    static const char *const directories[] = {"cuda",        "data", "dist",
                                              "experiments", "ref",  "tests"};
    Text text = {NULL, 0, 0};
    int failed = append_directory(&text, root, 0);
    for (size_t i = 0; !failed && i < sizeof directories / sizeof *directories; i++) {
        char path[PATH_BYTES];
        failed = path_join(path, root, directories[i]) || append_directory(&text, path, MAX_DEPTH);
    }
    if (!failed && text.count == 0)
        failed =
            error_set("text: no sources in %s, where the program was built; build it again", root);
    if (failed) {
        free(text.data);
        return NULL;
    }
    *bytes = text.count;
    return text.data;
}

unsigned char *sources_read(size_t *bytes) { return sources_read_below(BCD_SOURCE_DIR, bytes); }
