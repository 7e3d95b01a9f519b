/* Under SIMT there is no profiler. */
#include "../cuda/bench/bench.h"

void profiler_start(void) {}
void profiler_stop(void) {}
