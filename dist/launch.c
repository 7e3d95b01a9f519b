#include "launch.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../ref/error.h"

enum { DEFAULT_PORT = 29500, MOST_RANKS = 1 << 16, MOST_PORT = 65535 };

static const char *find(const char *name) {
    const char *text = getenv(name);
    return text && *text ? text : NULL;
}

static int read_number(int *number, const char *name, int least, int most) {
    const char *text = find(name);
    if (!text) return error_set("launch: %s is not set", name);
    char *end;
    errno = 0;
    long n = strtol(text, &end, 10);
    if (*end || errno || n < least || n > most)
        return error_set("launch: %s is \"%.40s\", not a number from %d to %d", name, text, least,
                         most);
    *number = (int)n;
    return 0;
}

static int keep_address(Launch *launch, const char *name, const char *text, size_t length) {
    if (length == 0 || length >= sizeof launch->address)
        return error_set("launch: %s, \"%.40s\", names no host", name, text);
    memcpy(launch->address, text, length);
    launch->address[length] = 0;
    return 0;
}

/* The first host of a list as Slurm writes it: "node[07-09,12]-a,login" is node07-a first. */
static int first_host(Launch *launch, const char *name, const char *list) {
    char host[sizeof launch->address];
    size_t length = 0;
    for (const char *c = list; *c && *c != ',' && length < sizeof host; c++) {
        if (*c != '[') {
            host[length++] = *c;
            continue;
        }
        size_t digits = strspn(c + 1, "0123456789"), rest = strcspn(c, "]");
        if (!digits || !c[rest] || length + digits >= sizeof host)
            return error_set("launch: %s, \"%.40s\", is no list of hosts", name, list);
        memcpy(host + length, c + 1, digits);
        length += digits;
        c += rest;
    }
    return keep_address(launch, name, length < sizeof host ? host : list, length);
}

/* ---- the families of names ----------------------------------------------------------------------
 */

static int read_ranks(Launch *launch, const char *rank, const char *ranks) {
    return read_number(&launch->ranks, ranks, 1, MOST_RANKS) ||
                   read_number(&launch->rank, rank, 0, launch->ranks - 1)
               ? -1
               : 0;
}

static int read_master(Launch *launch, bool needed) {
    const char *address = find("MASTER_ADDR");
    if (!address && needed)
        return error_set("launch: %s is set and MASTER_ADDR, the host of rank 0, is not",
                         launch->names);
    if (address && keep_address(launch, "MASTER_ADDR", address, strlen(address))) return -1;
    launch->port = DEFAULT_PORT;
    if (!needed && !find("MASTER_PORT")) return 0;
    return read_number(&launch->port, "MASTER_PORT", 1, MOST_PORT);
}

/* torchrun itself listens at MASTER_PORT when it says so; then the next one is ours. */
static int read_torchrun(Launch *launch) {
    const char *taken = find("TORCHELASTIC_USE_AGENT_STORE");
    if (read_ranks(launch, "RANK", "WORLD_SIZE") || read_master(launch, true)) return -1;
    if (taken && strcmp(taken, "True") == 0) launch->port += launch->port < MOST_PORT ? 1 : -1;
    return 0;
}

static int read_open_mpi(Launch *launch) {
    int here = 0;
    if (read_ranks(launch, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE") ||
        read_master(launch, false))
        return -1;
    if (*launch->address) return 0;
    if (read_number(&here, "OMPI_COMM_WORLD_LOCAL_SIZE", 1, MOST_RANKS)) return -1;
    if (here != launch->ranks)
        return error_set(
            "launch: mpirun started ranks on several hosts; set MASTER_ADDR to that of rank 0");
    return keep_address(launch, "", "127.0.0.1", strlen("127.0.0.1"));
}

static int read_slurm(Launch *launch) {
    const char *hosts = find("SLURM_STEP_NODELIST"), *from = find("SLURM_LAUNCH_NODE_IPADDR");
    if (read_ranks(launch, "SLURM_PROCID", "SLURM_NTASKS") || read_master(launch, false)) return -1;
    if (*launch->address) return 0;
    if (hosts) return first_host(launch, "SLURM_STEP_NODELIST", hosts);
    if (from) return keep_address(launch, "SLURM_LAUNCH_NODE_IPADDR", from, strlen(from));
    return error_set("launch: SLURM_STEP_NODELIST is not set; start the ranks with srun");
}

int launch_read(Launch *launch) {
    /* Open MPI before Slurm: mpirun within a job hands every rank the job's names too. */
    static const struct {
        const char *names, *rank, *ranks;
        int (*read)(Launch *launch);
    } family[] = {
        {"RANK", "RANK", "WORLD_SIZE", read_torchrun},
        {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", read_open_mpi},
        {"Slurm", "SLURM_PROCID", "SLURM_NTASKS", read_slurm},
    };
    memset(launch, 0, sizeof *launch);
    for (size_t i = 0; i < sizeof family / sizeof *family; i++) {
        if (!find(family[i].rank) && !find(family[i].ranks)) continue;
        launch->names = family[i].names;
        return family[i].read(launch);
    }
    return error_set(
        "launch: this process is no rank; start all with torchrun, mpirun or srun, or set "
        "RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT for each");
}
