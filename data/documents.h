/* Reads the documents of a file. */
#pragma once

#include "pieces.h"

typedef struct Documents Documents;

/* Opens a file (pieces.h).  NULL and an error. */
Documents *documents_open(const char *path);
/* Does the same with pieces, which documents_close closes; they are also closed on failure.  NULL,
 * without another error, if `pieces` is NULL. */
Documents *documents_of(Pieces *pieces);
void documents_close(Documents *documents);

/* Reads the next piece of text; *text is valid until the next call, and *starts tells whether it
 * begins a document.  In JSON a document is the "text" of an object, plain text is one.  GPT-2's
 * words always end where text is cut, so encoding the pieces gives the same tokens as encoding the
 * whole.  Returns 1, 0 at the end, or -1 and an error that names the file, and the line or the
 * array's element. */
int documents_next(Documents *documents, const char **text, size_t *bytes, bool *starts);

/* Does the same as pieces_next, and refuses what is not in UTF-8, half of a surrogate pair in JSON,
 * a line with a part of an object, and plain text that begins with a line that is an object. */
int documents_record(Documents *documents, char **text, size_t *bytes);

const Pieces *documents_pieces(const Documents *documents);
