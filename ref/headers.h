/* Which headers an object was compiled with.  Libraries that are loaded at run time share structs
 * with the program: one that is older than the program must be refused, not called. */
#ifndef REF_HEADERS_H
#define REF_HEADERS_H

/* A checksum of the headers of ref/, dist/ and cuda/; the program has one, each library its own. */
extern const char bcd_headers[];

#endif
