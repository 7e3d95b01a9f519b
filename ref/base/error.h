/* One line that says what went wrong, where, and what to do.
 *
 * A function that can fail returns 0; on failure -1, with the error set.  One that returns a
 * pointer returns NULL then.  Comments say "-1 and an error when ..." for short.  The caller passes
 * the failure on, and the program prints error_message().  Library code never exits, except that
 * an op without working memory says so and ends the process (fast/scratch.h, and ops/attention.c
 * among the textbook loops).  It prints nothing else but two notes of the GPU's: that steps run
 * without graphs, and the log that BCD_LT_LOG asks for. */
#pragma once

#include <stdbool.h>

#define BCD_PRINTF(format_index, first_argument) \
    __attribute__((format(printf, format_index, first_argument)))

/* Longer messages are cut: two paths, each as long as a flag may be, and a sentence fit. */
enum { ERROR_BYTES = 2048 };

/* Records an error message for this thread (printf format, one line, no newline), in place of any
 * earlier one.  The earlier one may be an argument: error_set("%s: %s", path, error_message()).
 * Always returns -1, so that `return error_set(...)` fails in one statement. */
int error_set(const char *format, ...) BCD_PRINTF(1, 2);
/* Does the same where a training has diverged: its loss or a gradient's norm is not finite. */
int error_diverged(const char *format, ...) BCD_PRINTF(1, 2);
/* Does the same as error_set and returns NULL. */
void *error_null(const char *format, ...) BCD_PRINTF(1, 2);

/* Returns the last message of this thread, or "".  Valid until the next error_set. */
const char *error_message(void);
/* Returns true if that was an error_diverged. */
bool error_is_diverged(void);
