/* The properties of gradients; test_cases.c has the others and their table. */
#pragma once

#include "cases.h"

/* CHECKs that the gradients of the plain op are the slopes of its forward pass, by central
 * differences in double. */
void gradients_meet_differences(const Case *row, bool plain);
/* The same with whole numbers, where differences are exact. */
void gradients_are_exact(const Case *row, bool plain);
/* CHECKs that the add_ options accumulate. */
void accumulates(const Case *row, bool plain);

/* What an op saves for a gradient (ref/op_table.c) is read by it in some row, plain or fast. */
void what_is_saved_is_read(void);
