/* The bytes of a file, decompressed on the way if it is zstd. */
#ifndef DATA_STREAM_H
#define DATA_STREAM_H

#include <stdint.h>
#include <stdio.h>

typedef struct ByteStream ByteStream;

/* zstd is known by its first four bytes, not by the name.  NULL and an error. */
ByteStream *stream_open(const char *path);
/* The same from an open file, which must be at its start and is closed by stream_close; `path` is
 * for errors.  Also on failure the file is closed. */
ByteStream *stream_of(FILE *file, const char *path);
void stream_close(ByteStream *stream);

/* Reads up to `size` >= 1 bytes.  Returns how many, 0 only at the end; -1 and an error for damaged
 * or truncated zstd, or a failing disk. */
long stream_read(ByteStream *stream, char *to, size_t size);

/* Bytes of the file taken so far. */
uint64_t stream_taken(const ByteStream *stream);

#endif
