/* The threads of this process, and their stacks. */
#pragma once

/* Sets the default number of threads: that of the processors or, where a container's quota leaves
 * it fewer, of those.  OMP_NUM_THREADS goes before. */
void threads_set_default(void);

/* Limits that default to the part of this machine's processors that is one of so many processes',
 * unless OMP_NUM_THREADS is set: launchers let several ranks share them. */
void threads_share(int processes);

/* Returns as many of the threads as use a quota, which may be a part of a processor, or INFINITY.
 */
int threads_of_quota(double processors, int threads);

/* Checks that the stack of the main thread is large enough, before anything large is put on it: a
 * small one would end the program without a word.  -1 and an error. */
int threads_check_main(void);
/* Checks that all other threads can be started, where OpenMP's library would print a line of its
 * own, and that their stacks are large enough; and grows that of the main thread, which
 * would end the program later, if there is memory for it.  -1 and an error. */
int threads_check(void);
