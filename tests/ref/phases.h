/* The lengths of phases against whole numbers; a part of test_bcd_loop.c. */
#pragma once

void fractions_of_an_epoch_are_exact(void);
void the_shortest_phases_of_auto(void);
