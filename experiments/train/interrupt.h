/* Ctrl-C, SIGTERM, SIGHUP and SIGPIPE, when nobody reads what is printed any more, end a training
 * after its step, with a checkpoint. */
#pragma once

/* From now on SIGBUS, which comes when a file that is mapped into memory is cut short, ends the
 * process with a line that says so. */
void interrupt_tell_bus_error(void);
/* The same, and the first such signal is remembered.  A second Ctrl-C kills the
 * process, which is safe, as files are written whole or not at all.  A second SIGTERM or SIGHUP
 * changes nothing, since one request may come twice: `timeout` sends its signal to the process and
 * to its group, and mpirun passes on what the processes have got already. */
void interrupt_catch(void);
/* Ignores these signals, in a worker process: rank 0 tells it when to stop. */
void interrupt_ignore(void);
/* Returns the signal that has come, or 0. */
int interrupt_signal(void);
/* Returns the exit status after a signal: 128 plus its number, or 75 (EX_TEMPFAIL of sysexits.h)
 * after SIGALRM, by which bcd experiment says that its time is up.  That signal may be blocked from
 * before exec until interrupt_catch, so that at least a step is trained. */
int interrupt_status(void);
