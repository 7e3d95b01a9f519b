/* Recording of streams (graphs): what device.c needs of it. */
#ifndef SIMT_RECORD_H
#define SIMT_RECORD_H

/* From now on launches and copies pass by here. */
void record_open(void);
/* 0; while a stream is being recorded, -1 with this error. */
int record_refuses(const char *error);

#endif
