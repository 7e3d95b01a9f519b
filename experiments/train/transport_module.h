/* Transports that are libraries of their own, next to the program, loaded when asked for. */
#ifndef EXPERIMENTS_TRANSPORT_MODULE_H
#define EXPERIMENTS_TRANSPORT_MODULE_H

#include "../../dist/transport.h"

/* transport_mpi_create (dist/mpi/transport_mpi.h) of libbcd-mpi.so.  NULL and an error that says
 * what is missing. */
Transport *transport_module_mpi(double timeout_s);

#endif
