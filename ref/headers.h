/* The headers that an object was compiled with.  Libraries that are loaded at run time share
 * structs with the program, so one that was built from other headers must be refused. */
#pragma once

/* A checksum of the headers of ref/, dist/ and cuda/.  The program and each library have their
 * own. */
extern const char bcd_headers[];
