/* The SIMT layer itself, then what runs on any device. */
SUITE(simt)
SUITE(simt_warps)
SUITE(simt_planted)
SUITE(simt_misuse)
#include "../cuda/suites.h"
