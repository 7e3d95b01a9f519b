/* What the tests of data/ share: files that vanish at exit, errors by their exact words, batches.
 */
#ifndef TESTS_DATA_SCRATCH_H
#define TESTS_DATA_SCRATCH_H

#include <stddef.h>

#include "../../ref/dataset.h"
#include "../test.h"

/* A path for `name` (which may have directories, then created) in a directory that is removed at
 * exit.  Valid for the next seven calls. */
const char *scratch_path(const char *name);

/* Writes a file there and returns its path. */
const char *scratch_file(const char *name, const void *bytes, size_t count);
const char *scratch_text(const char *name, const char *text);

bool file_exists(const char *path);

/* Whether error_message() is exactly this (printf format); the message is in scratch_expected. */
bool error_is(const char *format, ...) BCD_PRINTF(1, 2);
const char *scratch_expected(void);
#define CHECK_ERROR(...)                                                                \
    CHECK(error_is(__VA_ARGS__), "error is \"%s\"\n  expected \"%s\"", error_message(), \
          scratch_expected())

/* The path of a real data file below $BCD_DATA or datasets/; NULL if it is not there. */
const char *real_file(const char *name);
#define SKIP_WITHOUT(name) \
    if (!real_file(name)) SKIP("%s is not in $BCD_DATA or datasets; data/fetch gets it", name)

/* A batch of one sample, with room for it; freed by batch_drop. */
Batch batch_one(const Dataset *dataset, int sample, uint64_t visit);
void batch_drop(Batch *batch);

#endif
