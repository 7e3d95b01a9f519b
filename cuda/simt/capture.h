/* Capture of streams (graphs): what device.c needs of it. */
#pragma once

#include <stdbool.h>

#include "../device.h"

/* From now on every launch and copy goes to the recorder first. */
void capture_open(void);
/* Returns -1, with this error, while this thread captures a stream; else 0. */
int capture_refuses(const char *error);
/* Returns true when the stream is being captured: its work is kept, not done. */
bool capture_has(Stream stream);
/* Does all work on the stream, which may be late. */
void capture_finish(Stream stream);
