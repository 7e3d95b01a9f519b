/* What the tests of data/ share: files that are removed at exit, exact error messages, batches. */
#pragma once

#include <stddef.h>

#include "../../ref/dataset.h"
#include "../test.h"

/* Returns a path for `name` in a directory that is removed at exit; directories in `name` are
 * created. Valid until the eighth call after this one. */
const char *scratch_path(const char *name);

/* Writes a file in the scratch directory and returns its path. */
const char *scratch_file(const char *name, const void *bytes, size_t count);
const char *scratch_text(const char *name, const char *text);

/* Returns the bytes of a file, followed by a zero, for the caller to free.  *count is 0 if there is
 * no such file. */
char *scratch_read(const char *path, size_t *count);

/* The directory itself. */
const char *scratch_directory(void);

bool file_exists(const char *path);

/* Returns true if error_message() is exactly this (printf format).  scratch_expected returns the
 * expected message. */
bool error_is(const char *format, ...) BCD_PRINTF(1, 2);
const char *scratch_expected(void);
#define CHECK_ERROR(...)                                                                \
    CHECK(error_is(__VA_ARGS__), "error is \"%s\"\n  expected \"%s\"", error_message(), \
          scratch_expected())

/* Returns the path of a real data file below $BCD_DATA or datasets/, or NULL if there is none. */
const char *real_file(const char *name);
#define SKIP_WITHOUT(name) \
    if (!real_file(name)) SKIP("%s is not in $BCD_DATA or datasets; data/fetch gets it", name)

/* Returns a batch of one sample, fetched at this position of the stream, for batch_free to free. */
Batch batch_one(const Dataset *dataset, int sample, uint64_t position);
