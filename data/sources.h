/* The text of the project's own sources. */
#ifndef DATA_SOURCES_H
#define DATA_SOURCES_H

#include <stddef.h>

/* All of it, in an order that depends on the names alone; to be freed.  NULL and an error if the
 * source tree is not where the program was built. */
unsigned char *sources_read(size_t *bytes);

/* The same below any directory. */
unsigned char *sources_read_below(const char *root, size_t *bytes);

#endif
