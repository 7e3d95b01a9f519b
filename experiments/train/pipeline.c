/* --pipeline: which processes there are, and what each of them holds. */
#include "pipeline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../ref/base/error.h"
#include "../base/alloc.h"
#include "../base/threads.h"

enum { MAX_LOCAL = 64 };

static bool is_none(const Options *o) { return strcmp(o->pipeline, "none") == 0; }

/* Overwrites *ranks with the 4 of "local:4", or with 0 for the other kinds.  -1 and an error. */
static int read_local(int *ranks, const Options *o) {
    static const char local[] = "local:";
    const char *text = o->pipeline;
    char *end;
    *ranks = 0;
    if (is_none(o) || setup_uses_nccl(o) || strcmp(text, "mpi") == 0) return 0;
    if (strncmp(text, local, strlen(local)) != 0)
        return error_set("--pipeline %.40s: it takes none, local:N, mpi or nccl", text);
    const char *number = text + strlen(local);
    long asked = strtol(number, &end, 10);
    if (*end || end == number || asked < 1 || asked > MAX_LOCAL)
        return error_set("--pipeline %.40s: local:N needs a number of ranks from 1 to %d", text,
                         MAX_LOCAL);
    *ranks = (int)asked;
    return 0;
}

/* ---- processes ------------------------------------------------------------------------------- */

/* What the launcher says of this process, before MPI does. */
typedef struct {
    const char *ranks_name; /* the variable of the environment; NULL: there is no launcher */
    int ranks, rank;
    bool is_job; /* a batch script, too, has such variables */
} Launched;

/* Returns the number in a variable of the environment, or -1. */
static int environment_number(const char *name) {
    const char *text = getenv(name);
    return text && *text >= '0' && *text <= '9' ? atoi(text) : -1;
}

/* A job of Slurm may start mpirun, whose variables then count. */
static Launched launched(void) {
    static const struct {
        const char *ranks, *rank;
        bool is_job;
    } launchers[] = {
        {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", false}, /* Open MPI's mpirun */
        {"PMI_SIZE", "PMI_RANK", false},         /* that of MPICH; or srun --mpi=pmi2 */
        {"SLURM_NTASKS", "SLURM_PROCID", true}}; /* srun */
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        const Launched found = {launchers[i].ranks, environment_number(launchers[i].ranks),
                                environment_number(launchers[i].rank), launchers[i].is_job};
        if (found.ranks > 0 && found.rank >= 0) return found;
    }
    return (Launched){.ranks = 1};
}

static bool has_processes(const Options *o) {
    return strcmp(o->pipeline, "mpi") == 0 || setup_uses_nccl(o);
}

bool pipeline_is_worker(const Options *o) { return has_processes(o) && launched().rank > 0; }

static bool joined;
static int *machines; /* [ranks], as in pipeline_find_machines; NULL: not joined */

Text pipeline_rank_name(const Options *o) {
    char host[256] = "";
    const Launched l = launched();
    if (joined || !has_processes(o) || !l.ranks_name) return (Text){""};
    gethostname(host, sizeof host - 1);
    return text_of("rank %d on %s: ", l.rank, host);
}

void pipeline_let_rank_0_speak(const Options *o, bool read) {
    /* A resume takes its pipeline from the run, and behind a wrong flag one may still be named. */
    const bool may_join = has_processes(o) || *o->resume || !read;
    if (may_join && !joined && launched().rank > 0) sleep(2);
}

/* Hosts may have the same name, and containers of one host may have memory of their own. */
int pipeline_find_machines(int *machine, Transport *world) {
    char mine[H5_NAME] = "", boot[40] = "", *all = xcalloc((size_t)world->ranks, sizeof mine);
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (file && fscanf(file, "%39s", boot) == 1) snprintf(mine, sizeof mine, "%s", boot);
    if (file) fclose(file);
    gethostname(mine + strlen(mine), sizeof mine - strlen(mine) - 1);
    const int failed = transport_all_gather(world, all, mine, sizeof mine);
    for (int r = 0; r < world->ranks; r++) {
        const char *name = all + (size_t)r * sizeof mine;
        machine[r] = 0;
        while (memcmp(all + (size_t)machine[r] * sizeof mine, name, sizeof mine) != 0) machine[r]++;
    }
    free(all);
    return failed;
}

/* Returns how many ranks are on the machine of this one. */
static int local_ranks(const Transport *world) {
    int ranks = 0;
    for (int r = 0; r < world->ranks; r++) ranks += machines[r] == machines[world->rank];
    return ranks;
}

int pipeline_check_alone(const char *run) {
    const Launched l = launched();
    if (l.ranks == 1 || (l.is_job && l.rank == 0)) return 0;
    return error_set(
        "--resume %s: run.h5 cannot be read here; name --pipeline, as %s says %d ranks", run,
        l.ranks_name, l.ranks);
}

/* Has CUDA load our kernels when the device opens: loading one later may wait for the device, and
 * hang if a kernel of NCCL there waits for another GPU (cuda/transport_nccl.h).  So may a kernel
 * that needs a larger stack than any before it: NCCL makes room for its own at once.  It could also
 * hang if streams shared a hardware queue, so that a transfer waited behind another that a
 * different GPU has yet to take; there are 8 queues by default and 32 at most.  And where the
 * environment or a file of NCCL's says so, communicators block, or take more of the GPU, whatever
 * the transport asks for; an empty variable says nothing, and keeps what files say out.  Containers
 * and shells set all of these for other programs, so what they say does not count. */
static int check_nccl(const Options *o) {
    const DeviceModule *device;
    if (o->device != DEVICE_CUDA) return error_set("--pipeline nccl needs --device cuda");
    setenv("CUDA_MODULE_LOADING", "EAGER", 1);
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);
    setenv("NCCL_COMM_BLOCKING", "0", 1);
    setenv("NCCL_MIN_CTAS", "", 1);
    setenv("NCCL_MAX_CTAS", "", 1);
    setenv("NCCL_SET_STACK_SIZE", "1", 1);
    if (setup_device(&device, o)) return -1;
    if (device->transport_nccl_create) return 0;
    return error_set(
        "--pipeline nccl: this program was built without NCCL; build it where nccl.h is installed");
}

int pipeline_join(Transport **world, const Options *o) {
    int local;
    const Launched l = launched(); /* first, since MPI sets such variables, too */
    *world = NULL;
    if (read_local(&local, o)) return -1;
    if (!has_processes(o)) {
        /* Of a step's tasks the first cannot be told from a batch script: both are number 0, and a
         * shell in a job may have the other variables of a step. */
        if (l.is_job && l.rank > 0)
            return error_set(
                "%s says %d tasks, and each would train alone; give --pipeline mpi for one "
                "training of all, or srun -n 1",
                l.ranks_name, l.ranks);
        if (l.ranks > 1 && l.rank == 0 && !l.is_job)
            fprintf(stderr,
                    "bcd: %s says %d processes, and each trains alone: without --pipeline "
                    "mpi they are separate trainings\n",
                    l.ranks_name, l.ranks);
        return 0;
    }
    if (setup_uses_nccl(o) && check_nccl(o)) return -1;
    *world = mpi_module_open(o->timeout); /* NCCL needs it, too: for its ids, and for host data */
    if (!*world) return -1;
    if ((*world)->ranks < l.ranks && l.rank > 0) return error_set("%s", ""); /* as rank 0 says */
    if ((*world)->ranks < l.ranks)
        return error_set(
            "--pipeline %s: %s says %d ranks, but MPI joined %d; start them by the mpirun of the "
            "MPI that this program was built with, or by srun with a --mpi that it knows",
            o->pipeline, l.ranks_name, l.ranks, (*world)->ranks);
    joined = true;
    machines = xcalloc((size_t)(*world)->ranks, sizeof *machines);
    if (pipeline_find_machines(machines, *world)) {
        pipeline_abort(*world, error_message());
        return -1;
    }
    if (!o->threads) threads_share(local_ranks(*world));
    return 0;
}

void pipeline_abort(Transport *world, const char *why) {
    transport_abort(world, why);
    if (!transport_reports(world)) error_set("%s", "");
    transport_free(world);
}

/* ---- who holds what -------------------------------------------------------------------------- */

int pipeline_check_idle(const Options *o, const Options *asked) {
    static const char *const flags[] = {"replicas", "placement", "pipeline-schedule", "pre-infer",
                                        "timeout"};
    for (size_t i = 0; is_none(o) && i < sizeof flags / sizeof *flags; i++)
        if (options_given(asked, flags[i])) return error_set("--%s needs --pipeline", flags[i]);
    if (!has_processes(o) && options_given(asked, "timeout"))
        return error_set("--timeout is for mpi and nccl: threads of one process cannot be lost");
    return 0;
}

int pipeline_check(const Options *o) {
    int ranks;
    if (!*o->pipeline) return 0; /* the command does not have this flag */
    if (read_local(&ranks, o)) return -1;
    if (is_none(o)) return 0;
    if (o->world) ranks = o->world->ranks;
    if (o->pre_infer && !o->cache)
        return error_set("--pre-infer computes what --cache keeps: give --cache BYTES");
    if (ranks % o->replicas)
        return error_set("--replicas %d: %d ranks are not a multiple of that", o->replicas, ranks);
    if (o->replicas > o->batch)
        return error_set("--replicas %d: a batch has only %d samples", o->replicas, o->batch);
    if (o->method == METHOD_OFFLOAD)
        return error_set("--method offload is for one device, not for --pipeline");
    if (o->placement == PLACEMENT_FIGURE2 && *o->always_active)
        return error_set("--always-active: --placement figure2 puts every block into a submodel");
    if (order_by_gradients[o->order])
        return error_set("--order %s is for one device, not for --pipeline", order_names[o->order]);
    if (o->correct_above > 0)
        return error_set("--correct-above is for one device, not for --pipeline");
    if (o->device_cache)
        return error_set("--device-cache is for one device; with --pipeline use --cache");
    return 0;
}

/* Takes over the submodels of the placement, and writes them to --partition for a resume. */
static int keep_partition(Setup *s) {
    Options *o = &s->options;
    Text list = {""};
    for (int m = 0; m < s->placement.submodels; m++) {
        const char *before = m ? "/" : "";
        for (int b = 0; b < s->model->blocks; b++) {
            if (s->placement.submodel_of[b] != m) continue;
            text_add(&list, "%s%d", before, b);
            before = ",";
        }
    }
    if (strlen(list.text) >= OPTION_TEXT)
        return error_set("--placement figure2: too many blocks for --partition");
    strcpy(o->partition, list.text);
    partition_free(&s->bcd.partition);
    return setup_partition(&s->bcd.partition, s->model, o);
}

static int place(Setup *s, PlacementKind kind, const double *work, const int *submodel_of) {
    return placement_make(&s->placement, s->model, kind, s->ranks / s->options.replicas,
                          s->bcd.partition.submodels, work, submodel_of);
}

static int place_all(Setup *s, const double *work) {
    Options *o = &s->options;
    const int *given = s->bcd.partition.of_block;
    /* Figure 2 slices every rank's blocks into submodels; a resumed training keeps its own. */
    if (o->placement == PLACEMENT_FIGURE2 && !*o->partition && !*o->resume)
        return place(s, PLACEMENT_FIGURE2, work, NULL) || keep_partition(s) ? -1 : 0;
    if (o->placement == PLACEMENT_AUTO) {
        const bool several = s->bcd.partition.submodels > 1;
        if (several && place(s, PLACEMENT_VIRTUAL, work, given) == 0) return 0;
        return place(s, PLACEMENT_PLAIN, work, given);
    }
    const int failed = place(s, (PlacementKind)o->placement, work, given);
    /* By default the ends of a network for images are always active. */
    if (failed && o->placement == PLACEMENT_VIRTUAL && *o->always_active)
        return error_set("%s; give --always-active none", error_message());
    if (failed && *o->resume) return error_set("%s; or give --placement auto", error_message());
    return failed;
}

int pipeline_place(Setup *s) {
    Options *o = &s->options;
    if (*o->pipeline && read_local(&s->ranks, o)) return -1;
    if (o->world) s->ranks = o->world->ranks;
    s->machine = machines;
    if (!s->ranks) return 0;
    double *work = xmalloc((size_t)s->model->blocks * sizeof *work);
    placement_work(work, s->model);
    int failed = place_all(s, work);
    free(work);
    if (failed) return -1;
    int share = (o->batch + o->replicas - 1) / o->replicas;
    s->stage_settings.batch = (share + o->accumulate - 1) / o->accumulate;
    /* A pipeline of one rank has no gaps for weight gradients to fill, and their other order would
     * add those of a tied embedding otherwise than one device does. */
    const ScheduleKind kind =
        s->placement.ranks == 1 ? SCHEDULE_1F1B : (ScheduleKind)o->pipeline_schedule;
    s->stage_settings.deferred = kind == SCHEDULE_ZERO_BUBBLE;
    s->pipeline = (PipelineSettings){.micro_batches = o->accumulate,
                                     .kind = kind,
                                     .cache_bytes = o->cache,
                                     .samples = s->train->samples,
                                     .augmented = s->train->augmented,
                                     .infer_ranks = o->pre_infer ? s->placement.ranks : 0};
    return 0;
}
