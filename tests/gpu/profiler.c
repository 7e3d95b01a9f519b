/* Marks what a profiler is to measure: ncu --profile-from-start off. */
#include <cuda_profiler_api.h>

#include "../cuda/bench/bench.h"

void profiler_start(void) { (void)cudaProfilerStart(); }
void profiler_stop(void) { (void)cudaProfilerStop(); }
