/* Finds functions that do not free what they allocate. */
#pragma once

/* Runs a function twice, since the first run may allocate what is kept. Returns how many
 * allocations of the second run are not freed. Only this program's own are counted, not those of
 * libraries. */
int allocations_left(void (*function)(void)); /* ref/test_out_of_memory.c */
