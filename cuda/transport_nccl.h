/* A transport that carries messages of GPUs (cuda/message.h) over NCCL: gpu/transport_nccl.c, where
 * nccl.h is. */
#pragma once

#include "../dist/transport.h"

/* Returns about how many bytes of the device's memory NCCL's communicators take. */
size_t transport_nccl_bytes(void);

/* All ranks of a pipeline must call this together.  It takes ownership of `control`, a transport
 * between them (over MPI), which carries the data that is on the host and, ahead of each message,
 * its header; there a missing rank is noticed and named.  Each rank has a GPU of its own, the one
 * that is open, and must have been started with CUDA_MODULE_LOADING=EAGER.  Values go to the next
 * rank, from the last to the first, and gradients to the one before; nothing else is a message.  A
 * receive without `data` makes its message.  Returns NULL, with an error that the others report
 * too. */
Transport *transport_nccl_create(Transport *control);
