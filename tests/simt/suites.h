/* The SIMT layer itself, what works on streams over late ones, then what runs on any device. */
SUITE(simt)
SUITE(simt_warps)
SUITE(simt_planted)
SUITE(simt_misuse)
SUITE(late)
#ifdef HAS_NCCL
SUITE(late_nccl)
#endif
#include "../cuda/suites.h"
