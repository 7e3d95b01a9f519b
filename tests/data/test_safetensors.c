/* Safetensors files: written files are read back, kinds of numbers, and damaged files. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../data/safetensors.h"
#include "../../ref/base/error.h"
#include "scratch.h"

/* Writes a file from its header and its numbers. */
static const char *make_file(const char *header, const void *numbers, size_t bytes) {
    static unsigned char file[4096];
    size_t length = strlen(header);
    for (int i = 0; i < 8; i++) file[i] = (unsigned char)(length >> 8 * i);
    memcpy(file + 8, header, length);
    memcpy(file + 8 + length, numbers, bytes);
    return scratch_file("made.safetensors", file, 8 + length + bytes);
}

static void written_is_read(void) {
    enum { NUMBERS = 40000 };
    static float numbers[NUMBERS], back[NUMBERS];
    SafeTensor list[] = {{.name = "a.weight", .rank = 2, .dim = {200, 200}, .count = NUMBERS},
                         {.name = "b \"quoted\"", .rank = 1, .dim = {3}, .count = 3}};
    SafetensorsWriter writer;
    Safetensors file;
    for (int i = 0; i < NUMBERS; i++) numbers[i] = sinf((float)i);
    const char *path = scratch_path("written.safetensors");
    CHECK(safetensors_create(&writer, path, NUMBER_F32, list, 2) == 0, "%s", error_message());
    CHECK(access(path, F_OK) != 0, "there before it is complete");
    CHECK(safetensors_append(&writer, numbers, 7) == 0, "%s", error_message());
    CHECK(safetensors_append(&writer, numbers + 7, NUMBERS - 7) == 0, "%s", error_message());
    CHECK(safetensors_append(&writer, numbers, 3) == 0, "%s", error_message());
    CHECK(safetensors_commit(&writer) == 0, "%s", error_message());
    if (!CHECK(safetensors_open(&file, path) == 0, "%s", error_message())) return;
    const SafeTensor *a = safetensors_find(&file, "a.weight");
    const SafeTensor *b = safetensors_find(&file, "b \"quoted\"");
    CHECK(file.tensors == 2 && a && b && !safetensors_find(&file, "c"), "%d tensors", file.tensors);
    CHECK(a && a->kind == NUMBER_F32 && a->rank == 2 && a->dim[1] == 200, "another shape");
    CHECK(a && a->first % 8 == 0, "the numbers begin at byte %zu", a->first);
    CHECK(a && safetensors_read(&file, a, back) == 0, "%s", error_message());
    CHECK(memcmp(back, numbers, sizeof back) == 0, "other numbers");
    CHECK(b && safetensors_read(&file, b, back) == 0 && back[2] == numbers[2], "other numbers");
    safetensors_close(&file);
}

/* A number is rounded to the nearest bf16, ties to even. */
static void bf16_is_rounded(void) {
    static const float numbers[] = {1, -3.5f, 0x1.01p0f, 0x1.03p0f, 0x1.010002p0f, -0x1.fep-127f};
    static const float want[] = {1, -3.5f, 1, 0x1.04p0f, 0x1.02p0f, -0x1.00p-126f};
    SafeTensor list[] = {{.name = "a", .rank = 1, .dim = {6}, .count = 6}};
    float back[6];
    SafetensorsWriter writer;
    Safetensors file;
    const char *path = scratch_path("rounded.safetensors");
    CHECK(safetensors_create(&writer, path, NUMBER_BF16, list, 1) == 0 &&
              safetensors_append(&writer, numbers, 6) == 0 && safetensors_commit(&writer) == 0,
          "%s", error_message());
    if (!CHECK(safetensors_open(&file, path) == 0, "%s", error_message())) return;
    CHECK(file.tensor->kind == NUMBER_BF16 && file.tensor->end - file.tensor->first == 12, "%zu",
          file.tensor->end);
    CHECK(safetensors_read(&file, file.tensor, back) == 0, "%s", error_message());
    for (int i = 0; i < 6; i++) CHECK(back[i] == want[i], "%a, not %a", back[i], want[i]);
    safetensors_close(&file);
}

/* A file with too few or too many numbers is never created. */
static void incomplete_is_no_file(void) {
    SafeTensor list[] = {{.name = "a", .rank = 1, .dim = {4}, .count = 4}};
    const float numbers[5] = {0};
    SafetensorsWriter writer;
    const char *path = scratch_path("incomplete.safetensors");
    CHECK(safetensors_create(&writer, path, NUMBER_F32, list, 1) == 0, "%s", error_message());
    CHECK(safetensors_append(&writer, numbers, 5) == -1, "more than it holds was taken");
    CHECK(safetensors_append(&writer, numbers, 3) == 0, "%s", error_message());
    CHECK(safetensors_commit(&writer) == -1, "an incomplete file was made");
    CHECK(access(path, F_OK) != 0, "an incomplete file is there");
}

static void halves_are_read(void) {
    /* 1, -2, 65504, the least normal and subnormal ones, -0, 1.5, and 1, -3.5 in bfloat16; an I64
     */
    static const uint16_t bits[] = {0x3c00, 0xc000, 0x7bff, 0x0400, 0x0001, 0x8000, 0x3e00,
                                    0x3f80, 0xc060, 0,      0,      0,      0};
    static const float want[] = {1, -2, 65504, 0x1p-14f, 0x1p-24f, -0.0f, 1.5f};
    float halves[7], shorts[2];
    unsigned char bytes[sizeof bits];
    Safetensors file;
    for (size_t i = 0; i < sizeof bits / sizeof *bits; i++) {
        bytes[2 * i] = (unsigned char)bits[i];
        bytes[2 * i + 1] = (unsigned char)(bits[i] >> 8);
    }
    const char *path = make_file(
        "{\"__metadata__\":{\"format\":\"pt\"},"
        "\"h\":{\"dtype\":\"F16\",\"shape\":[7],\"data_offsets\":[0,14]},"
        "\"s\":{\"dtype\":\"BF16\",\"shape\":[2,1],\"data_offsets\":[14,18]},"
        "\"i\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[18,26]}}",
        bytes, sizeof bytes);
    if (!CHECK(safetensors_open(&file, path) == 0, "%s", error_message())) return;
    CHECK(safetensors_read(&file, safetensors_find(&file, "h"), halves) == 0, "%s",
          error_message());
    CHECK(safetensors_read(&file, safetensors_find(&file, "s"), shorts) == 0, "%s",
          error_message());
    CHECK(memcmp(halves, want, sizeof want) == 0, "halves are read as others");
    CHECK(shorts[0] == 1 && shorts[1] == -3.5f, "%g, %g", (double)shorts[0], (double)shorts[1]);
    CHECK(safetensors_read(&file, safetensors_find(&file, "i"), halves) == -1 &&
              strstr(error_message(), "not F32, F16 or BF16"),
          "%s", error_message());
    safetensors_close(&file);
}

/* A tensor without numbers lies where the next one begins, wherever the header names it. */
static void tensors_without_numbers(void) {
    static const float numbers[] = {1, 2};
    float back[2];
    Safetensors file;
    const char *path = make_file(
        "{\"full\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
        "\"none\":{\"dtype\":\"F32\",\"shape\":[0,3],\"data_offsets\":[0,0]}}",
        numbers, sizeof numbers);
    if (!CHECK(safetensors_open(&file, path) == 0, "%s", error_message())) return;
    const SafeTensor *none = safetensors_find(&file, "none");
    CHECK(none && none->count == 0 && safetensors_read(&file, none, back) == 0, "%s",
          error_message());
    CHECK(safetensors_read(&file, safetensors_find(&file, "full"), back) == 0 && back[1] == 2, "%s",
          error_message());
    safetensors_close(&file);
}

#define ONE(shape, offsets) \
    "{\"a\":{\"dtype\":\"F32\",\"shape\":" shape ",\"data_offsets\":" offsets "}}"

#define TWO(a, at, b, bt)                                                       \
    "{\"" a "\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":" at "},\"" b \
    "\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":" bt "}}"

/* NaN and infinity are not written. */
static void what_is_no_number_is_not_written(void) {
    const float numbers[] = {1, INFINITY, NAN};
    const SafeTensor list = {.name = "w", .rank = 1, .dim = {3}, .count = 3};
    for (int i = 1; i < 3; i++) {
        SafetensorsWriter writer;
        const char *path = scratch_path("nan.safetensors");
        CHECK(safetensors_create(&writer, path, NUMBER_F32, &list, 1) == 0, "%s", error_message());
        CHECK(safetensors_append(&writer, numbers, 1) == 0, "%s", error_message());
        CHECK(safetensors_append(&writer, numbers + i, 1) == -1 &&
                  strstr(error_message(), "a number is NaN or infinite"),
              "%s", error_message());
        safetensors_abandon(&writer);
    }
}

/* NaN and infinity are refused in every kind of number. */
static void what_is_no_number_is_refused(void) {
    static const struct {
        const char *kind;
        uint32_t bits;
        int bytes;
    } rows[] = {{"F32", 0x7fc00000, 4}, {"F32", 0xff800000, 4}, {"F16", 0x7c00, 2},
                {"F16", 0x7e01, 2},     {"BF16", 0x7f80, 2},    {"BF16", 0xffc0, 2}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        unsigned char bytes[8] = {0};
        char header[160];
        float numbers[2];
        Safetensors file;
        unsigned char *second = bytes + (rows[i].bytes == 4 ? 4 : 2);
        for (int b = 0; b < 4 && b < rows[i].bytes; b++)
            second[b] = (unsigned char)(rows[i].bits >> 8 * b);
        snprintf(header, sizeof header,
                 "{\"w\":{\"dtype\":\"%s\",\"shape\":[2],\"data_offsets\":[0,%d]}}", rows[i].kind,
                 2 * rows[i].bytes);
        const char *path = make_file(header, bytes, 2 * (size_t)rows[i].bytes);
        if (!CHECK(safetensors_open(&file, path) == 0, "%s", error_message())) continue;
        CHECK(safetensors_read(&file, safetensors_find(&file, "w"), numbers) == -1 &&
                  strstr(error_message(), "w: number 1 is NaN or infinite"),
              "%s %x: \"%s\"", rows[i].kind, rows[i].bits, error_message());
        safetensors_close(&file);
    }
}

static void damage_is_refused(void) {
    static const struct {
        const char *header, *says;
    } rows[] = {
        {"[]", "no JSON object"},
        {"{\"a\":", "no JSON object"},
        {"{\"a\":3}", "no dtype"},
        {"{\"a\":{\"dtype\":\"F32\"}}", "no shape"},
        {ONE("[1,1,1,1,1,1,1,1,1]", "[0,4]"), "no shape of up to 8"},
        {ONE("[-1]", "[0,4]"), "no whole number"},
        {ONE("[0.5]", "[0,4]"), "no whole number"},
        {ONE("[4000000000,4000000000,4000000000]", "[0,4]"), "too large"},
        {ONE("[2]", "[0]"), "no data_offsets"},
        {ONE("[2]", "[0,4]"), "do not agree"},
        {ONE("[2]", "[12,20]"), "outside of the file"},
        {ONE("[0]", "[4,0]"), "outside of the file"},
        {ONE("[2]", "[0,8]"), "belong to no tensor"},
        {ONE("[3]", "[4,16]"), "no tensor has the bytes before"},
        {TWO("a", "[0,8]", "b", "[4,12]"), "overlaps another"},
        {TWO("a", "[0,8]", "b", "[0,8]"), "overlaps another"},
        {TWO("a", "[0,8]", "a", "[8,16]"), "appears twice"},
    };
    const float numbers[4] = {0};
    Safetensors file;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *path = make_file(rows[i].header, numbers, sizeof numbers);
        CHECK(safetensors_open(&file, path) == -1, "%s was taken", rows[i].header);
        CHECK(strstr(error_message(), rows[i].says), "%s: \"%s\"", rows[i].header, error_message());
    }
    CHECK(safetensors_open(&file, scratch_text("short.safetensors", "1234")) == -1, "4 bytes");
    CHECK(safetensors_open(&file, scratch_text("long.safetensors", "12345678{}")) == -1,
          "a header longer than the file");
    CHECK(safetensors_open(
              &file, scratch_text("minus.safetensors", "\377\377\377\377\377\377\377\377{}")) == -1,
          "a header of length -1");
    CHECK(safetensors_open(&file, "/") == -1 && safetensors_open(&file, "/nowhere") == -1,
          "what is no file was taken");
}

void test_safetensors(void) {
    RUN(written_is_read);
    RUN(bf16_is_rounded);
    RUN(incomplete_is_no_file);
    RUN(halves_are_read);
    RUN(tensors_without_numbers);
    RUN(what_is_no_number_is_not_written);
    RUN(what_is_no_number_is_refused);
    RUN(damage_is_refused);
}
