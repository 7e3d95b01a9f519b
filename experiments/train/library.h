/* Parts of the program that are libraries of their own, libbcd-NAME.so next to it, loaded when
 * asked for: the program itself needs neither what they are built with nor what they run on. */
#ifndef EXPERIMENTS_LIBRARY_H
#define EXPERIMENTS_LIBRARY_H

#include <stddef.h>

/* Where this program lies.  -1 and an error that begins with the flag. */
int program_path(char *path, size_t size, const char *flag);

/* Loads libbcd-NAME.so; NULL and an error: "FLAG: there is no PATH; make builds it WHERE". */
void *library_open(const char *name, const char *flag, const char *where);

/* *function, a pointer to a function, becomes that of the symbol; -1 and an error. */
int library_find(void *library, const char *symbol, void *function);

#endif
