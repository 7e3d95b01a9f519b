/* --pipeline: a training over several ranks.  Rank 0 opens the run, writes the files and prints, as
 * in a training on one device; the other processes are workers that get their model and settings
 * from it (dist/coordinator.h). */
#pragma once

#include "setup.h"

/* Returns true in a process that mpirun or srun started as a rank above 0.  It gets all settings
 * from rank 0, which alone checks the command line and reads its files. */
bool pipeline_is_worker(const Options *options);

/* Returns "rank 2 on host3: " in a process that mpirun or srun started for --pipeline, until it has
 * joined the others; from then on errors name ranks themselves.  Otherwise "". */
Text pipeline_rank_name(const Options *options);

/* Waits, in a rank above 0 that has not joined the others, but may have been about to: rank 0 most
 * often has the same error, and when it has said so, the launcher ends all.  `read` says that the
 * options are all of those given. */
void pipeline_let_rank_0_speak(const Options *options, bool read);

/* Refuses to go on with a run whose settings this process cannot read if it is one of several
 * ranks: without --pipeline each would be a training of its own.  -1 and an error. */
int pipeline_check_alone(const char *run);

/* Joins the processes that mpirun or srun started together.  Overwrites *world with the transport
 * between them, or with NULL where --pipeline asks for none.  -1 and an error. */
int pipeline_join(Transport **world, const Options *options);

/* Overwrites machine[ranks] with the lowest rank on the machine of each.  All ranks call it.  -1
 * and an error. */
int pipeline_find_machines(int *machine, Transport *world);

/* Refuses flags that a pipeline cannot have, or that need one.  The batch is resolved; the number
 * of ranks counts where it is known: with local:N, or once the processes have joined. */
int pipeline_check(const Options *options);

/* Refuses flags that were asked for and would be ignored without a pipeline.  -1 and an error. */
int pipeline_check_idle(const Options *options, const Options *asked);

/* Runs a rank above 0 until the training is over, and frees the transport.  Returns 0, or -1 and an
 * error, which is empty if another rank has reported it already. */
int pipeline_worker(Transport *world);

/* Ends the workers, which are waiting for rank 0, with the reason, and frees the transport.  The
 * error is then empty if another rank has reported one already. */
void pipeline_abort(Transport *world, const char *why);

/* Fills in ranks, placement and pipeline settings from the options and the partition of a setup
 * that is being opened; --placement figure2 replaces the partition.  Without --pipeline it changes
 * nothing.  -1 and an error. */
int pipeline_place(Setup *setup);

/* Creates setup->engine, which runs over all ranks; cache_dir as for setup_engine.  -1 and an
 * error. */
int pipeline_engine(Setup *setup, const char *cache_dir);
