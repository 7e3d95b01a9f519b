/* What the stand-in of NCCL knows of the calling thread, which is a rank. */
#pragma once

/* Returns how many of its messages have not been received: on a GPU each is a kernel that waits. */
int nccl_fake_waiting(void);
