/* Recording of streams (graphs): what device.c needs of it. */
#ifndef SIMT_RECORD_H
#define SIMT_RECORD_H

#include <stdbool.h>

/* From now on launches and copies pass by here. */
void record_open(void);
/* Some stream is being recorded. */
bool record_busy(void);

#endif
