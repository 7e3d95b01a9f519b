/* Memory for the program.  A failure ends it: these print one line, "bcd: out of memory (N bytes)",
 * and exit with status 1, so that callers have nothing to check.
 *
 * That loses no more than kill -9 does, which is tested.  Files of results appear whole or not at
 * all, a training continues from its last checkpoint, and mpirun notices that a rank has ended.
 *
 * It is not for the first array whose length a file states: a damaged file may state any length,
 * and is an error like others.  What is then made of those rows may use these. */
#pragma once

#include <stddef.h>

/* As malloc, calloc, realloc and strdup, but they return NULL only for no bytes. */
void *xmalloc(size_t bytes);
void *xcalloc(size_t count, size_t size);
void *xrealloc(void *old, size_t bytes);
char *xstrdup(const char *text);

/* Makes memory of a MiB or more go back to the system when it is freed, with glibc; call it first.
 * glibc raises this size with what is freed.  The gradients and state of a phase would then lie
 * between what a save had freed, and the process would hold up to half as much again as planned. */
void alloc_give_back(void);
