/* One engine out of many: the ranks of a pipeline as threads of this process.  The training loop
 * runs once, in the caller's thread; every call is handed to all ranks, and returns when all are
 * done. */
#ifndef DIST_ENGINE_TEAM_H
#define DIST_ENGINE_TEAM_H

#include "../ref/engine.h"

/* Makes the engine of one rank; called in the rank's own thread.  NULL and an error. */
typedef Engine *TeamMember(void *context, int rank);

/* Starts the threads.  Each gets an equal share of the processors that OpenMP would use.  NULL and
 * the error of the first rank that failed. */
Engine *engine_team_create(const Model *model, int ranks, TeamMember *member, void *context);

#endif
