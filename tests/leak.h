/* Functions that leave nothing allocated. */
#pragma once

/* Runs a function twice: what the first run allocates may be kept.  Returns how many allocations of
 * the second, by this program itself and not by libraries, are not freed. */
int allocations_left(void (*function)(void)); /* ref/test_out_of_memory.c */
