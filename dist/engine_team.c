#include "engine_team.h"

#include <omp.h>
#include <pthread.h>
#include <stdlib.h>

#include "../ref/base/error.h"

typedef struct {
    TeamMember *make;
    void *context;
    Transport *world;
    int omp_threads; /* of this rank */
    pthread_t thread;
} Member;

typedef struct {
    int members, omp_threads; /* threads besides rank 0; OpenMP threads of all ranks together */
    Member member[];
} Team;

static void *serve(void *argument) {
    Member *me = argument;
    omp_set_num_threads(me->omp_threads);
    worker_run(me->make(me->context, me->world), me->world);
    return NULL;
}

/* Waits for the workers, which have received the order to end, or find the transport broken. */
static void join_workers(void *context) {
    Team *t = context;
    for (int i = 0; i < t->members; i++) pthread_join(t->member[i].thread, NULL);
    omp_set_num_threads(t->omp_threads);
    free(t);
}

Engine *engine_team_create(Transport **world, TeamMember *member, void *context) {
    int ranks = world[0]->ranks, omp_threads = omp_get_max_threads();
    int each = omp_threads / ranks > 1 ? omp_threads / ranks : 1;
    Team *t = malloc(sizeof *t + (size_t)(ranks - 1) * sizeof *t->member);
    if (!t) {
        for (int r = 0; r < ranks; r++) transport_free(world[r]);
        return error_null("pipeline: out of memory");
    }
    *t = (Team){.omp_threads = omp_threads};
    for (int r = 1; r < ranks; r++) {
        Member *m = &t->member[t->members];
        *m = (Member){.make = member, .context = context, .world = world[r], .omp_threads = each};
        if (pthread_create(&m->thread, NULL, serve, m) == 0) {
            t->members++;
            continue;
        }
        transport_abort(world[r], "no thread for it");
        transport_free(world[r]);
    }
    omp_set_num_threads(each);
    return coordinator_create(member(context, world[0]), world[0], join_workers, t);
}
