/* Links that are libraries of their own, beside the program, loaded when asked for. */
#ifndef EXPERIMENTS_LINK_MODULE_H
#define EXPERIMENTS_LINK_MODULE_H

#include "../../dist/link.h"

/* link_mpi_create (dist/mpi/link_mpi.h) of libbcd-mpi.so.  NULL and an error that says what is
 * missing. */
Link *link_module_mpi(double timeout_s);

#endif
