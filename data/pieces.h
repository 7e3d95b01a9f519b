/* Cuts files of text into pieces, in bounded memory: lines of JSON, elements of a JSON array, or
 * plain text up to a place where it can be cut. */
#pragma once

#include <stdbool.h>

#include "textfile.h"

typedef struct Pieces Pieces;

enum { PIECE_BYTES = 1 << 20 }; /* of text, that are read at once */

/* Opens a file (textfile.h).  If its name ends in .jsonl, .jsonlines, .jl, .ndjson or .json, in any
 * case and apart from what pieces_unpacked leaves out, it has JSON lines or one JSON array; any
 * other file is plain text.  NULL and an error. */
Pieces *pieces_open(const char *path);
/* Does the same with an open file, which pieces_close closes; it is also closed on failure.  NULL,
 * without another error, if `file` is NULL.  `piece` >= 1 is the number of bytes that are read at
 * once. */
Pieces *pieces_of(TextFile *file, bool json, size_t piece);
void pieces_close(Pieces *pieces);

/* Returns the length of a path without .gz, .gzip, .zst or .zstd at its end, in any case. */
size_t pieces_unpacked(const char *path);

/* Finds the next piece, and sets *text, which is valid until the next call.  A line or element is
 * as it is in the file, with a zero byte behind it; blank lines are left out.  Plain text is cut
 * only where white space begins.  Returns 1, 0 at the end, or -1 and an error. */
int pieces_next(Pieces *pieces, char **text, size_t *bytes);

const char *pieces_path(const Pieces *pieces);
/* Returns "line" or "element", NULL for plain text. */
const char *pieces_unit(const Pieces *pieces);
/* Returns the number of the last line or element, from 1; blank lines count. */
size_t pieces_number(const Pieces *pieces);
/* Sets an error about the last line or element, which `what` ends.  Returns -1. */
int pieces_refuse(const Pieces *pieces, const char *what);

/* Returns the bytes of the file that have been read so far. */
uint64_t pieces_bytes_read(const Pieces *pieces);
