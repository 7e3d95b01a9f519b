/* The SIMT layer itself, streams that are late, then the suites that run on every device. */
SUITE(simt)
SUITE(simt_warps)
SUITE(simt_planted)
SUITE(simt_misuse)
SUITE(late)
#ifdef HAS_NCCL
SUITE(late_nccl)
#endif
#include "../cuda/suites.h"
