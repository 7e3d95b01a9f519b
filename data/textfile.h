/* Reads files of text, plain or compressed by gzip or zstd, in bounded memory.  What is recognised
 * as something else is refused by name. */
#pragma once

#include <stdint.h>
#include <stdio.h>

typedef struct TextFile TextFile;

/* Opens a file.  Compression is recognised by the first bytes, whatever its name.  Refuses UTF-16,
 * Parquet, archives and other binary files, with the line to type where one helps.  A byte order
 * mark at the beginning is left out.  NULL and an error. */
TextFile *textfile_open(const char *path);
/* Does the same with an open file at its start, which textfile_close closes; it is also closed on
 * failure.  `path` is for errors. */
TextFile *textfile_of(FILE *file, const char *path);
void textfile_close(TextFile *text);

/* Overwrites to[size] with the next bytes of the text.  Returns their number, 0 at the end, or -1
 * and an error, also if compressed data are damaged or truncated. */
long textfile_read(TextFile *text, char *to, size_t size);

const char *textfile_path(const TextFile *text);
/* Returns the bytes of the file, before decompression, that have been read so far. */
uint64_t textfile_bytes_read(const TextFile *text);
