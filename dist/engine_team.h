/* The ranks of a pipeline as threads of this process: the caller's thread is rank 0, the
 * coordinator, the others are workers (coordinator.h). */
#ifndef DIST_ENGINE_TEAM_H
#define DIST_ENGINE_TEAM_H

#include "coordinator.h"

/* Makes the engine of rank world->rank; called in the rank's own thread.  The transport stays the
 * team's. NULL and an error. */
typedef Engine *TeamMember(void *context, Transport *world);

/* Takes over world[ranks], a transport for each.  Each rank gets an equal share of the processors
 * that OpenMP would use, until the engine is freed.  NULL and the error of a rank that failed. */
Engine *engine_team_create(const Model *model, Transport **world, TeamMember *member,
                           void *context);

#endif
