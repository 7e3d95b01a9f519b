/* The text of the project's own sources: *.c, *.h, *.cu and *.md. */
#pragma once

#include <stddef.h>

/* Returns all of it, in an order that depends only on the names of the files, for the caller to
 * free.  NULL and an error if the source tree is no longer where the program was built. */
unsigned char *sources_read(size_t *bytes);

/* Does the same for a tree at `root`. */
unsigned char *sources_read_below(const char *root, size_t *bytes);
