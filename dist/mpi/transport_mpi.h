/* A transport over MPI: ranks are the processes that mpirun or srun started. */
#ifndef DIST_MPI_TRANSPORT_MPI_H
#define DIST_MPI_TRANSPORT_MPI_H

#include "../transport.h"

/* Starts MPI at the first call, and ends it when the process exits: unless a rank is missing, which
 * MPI would wait for; then mpirun ends the others.  One transport at a time; NULL and an error. */
Transport *transport_mpi_create(double timeout_s);

#endif
