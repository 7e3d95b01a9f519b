/* The SIMT layer as its host program sees it, in C: how launches are run, what went wrong, and how
 * a launch is put aside to be run later (graphs).
 *
 * Launches may come from any host thread; one runs at a time, and is over when LAUNCH returns. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* In which order the blocks of a grid, and the ready threads of a block, get their turn.  A correct
 * kernel gives the same bits in all of them. */
typedef enum { SIMT_ASCENDING, SIMT_DESCENDING, SIMT_RANDOM, SIMT_ORDERS } SimtOrder;
void simt_set_order(SimtOrder order, uint64_t seed); /* seed: of SIMT_RANDOM */

/* Returns the first error of any thread's launch since simt_clear_error, one line, valid until it
 * is cleared; NULL if there was none.  A launch with an error is given up where the error was
 * found: its other threads are dropped, and what was written stays written. */
const char *simt_error(void);
void simt_clear_error(void);
/* Does both at once: moves the error to text.  Returns false if there was none. */
enum { SIMT_ERROR_BYTES = 768 };
bool simt_take_error(char text[SIMT_ERROR_BYTES]);

/* From now on every launch and copy is first given to `record`.  If that returns true, it has kept
 * a copy of the `bytes` at `closure` (aligned to 16) and will call run(copy) later, any number of
 * times; the work is not done now.  With NULL all work is done at once. */
typedef void SimtRun(const void *closure);
typedef bool SimtRecord(void *stream, SimtRun *run, const void *closure, size_t bytes);
void simt_set_recorder(SimtRecord *record);

/* From now on streams are late (late.h): work put on them is done when the host waits, in an order
 * drawn from the seed.  With seed 0, as at the start of the program, it is done at once. */
void simt_set_late(uint64_t seed);

/* Returns true if this program was built with the race checker (tests/simt/race). */
bool simt_checks_races(void);

/* Fills memory with bytes that read as NaN in float, double and bf16, and as -1 in int. */
void simt_poison(void *memory, size_t bytes);

#ifdef __cplusplus
}
#endif
