/* The SIMT layer itself, then what runs on any device. */
SUITE(simt)
SUITE(simt_warps)
SUITE(simt_planted)
#include "../cuda/suites.h"
