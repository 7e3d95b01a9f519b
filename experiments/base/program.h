/* Where the running program is: its libraries, scripts and other commands lie beside it. */
#pragma once

#include <stddef.h>

/* Overwrites `path` with the path of the running program.  -1 and an error that begins with
 * `flag`. */
int program_path(char *path, size_t size, const char *flag);
