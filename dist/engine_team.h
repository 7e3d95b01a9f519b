/* A pipeline whose ranks are threads of this process.  The caller's thread is rank 0, the
 * coordinator; the others are workers (coordinator.h). */
#pragma once

#include "coordinator.h"

/* Creates the engine of rank world->rank; called in the thread of that rank.  Must not free the
 * transport.  NULL and an error. */
typedef Engine *TeamMember(void *context, Transport *world);

/* Creates the engine of the whole pipeline, from world[ranks], the transports of its ranks, which
 * it frees, also on failure.  Until the engine is freed, each rank has an equal share of OpenMP's
 * threads.  NULL and the error of a rank that failed. */
Engine *engine_team_create(Transport **world, TeamMember *member, void *context);
