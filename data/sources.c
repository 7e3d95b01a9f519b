#include "sources.h"

#include <fts.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../ref/error.h"
#include "file.h"

#ifndef BCD_SOURCE_DIR
#error "the Makefile defines BCD_SOURCE_DIR, the root of the source tree"
#endif

static bool is_source(const char *name) {
    static const char *const endings[] = {".c", ".h", ".cu", ".md"};
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot && i < sizeof endings / sizeof *endings; i++)
        if (strcmp(dot, endings[i]) == 0) return true;
    return false;
}

/* Listed, so that builds, results and data in the tree are not read. */
static bool is_listed(const char *directory) {
    static const char *const names[] = {"cuda", "data", "dist", "experiments", "ref", "tests"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(directory, names[i]) == 0) return true;
    return false;
}

/* Compares bytes, where strcoll would follow the user's language.  In the root, files come before
 * directories. */
static int by_name(const FTSENT **a, const FTSENT **b) {
    const bool a_is_directory = (*a)->fts_info == FTS_D, b_is_directory = (*b)->fts_info == FTS_D;
    if ((*a)->fts_level == 1 && a_is_directory != b_is_directory) return a_is_directory ? 1 : -1;
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

static int append_file(FILE *text, const char *path) {
    size_t bytes;
    unsigned char *data = file_read("text", path, "check that it can be read", &bytes);
    if (!data) return -1;
    const bool written = fwrite(data, 1, bytes, text) == bytes;
    free(data);
    return written ? 0 : error_set("text: no memory for %s", path);
}

static int append_tree(FILE *text, const char *root) {
    char *const roots[] = {(char *)root, NULL};
    FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, by_name);
    if (!tree) return error_set("text: no memory to search %s", root);
    FTSENT *entry;
    int failed = 0;
    while (!failed && (entry = fts_read(tree))) {
        const char *name = entry->fts_name;
        const bool hidden = entry->fts_level > 0 && name[0] == '.';
        if (entry->fts_info == FTS_D && (hidden || (entry->fts_level == 1 && !is_listed(name))))
            fts_set(tree, entry, FTS_SKIP);
        if (entry->fts_info == FTS_F && !hidden && is_source(name))
            failed = append_file(text, entry->fts_path);
    }
    fts_close(tree);
    return failed;
}

unsigned char *sources_read_below(const char *root, size_t *bytes) {
    char *text = NULL;
    FILE *stream = open_memstream(&text, bytes);
    int failed = stream ? append_tree(stream, root) : -1;
    if (!stream || fclose(stream) || !text)
        failed = error_set("text: no memory for the sources");
    else if (!failed && *bytes == 0)
        failed =
            error_set("text: no sources in %s, where the program was built; build it again", root);
    if (!failed) return (unsigned char *)text;
    free(text);
    return NULL;
}

unsigned char *sources_read(size_t *bytes) { return sources_read_below(BCD_SOURCE_DIR, bytes); }
