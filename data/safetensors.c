#include "safetensors.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../ref/base/bf16.h"
#include "../ref/base/error.h"

/* The format's limit for the header. */
#define HEADER_MAX 100000000

static const size_t number_bytes[] = {[NUMBER_F32] = 4, [NUMBER_F16] = 2, [NUMBER_BF16] = 2};

/* ---- header ---- */

static int refuse(const Safetensors *file, const char *tensor, const char *what) {
    return error_set("%s: %.80s: %s; the file is damaged, or is not safetensors", file->path,
                     tensor, what);
}

/* Sets *number from JSON, where numbers are doubles.  Returns false if it is not a whole number. */
static bool whole(const cJSON *item, size_t *number) {
    if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0 && item->valuedouble <= 9e15) ||
        item->valuedouble != floor(item->valuedouble))
        return false;
    *number = (size_t)item->valuedouble;
    return true;
}

static NumberKind kind_of(const char *name) {
    if (strcmp(name, "F32") == 0) return NUMBER_F32;
    if (strcmp(name, "F16") == 0) return NUMBER_F16;
    return strcmp(name, "BF16") == 0 ? NUMBER_BF16 : NUMBER_OTHER;
}

static int read_shape(const Safetensors *file, SafeTensor *t, const cJSON *shape) {
    const cJSON *dim;
    t->count = 1;
    if (!cJSON_IsArray(shape) || cJSON_GetArraySize(shape) > SAFETENSORS_RANK)
        return refuse(file, t->name, "no shape of up to 8 dimensions");
    cJSON_ArrayForEach(dim, shape) {
        size_t *size = &t->dim[t->rank++];
        if (!whole(dim, size)) return refuse(file, t->name, "a dimension is no whole number");
        if (*size && t->count > (size_t)9e15 / *size)
            return refuse(file, t->name, "its shape is too large");
        t->count *= *size;
    }
    return 0;
}

static int read_tensor(const Safetensors *file, SafeTensor *t, const cJSON *item, size_t data,
                       size_t data_bytes) {
    const cJSON *kind = cJSON_GetObjectItemCaseSensitive(item, "dtype");
    const cJSON *shape = cJSON_GetObjectItemCaseSensitive(item, "shape");
    const cJSON *offsets = cJSON_GetObjectItemCaseSensitive(item, "data_offsets");
    size_t begin, end;
    *t = (SafeTensor){.name = item->string};
    if (!cJSON_IsString(kind)) return refuse(file, t->name, "no dtype");
    t->kind = kind_of(kind->valuestring);
    if (read_shape(file, t, shape)) return -1;
    if (!cJSON_IsArray(offsets) || cJSON_GetArraySize(offsets) != 2 ||
        !whole(cJSON_GetArrayItem(offsets, 0), &begin) ||
        !whole(cJSON_GetArrayItem(offsets, 1), &end))
        return refuse(file, t->name, "no data_offsets");
    if (begin > end || end > data_bytes) return refuse(file, t->name, "lies outside of the file");
    if (t->kind != NUMBER_OTHER && end - begin != t->count * number_bytes[t->kind])
        return refuse(file, t->name, "shape and data_offsets do not agree");
    t->first = data + begin;
    t->end = data + end;
    return 0;
}

static int by_offset(const void *a, const void *b) {
    const SafeTensor *x = a, *y = b;
    if (x->first != y->first) return x->first < y->first ? -1 : 1;
    return x->end < y->end ? -1 : x->end > y->end;
}

static int by_name(const void *a, const void *b) {
    const SafeTensor *x = a, *y = b;
    return strcmp(x->name, y->name);
}

/* Checks what the format demands: names differ, and the tensors cover every byte behind the header
 * once.  A damaged header seldom passes.  Sorts the tensors by name. */
static int check_cover(Safetensors *file, size_t data, size_t end) {
    SafeTensor *t = file->tensor;
    size_t number = (size_t)file->tensors;
    qsort(t, number, sizeof *t, by_offset);
    for (size_t i = 0; i < number; i++) {
        if (t[i].first != data)
            return refuse(
                file, t[i].name,
                t[i].first < data ? "overlaps another" : "no tensor has the bytes before");
        data = t[i].end;
    }
    if (data != end) return refuse(file, "end", "bytes that belong to no tensor");
    qsort(t, number, sizeof *t, by_name);
    for (size_t i = 1; i < number; i++)
        if (strcmp(t[i - 1].name, t[i].name) == 0) return refuse(file, t[i].name, "appears twice");
    return 0;
}

static int read_header(Safetensors *file, const cJSON *root, size_t data, size_t data_bytes) {
    const cJSON *item;
    if (!cJSON_IsObject(root)) return refuse(file, "header", "no JSON object");
    file->tensor = calloc((size_t)cJSON_GetArraySize(root) + 1, sizeof *file->tensor);
    if (!file->tensor) return error_set("%s: out of memory", file->path);
    cJSON_ArrayForEach(item, root) {
        if (strcmp(item->string, "__metadata__") == 0) continue;
        if (read_tensor(file, &file->tensor[file->tensors], item, data, data_bytes)) return -1;
        file->tensors++;
    }
    return check_cover(file, data, data + data_bytes);
}

int safetensors_parse(Safetensors *file, const char *text, size_t bytes, size_t file_bytes) {
    cJSON *root = cJSON_ParseWithLength(text, bytes);
    file->header = root;
    return read_header(file, root, 8 + bytes, file_bytes - 8 - bytes);
}

/* ---- reading ---- */

static int read_bytes(const Safetensors *file, void *to, size_t bytes) {
    if (fread(to, 1, bytes, file->file) == bytes) return 0;
    return error_set("%s: %s", file->path, feof(file->file) ? "ends too early" : strerror(errno));
}

static int open_header(Safetensors *file) {
    struct stat status;
    unsigned char length[8];
    if (fstat(fileno(file->file), &status) || !S_ISREG(status.st_mode))
        return error_set("%s: not a file", file->path);
    size_t size = (size_t)status.st_size;
    if (size < sizeof length) return refuse(file, "header", "ends too early");
    if (read_bytes(file, length, sizeof length)) return -1;
    if (memcmp(length, "version ", sizeof length) == 0)
        return error_set("%s: is a pointer of Git LFS, not the weights; type: git lfs pull",
                         file->path);
    uint64_t bytes = little_endian_get(length, 8);
    if (bytes > HEADER_MAX || bytes > size - 8) return refuse(file, "header", "ends too early");
    char *text = malloc((size_t)bytes + 1);
    if (!text) return error_set("%s: out of memory for its header", file->path);
    int failed =
        read_bytes(file, text, (size_t)bytes) || safetensors_parse(file, text, (size_t)bytes, size);
    free(text);
    return failed ? -1 : 0;
}

int safetensors_open(Safetensors *file, const char *path) {
    *file = (Safetensors){.file = fopen(path, "rbe")};
    snprintf(file->path, sizeof file->path, "%s", path);
    if (!file->file) return error_set("%s: %s", path, strerror(errno));
    if (open_header(file) == 0) return 0;
    safetensors_close(file);
    return -1;
}

void safetensors_close(Safetensors *file) {
    if (file->file) fclose(file->file);
    cJSON_Delete(file->header);
    free(file->tensor);
    *file = (Safetensors){0};
}

const SafeTensor *safetensors_find(const Safetensors *file, const char *name) {
    const SafeTensor key = {.name = name};
    return bsearch(&key, file->tensor, (size_t)file->tensors, sizeof key, by_name);
}

/* IEEE half precision: 5 bits of exponent, 10 of fraction. */
static float from_half(uint32_t bits) {
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    float value = exponent == 31  ? (fraction ? NAN : INFINITY)
                  : exponent == 0 ? ldexpf((float)fraction, -24)
                                  : ldexpf((float)(fraction + 1024), exponent - 25);
    return bits >> 15 ? -value : value;
}

static float number_at(const unsigned char *bytes, NumberKind kind, size_t i) {
    if (kind == NUMBER_F16) return from_half((uint32_t)little_endian_get(bytes + 2 * i, 2));
    return kind == NUMBER_F32 ? bits_float((uint32_t)little_endian_get(bytes + 4 * i, 4))
                              : float_of_bf16((uint16_t)little_endian_get(bytes + 2 * i, 2));
}

int safetensors_read(const Safetensors *file, const SafeTensor *t, float *numbers) {
    enum { PIECE = 1 << 14 };
    unsigned char bytes[4 * PIECE];
    if (t->kind == NUMBER_OTHER)
        return error_set("%s: %.80s: its numbers are not F32, F16 or BF16", file->path, t->name);
    if (fseeko(file->file, (off_t)t->first, SEEK_SET))
        return error_set("%s: %s", file->path, strerror(errno));
    size_t size = number_bytes[t->kind];
    for (size_t done = 0; done < t->count; done += PIECE) {
        size_t some = t->count - done < PIECE ? t->count - done : PIECE;
        if (read_bytes(file, bytes, some * size)) return -1;
        for (size_t i = 0; i < some; i++) {
            numbers[done + i] = number_at(bytes, t->kind, i);
            if (!isfinite(numbers[done + i]))
                return error_set("%s: %.80s: number %zu is NaN or infinite", file->path, t->name,
                                 done + i);
        }
    }
    return 0;
}

/* ---- writing ---- */

static cJSON *describe(const SafeTensor *t, NumberKind kind, size_t begin) {
    cJSON *item = cJSON_CreateObject();
    const double offsets[2] = {(double)begin, (double)(begin + number_bytes[kind] * t->count)};
    double shape[SAFETENSORS_RANK];
    for (int i = 0; i < t->rank; i++) shape[i] = (double)t->dim[i];
    cJSON_AddStringToObject(item, "dtype", kind == NUMBER_BF16 ? "BF16" : "F32");
    cJSON_AddItemToObject(item, "shape", cJSON_CreateDoubleArray(shape, t->rank));
    cJSON_AddItemToObject(item, "data_offsets", cJSON_CreateDoubleArray(offsets, 2));
    return item;
}

/* Returns the JSON, for the caller to free, and sets *bytes to the bytes of all numbers. */
static char *header_text(const SafeTensor *tensor, int tensors, NumberKind kind, size_t *bytes) {
    cJSON *root = cJSON_CreateObject();
    cJSON *metadata = cJSON_AddObjectToObject(root, "__metadata__");
    cJSON_AddStringToObject(metadata, "format", "pt"); /* readers want to know whose layout it is */
    *bytes = 0;
    for (int i = 0; i < tensors; i++) {
        cJSON_AddItemToObject(root, tensor[i].name, describe(&tensor[i], kind, *bytes));
        *bytes += number_bytes[kind] * tensor[i].count;
    }
    char *text = cJSON_PrintUnformatted(root);
    cJSON_Delete(root);
    return text;
}

int safetensors_create(SafetensorsWriter *w, const char *path, NumberKind kind,
                       const SafeTensor *tensor, int tensors) {
    unsigned char length[8];
    char *text = header_text(tensor, tensors, kind, &w->left);
    w->kind = kind;
    if (!text) return error_set("%s: out of memory for its header", path);
    size_t padded = (strlen(text) + 7) / 8 * 8; /* with blanks, so that numbers are aligned */
    little_endian_put(length, 8, padded);
    int failed = atomic_open(&w->out, path);
    if (!failed) { /* a full disk shows at the next write, or at the commit */
        fwrite(length, 1, 8, w->out.file);
        fprintf(w->out.file, "%-*s", (int)padded, text);
    }
    cJSON_free(text);
    return failed;
}

int safetensors_append(SafetensorsWriter *w, const float *numbers, size_t count) {
    enum { PIECE = 1 << 14 };
    unsigned char bytes[4 * PIECE];
    const size_t size = number_bytes[w->kind];
    if (size * count > w->left)
        return error_set("%s: more numbers than it was made for", w->out.path);
    for (size_t done = 0; done < count; done += PIECE) {
        size_t some = count - done < PIECE ? count - done : PIECE;
        for (size_t i = 0; i < some; i++) {
            const float number = numbers[done + i];
            if (!isfinite(number)) return error_set("%s: a number is NaN or infinite", w->out.path);
            little_endian_put(bytes + size * i, (int)size,
                              size == 2 ? bf16_of(number) : float_bits(number));
        }
        if (fwrite(bytes, size, some, w->out.file) != some)
            return error_set("%s: cannot write: %s", w->out.path, strerror(errno));
    }
    w->left -= size * count;
    return 0;
}

int safetensors_commit(SafetensorsWriter *w) {
    if (w->left) {
        atomic_abandon(&w->out);
        return error_set("%s: %zu bytes of numbers are missing", w->out.path, w->left);
    }
    return atomic_commit(&w->out);
}

void safetensors_abandon(SafetensorsWriter *w) { atomic_abandon(&w->out); }
