/* Who a process is among those that were started together, from its environment. */
#ifndef DIST_LAUNCH_H
#define DIST_LAUNCH_H

typedef struct {
    int rank, ranks;
    char address[256]; /* name or number of rank 0's host */
    int port;          /* where rank 0 listens */
    const char *names; /* whose names they came from, for messages: "RANK", "Open MPI", "Slurm" */
} Launch;

/* Reads the first that is there of
 *   RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT (torchrun and alike): all four are needed; where
 *   torchrun keeps that port for itself, the next;
 *   OMPI_COMM_WORLD_RANK, ..._SIZE (mpirun of Open MPI): on one host, or with MASTER_ADDR;
 *   SLURM_PROCID, SLURM_NTASKS (srun): rank 0 is on the first host of SLURM_STEP_NODELIST, or else
 *   at SLURM_LAUNCH_NODE_IPADDR.
 * MASTER_ADDR and MASTER_PORT go before what the last two would say; the port is else 29500.  -1
 * and an error that names what is missing or makes no sense. */
int launch_read(Launch *launch);

#endif
