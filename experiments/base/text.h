/* Short texts that are returned by value, so that nobody has to provide a buffer:
 *
 *   printf("%s\n", text_of("%d x %d", rows, columns).text);
 *
 * Such a text lives until the end of its statement; one that is assigned lives as its variable. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "../../ref/base/error.h" /* BCD_PRINTF */

/* Longer texts are cut; a path below a directory that a flag names fits. */
enum { TEXT_BYTES = 640 };
typedef struct {
    char text[TEXT_BYTES];
} Text;

Text text_of(const char *format, ...) BCD_PRINTF(1, 2);
/* Appends to a text. */
void text_add(Text *text, const char *format, ...) BCD_PRINTF(2, 3);

/* Returns true if the output is a terminal that a line can be rewritten on: not a dumb one, and not
 * one that mpirun or srun has put between the processes and its own output. */
bool is_terminal(FILE *out);

/* Prints lines between the columns `left`, which the first one has reached, and `right`, broken at
 * spaces. */
void print_wrapped(FILE *out, const char *text, int left, int right);

/* "2 h 05 min", "3 min 20 s", "12 s"; "1.9k", "35.2M"; "12.3 MiB"; "2.3026", "1.2e+30". */
Text format_time(double seconds);
Text format_count(double count);
Text format_bytes(double bytes);
Text format_loss(double loss);
