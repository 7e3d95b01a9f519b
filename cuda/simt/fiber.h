/* Fibers: stacks of their own, and a switch between them that saves six registers. */
#pragma once

#include <stddef.h>

typedef struct SimtFiber {
    void *stack_pointer; /* while it does not run */
    char *stack;         /* its lowest byte; NULL: the host's */
    size_t stack_bytes;
    void *sanitizer;        /* the sanitizer's own state of a fiber that does not run */
    struct SimtFiber *next; /* in a list of its owner */
} SimtFiber;

/* Returns a new fiber; the first switch to it calls body(), which must not return.  NULL when
 * memory runs out.  Fibers are kept for the life of the process. */
SimtFiber *fiber_create(void (*body)(void));
/* Makes the fiber as new, whatever it was doing. */
void fiber_reset(SimtFiber *fiber, void (*body)(void));
/* Switches to `to`, and returns when something switches back to `from`.  That must be the running
 * fiber; the host passes any SimtFiber of zeros. */
void fiber_switch(SimtFiber *from, SimtFiber *to);
