/* What the stand-in of NCCL knows of the calling thread, which is a rank. */
#pragma once

/* Returns how many of its messages have not been received: on a GPU each is a kernel that waits. */
int nccl_fake_waiting(void);
/* Returns how many communicators it has aborted. */
int nccl_fake_aborted(void);
/* Returns how many aborts, of all ranks, would hang on a GPU: NCCL may wait for the whole device
 * then, and a kernel of another communicator waits there until that is aborted, too, by a group. */
int nccl_fake_hung(void);
