/* Documents out of files of text or of JSON lines, plain or zstd, in bounded memory. */
#ifndef DATA_DOCUMENTS_H
#define DATA_DOCUMENTS_H

#include <stdbool.h>

#include "stream.h"

typedef struct Documents Documents;

enum { DOCUMENTS_PIECE = 1 << 20 }; /* bytes read at once */

/* A name with .jsonl or .ndjson in it is JSON lines: an object a line, whose "text" is a document.
 * Any other file is one document of plain text.  NULL and an error. */
Documents *documents_open(const char *path);
/* The same from an open stream, which it takes over; `path` is for errors, piece >= 1. */
Documents *documents_of(ByteStream *stream, const char *path, bool lines, size_t piece);
void documents_close(Documents *documents);

/* The next piece of text, in *text until the next call.  *starts tells whether a document begins
 * with it.  Plain text is cut only where white space begins: GPT-2's words end there whatever
 * follows, so encoding the pieces gives the tokens of the whole.  Returns 1, 0 at the end, -1 and
 * an error that names file and line. */
int documents_next(Documents *documents, const char **text, size_t *bytes, bool *starts);

/* Bytes of the file taken so far, for showing progress. */
uint64_t documents_taken(const Documents *documents);

#endif
