/* Recording of streams (graphs): what device.c needs of it. */
#ifndef SIMT_RECORD_H
#define SIMT_RECORD_H

#include <stdbool.h>

#include "../device.h"

/* From now on launches and copies pass by here. */
void record_open(void);
/* 0; while a stream is being recorded, -1 with this error. */
int record_refuses(const char *error);
/* What is put on the stream is kept, not done: it is a stream of a recording. */
bool record_has(Stream stream);
/* Does all that is on the stream, which may be late. */
void record_finish(Stream stream);

#endif
