/* NVIDIA's libraries are looked for when they are first needed, so that the program starts on a
 * machine without them.  What is used of each is a struct of pointers to its functions. */
#pragma once

/* The structs and the names of their members are made of one list of functions. */
#define LIBRARY_MEMBER(name) __typeof__(name) *name;
#define LIBRARY_NAME(name) #name,

/* Overwrites `functions`, a struct of n pointers that were NULL, with the functions of these names
 * in the library `file`; does nothing if it has before.  Threads may call it together.  Returns -1
 * when the library or a function is not found, with an error that ends with the advice. */
int library_load(void *functions, const char *const *names, int n, const char *file,
                 const char *advice);
