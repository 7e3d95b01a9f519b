/* A transport that carries messages of GPUs (cuda/message.h) over NCCL: gpu/transport_nccl.c, where
 * nccl.h is. */
#ifndef CUDA_TRANSPORT_NCCL_H
#define CUDA_TRANSPORT_NCCL_H

#include "../dist/transport.h"

/* Bytes of the device's memory that NCCL's communicators take, about. */
size_t transport_nccl_bytes(void);

/* By all ranks of a pipeline together.  Takes over a transport between them (over MPI): it carries
 * the data that is on the host and, ahead of each message, its header, which is where a missing
 * rank is noticed and named.  Each rank has a GPU of its own, the one that is open, and was started
 * with CUDA_MODULE_LOADING=EAGER.  Values go to
 * the next rank, from the last to the first, and gradients to the one before; nothing else is a
 * message.  A receive without `data` makes its message.  NULL and an error, reported to the others.
 */
Transport *transport_nccl_create(Transport *control);

#endif
