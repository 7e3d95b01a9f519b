/* Ctrl-C, SIGTERM and SIGHUP end a training after its step, with a checkpoint. */
#pragma once

#include <sys/types.h>

/* From now on the first such signal is remembered.  A second Ctrl-C kills the process, which is
 * safe, as files are written whole or not at all.  A second SIGTERM or SIGHUP changes nothing,
 * since one request may come twice: `timeout` sends its signal to the process and to its group, and
 * mpirun passes on what the processes have got already. */
void interrupt_catch(void);
/* Ignores these signals, in a worker process: rank 0 tells it when to stop. */
void interrupt_ignore(void);
/* Acts as if such a signal came after so many seconds. */
void interrupt_after(double seconds);
/* Tells another process of this program to stop after its step, as interrupt_after does. */
void interrupt_tell(pid_t process);
/* Is called before exec: what interrupt_tell sends then waits until the new program has called
 * interrupt_catch, so that it is not killed, and trains at least a step. */
void interrupt_hold(void);
/* Returns the signal that has come, or 0. */
int interrupt_signal(void);
/* Returns the exit status after a signal: 128 plus its number, or 75 (EX_TEMPFAIL of sysexits.h)
 * after interrupt_after or interrupt_tell. */
int interrupt_status(void);
