/* Reads documents from files of text or JSON lines, plain or compressed by zstd, in bounded
 * memory. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct Documents Documents;

enum { DOCUMENTS_PIECE = 1 << 20 }; /* bytes that are read at once */

/* Opens a file, and recognises zstd by its first bytes.  If its name contains .jsonl or .ndjson it
 * has JSON lines, each an object whose "text" is a document; any other file is one document of
 * plain text.  NULL and an error. */
Documents *documents_open(const char *path);
/* Does the same with an open file at its start, which documents_close closes; it is also closed on
 * failure.  `path` is for errors; `piece` >= 1 is the number of bytes that are read at once. */
Documents *documents_of(FILE *file, const char *path, bool lines, size_t piece);
void documents_close(Documents *documents);

/* Reads the next piece of text; *text is valid until the next call, and *starts tells whether it
 * begins a document.  Plain text is cut only where white space begins.  GPT-2's words always end
 * there, so encoding the pieces gives the same tokens as encoding the whole.  Returns 1, 0 at the
 * end, or -1 and an error that names file and line, also if the zstd data are damaged or
 * truncated. */
int documents_next(Documents *documents, const char **text, size_t *bytes, bool *starts);

/* Returns the bytes of the file that have been read so far, to show progress. */
uint64_t documents_bytes_read(const Documents *documents);
