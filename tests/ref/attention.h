/* The properties of attention and of rotary positions; test_cases.c has the table of properties. */
#pragma once

#include "cases.h"

/* CHECKs that a query with a single key has no gradient, in rows that have such queries. */
bool has_a_single_key(const Case *row);
void one_key_has_no_gradient(const Case *row, bool plain);

void rope_frequencies_are_as_published(void);
/* The angles that a thread keeps are not taken for those of other settings. */
void angles_follow_every_setting(void);
