/* Ctrl-C, SIGTERM and SIGHUP: finish the step, write a checkpoint, stop. */
#ifndef EXPERIMENTS_INTERRUPT_H
#define EXPERIMENTS_INTERRUPT_H

/* From now on the first such signal is remembered, and a second one kills, which is safe: files are
 * written whole or not at all. */
void interrupt_catch(void);
/* For a worker process: the coordinator decides, and tells. */
void interrupt_ignore(void);
/* The same after so many seconds. */
void interrupt_after(double seconds);
/* The signal, or 0. */
int interrupt_signal(void);
/* What to exit with when it has come: 128 and its number, or 75 ("try again") when time is up. */
int interrupt_status(void);

#endif
