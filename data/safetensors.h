/* Files of tensors in the safetensors format: 8 bytes, the length of what follows, little endian;
 * JSON, {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}; then the
 * numbers, little endian, row by row, at those offsets. */
#ifndef DATA_SAFETENSORS_H
#define DATA_SAFETENSORS_H

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
    int file;
    void *header; /* what the names are part of */
    SafeTensor *tensor;
    int tensors;
} Safetensors;

/* Reads the header, and checks that names differ and that the tensors cover the rest of the file,
 * without gaps or overlap.  -1 and an error. */
int safetensors_open(Safetensors *file, const char *path);
void safetensors_close(Safetensors *file);

/* NULL, without an error, where there is none of this name. */
const SafeTensor *safetensors_find(const Safetensors *file, const char *name);

/* Overwrites numbers[tensor->count].  -1 and an error that names the tensor: a kind of number that
 * is not read here, a number that is NaN or infinite, or the file cannot be read. */
int safetensors_read(const Safetensors *file, const SafeTensor *tensor, float *numbers);

/* The header of a file in memory (what safetensors_open reads): `bytes` at `text`, of a file of
 * `file_bytes` in all.  file->path names it. */
int safetensors_parse(Safetensors *file, const char *text, size_t bytes, size_t file_bytes);

/* ---- writing: tensors in F32, in the order of their names' listing ---- */

typedef struct {
    AtomicFile out;
    size_t left; /* bytes of numbers still to come */
} SafetensorsWriter;

/* tensor[].name, rank, dim and count are read.  The file appears when it is complete.  -1 and an
 * error. */
int safetensors_create(SafetensorsWriter *writer, const char *path, const SafeTensor *tensor,
                       int tensors);
/* The numbers of the next tensor, or some of them. */
int safetensors_append(SafetensorsWriter *writer, const float *numbers, size_t count);
int safetensors_commit(SafetensorsWriter *writer);
void safetensors_abandon(SafetensorsWriter *writer);

#endif
