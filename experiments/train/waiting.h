/* How threads wait for each other. */
#ifndef EXPERIMENTS_WAITING_H
#define EXPERIMENTS_WAITING_H

/* A thread that waits for the others spins, because what it waits for mostly comes at once, and
 * sleeps only after a while: 300,000 turns (GNU's OpenMP), 200 ms (LLVM's).  Where other programs
 * want the processor too, it takes it from the very threads it waits for, and training slows down
 * up to tenfold.  So: where the `threads` of this program and what else runs now are more than the
 * processors, waiting threads are to sleep at once; else after 3000 turns, about 50 us, or 5 ms,
 * which costs nothing, and is soon enough should the machine become busy later.
 *
 * The runtimes read their settings when they are loaded, so the program starts itself anew with
 * `argv`: call this before anything is done.  Returns, and all stays as it is, if the user has said
 * how to wait, which is so the second time, and if the program cannot be started anew. */
void waiting_choose(char **argv, int threads);

#endif
