/* The transport between processes that mpirun or srun started, by MPI. */
#ifndef DIST_MPI_TRANSPORT_MPI_H
#define DIST_MPI_TRANSPORT_MPI_H

#include "../transport.h"

/* Creates the transport.  The first call starts MPI, which ends when the process exits; if a rank
 * is missing it is not ended, because it would wait for that rank, and mpirun ends the processes.
 * Only one transport can be open at a time.  NULL and an error. */
Transport *transport_mpi_create(double timeout_s);

#endif
