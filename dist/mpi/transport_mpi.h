/* The transport between processes that mpirun or srun started, by MPI. */
#pragma once

#include "../transport.h"

/* Creates the transport.  The first call starts MPI, which ends when the process exits; if a rank
 * is missing it is not ended, because it would wait for that rank, and mpirun ends the processes.
 * Only one transport can be open at a time.  NULL and an error. */
Transport *transport_mpi_create(double timeout_s);
