/* Reads and writes files of tensors in the safetensors format.  A file begins with the length of
 * its header, 8 bytes, little endian; then comes the header as JSON,
 *   {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}
 * and then the numbers, little endian, row by row, at these offsets. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "file.h"

enum { SAFETENSORS_RANK = 8 };

typedef enum { NUMBER_F32, NUMBER_F16, NUMBER_BF16, NUMBER_OTHER } NumberKind;

typedef struct {
    const char *name;
    NumberKind kind;
    int rank;
    size_t dim[SAFETENSORS_RANK], count; /* numbers in all */
    size_t first, end;                   /* bytes of the file: [first, end) */
} SafeTensor;

typedef struct {
    char path[PATH_BYTES];
    FILE *file;
    void *header; /* holds the names */
    SafeTensor *tensor;
    int tensors;
} Safetensors;

/* Opens a file and reads its header.  Checks that names differ, and that the tensors cover the rest
 * of the file without gaps or overlap.  -1 and an error. */
int safetensors_open(Safetensors *file, const char *path);
void safetensors_close(Safetensors *file);

/* Returns the tensor of this name, or NULL, without an error, if there is none. */
const SafeTensor *safetensors_find(const Safetensors *file, const char *name);

/* Overwrites numbers[tensor->count].  -1 and an error that names the tensor if its kind of numbers
 * is NUMBER_OTHER, a number is NaN or infinite, or the file cannot be read. */
int safetensors_read(const Safetensors *file, const SafeTensor *tensor, float *numbers);

/* Does the same for a header text[bytes] in memory, of a file with `file_bytes` in all; file->path
 * is for errors. */
int safetensors_parse(Safetensors *file, const char *text, size_t bytes, size_t file_bytes);

/* ---- writing: tensors in the order in which they are given ---- */

typedef struct {
    AtomicFile out;
    NumberKind kind; /* of all numbers: NUMBER_F32, or NUMBER_BF16, to which they are rounded */
    size_t left;     /* bytes of numbers that are still to be written */
} SafetensorsWriter;

/* Starts a file; of the tensors it reads name, rank, dim and count.  The file appears when it is
 * committed.  -1 and an error. */
int safetensors_create(SafetensorsWriter *writer, const char *path, NumberKind kind,
                       const SafeTensor *tensor, int tensors);
/* Appends numbers, rounded to nearest, ties to even: tensors may be written in parts or several at
 * once. */
int safetensors_append(SafetensorsWriter *writer, const float *numbers, size_t count);
int safetensors_commit(SafetensorsWriter *writer);
void safetensors_abandon(SafetensorsWriter *writer);
