/* A transport that carries messages of GPUs (cuda/message.h) over NCCL: gpu/transport_nccl.c, where
 * nccl.h is. */
#ifndef CUDA_TRANSPORT_NCCL_H
#define CUDA_TRANSPORT_NCCL_H

#include "../dist/transport.h"

/* Takes over a transport between the same ranks (over MPI): it carries the data that is on
 * the host and, ahead of each message, a note of it, which is where a missing rank is noticed and
 * named.  Each rank has a GPU of its own, the one that is open.  A receive without `data` makes its
 * message.  NULL and an error, told to the other ranks. */
Transport *transport_nccl_create(Transport *control);

#endif
