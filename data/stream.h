/* Reads the bytes of a file, and decompresses them if it is a zstd file. */
#pragma once

#include <stdint.h>
#include <stdio.h>

typedef struct ByteStream ByteStream;

/* Opens a file, and recognises zstd by the first four bytes.  NULL and an error. */
ByteStream *stream_open(const char *path);
/* Does the same with an open file, which must be at its start.  stream_close closes it; it is also
 * closed on failure.  `path` is for errors. */
ByteStream *stream_of(FILE *file, const char *path);
void stream_close(ByteStream *stream);

/* Reads up to `size` >= 1 bytes.  Returns how many, 0 only at the end, or -1 and an error if the
 * zstd data are damaged or truncated, or the file cannot be read. */
long stream_read(ByteStream *stream, char *to, size_t size);

/* Returns the bytes of the file that have been read so far. */
uint64_t stream_bytes_read(const ByteStream *stream);
