/* Recording of streams (graphs): what device.c needs of it. */
#ifndef SIMT_RECORD_H
#define SIMT_RECORD_H

#include <stdbool.h>

#include "../device.h"

/* From now on every launch and copy is shown to the recorder first. */
void record_open(void);
/* Returns 0, or -1 with this error while a stream is being recorded. */
int record_refuses(const char *error);
/* Returns true when the stream is being recorded: its work is kept, not done. */
bool record_has(Stream stream);
/* Does all work on the stream, which may be late. */
void record_finish(Stream stream);

#endif
