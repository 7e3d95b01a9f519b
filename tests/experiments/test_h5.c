/* The HDF5 layer: what is written is read back the same, and what cannot be read or written is an
 * error. */
#include <hdf5.h>
#include <hdf5_hl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../../experiments/store/h5.h"
#include "../data/scratch.h"

typedef struct {
    uint64_t step;
    double loss;
    int submodel;
    char reason[H5_NAME];
} Row;

static const H5Column columns[] = {
    {H5_FIELD(Row, step, H5_UINT64)},
    {H5_FIELD(Row, loss, H5_DOUBLE), .unit = "nats"},
    {H5_FIELD(Row, submodel, H5_INT)},
    {H5_FIELD(Row, reason, H5_TEXT)},
};
enum { COLUMNS = sizeof columns / sizeof *columns };

static const Row rows[] = {{1, 2.5, 0, "start"}, {7, -1e300, 3, ""}, {UINT64_MAX, 0, -4, "é"}};

static const float numbers[6] = {1, 2, 3, -4, 5e30F, -0.0F};

/* Writes a file with an object of every kind. */
static const char *example(const char *name) {
    const char *path = scratch_path(name);
    H5File file;
    H5Dim dims[2] = {{"out", 2, NULL}, {"in", 3, NULL}};
    CHECK(h5_create(&file, path) == 0, "%s", error_message());
    h5_set_text(&file, "/", "format", "example");
    h5_set_text(&file, "/deep/group", "empty", "");
    h5_set(&file, "/deep/group", "whole", H5_INT64, &(int64_t){-5});
    h5_set(&file, "/deep/group", "count", H5_UINT64, &(uint64_t){UINT64_MAX});
    h5_set(&file, "/deep/group", "real", H5_DOUBLE, &(double){0.1});
    h5_set_fields(&file, "/fields", columns, COLUMNS, rows);
    h5_write(&file, "/deep/matrix", H5_FLOAT, numbers, 2, dims, "s");
    h5_write_table(&file, "/table", NULL, columns, COLUMNS, rows, sizeof *rows, 3);
    h5_write_table(&file, "/none", NULL, columns, COLUMNS, rows, sizeof *rows, 0);
    CHECK(h5_commit(&file) == 0, "%s", error_message());
    return path;
}

static void round_trip(void) {
    H5File file;
    char text[H5_NAME];
    int64_t whole = 0;
    uint64_t count = 0;
    double number = 0;
    float found[6];
    size_t size[H5_RANK] = {0}, row_count = 9;
    if (!CHECK(h5_open(&file, example("all.h5")) == 0, "%s", error_message())) return;
    CHECK(h5_get_text(&file, "/", "format", text, sizeof text) == 0 && strcmp(text, "example") == 0,
          "text \"%s\"", text);
    CHECK(h5_get_text(&file, "/deep/group", "empty", text, sizeof text) == 0 && !*text, "empty");
    CHECK(h5_get(&file, "/deep/group", "whole", H5_INT64, &whole) == 0 && whole == -5, "whole");
    CHECK(h5_get(&file, "/deep/group", "count", H5_UINT64, &count) == 0 && count == UINT64_MAX,
          "count");
    CHECK(h5_get(&file, "/deep/group", "real", H5_DOUBLE, &number) == 0 && number == 0.1, "real");
    CHECK(h5_get_text(&file, "/deep/matrix", "unit", text, sizeof text) == 0 &&
              strcmp(text, "s") == 0,
          "unit");
    CHECK(h5_size(&file, "/deep/matrix", size) == 2 && size[0] == 2 && size[1] == 3, "shape");
    CHECK(h5_read(&file, "/deep/matrix", H5_FLOAT, found, 2, size) == 0 &&
              memcmp(found, numbers, sizeof found) == 0,
          "matrix");
    Row *back = h5_read_table(&file, "/table", columns, COLUMNS, sizeof *back, &row_count);
    if (CHECK(back && row_count == 3, "table: %s", error_message()))
        for (int i = 0; i < 3; i++)
            CHECK(back[i].step == rows[i].step && back[i].loss == rows[i].loss &&
                      back[i].submodel == rows[i].submodel &&
                      strcmp(back[i].reason, rows[i].reason) == 0,
                  "row %d", i);
    free(back);
    back = h5_read_table(&file, "/none", columns, COLUMNS, sizeof *back, &row_count);
    CHECK(back && row_count == 0, "empty table: %s", error_message());
    free(back);
    CHECK(h5_exists(&file, "/table/loss") && !h5_exists(&file, "/table/x") &&
              !h5_exists(&file, "/x/y/z"),
          "exists");
    Row fields;
    CHECK(h5_get_fields(&file, "/fields", columns, COLUMNS, &fields) == 0 &&
              fields.step == rows->step && fields.loss == rows->loss &&
              !strcmp(fields.reason, "start"),
          "fields: %s", error_message());
    CHECK(
        h5_get_text(&file, "/table/loss", "unit", text, sizeof text) == 0 && !strcmp(text, "nats"),
        "unit of a column");
    h5_close(&file);
}

/* A field that may be missing is read as NAN if it is real, 0 if it is whole, and "" if it is
 * text; an empty text is not stored. */
static void optional_fields(void) {
    static const H5Column some[] = {
        {.name = "absent", .kind = H5_DOUBLE, .offset = offsetof(Row, loss), .optional = true},
        {.name = "none", .kind = H5_INT, .offset = offsetof(Row, submodel), .optional = true},
        {.name = "gone", .kind = H5_TEXT, .offset = offsetof(Row, reason), .optional = true}};
    H5File file;
    Row read[3] = {rows[0], rows[0], rows[0]}, one = rows[0];
    if (!CHECK(h5_open(&file, example("optional.h5")) == 0, "%s", error_message())) return;
    CHECK(h5_read_columns(&file, "/table", some, 3, read, sizeof *read, 3) == 0 &&
              isnan(read[2].loss) && !read[2].submodel && !*read[2].reason && read[2].step == 1,
          "columns: %g, %d, \"%s\"", read[2].loss, read[2].submodel, read[2].reason);
    CHECK(h5_get_fields(&file, "/fields", some + 2, 1, &one) == 0 && !*one.reason, "\"%s\"",
          one.reason);
    CHECK(h5_get_fields(&file, "/fields", columns, 1, &one) == 0 &&
              h5_get_fields(&file, "/deep", columns, 1, &one) == -1,
          "a missing field is no error");
    h5_close(&file);
    const char *path = scratch_path("left-out.h5");
    CHECK(h5_create(&file, path) == 0, "%s", error_message());
    one = (Row){.reason = ""};
    h5_set_fields(&file, "/fields", some + 2, 1, &one);
    CHECK(h5_commit(&file) == 0 && h5_open(&file, path) == 0, "%s", error_message());
    CHECK(!h5_has(&file, "/fields", "gone"), "an empty text is stored");
    h5_close(&file);
}

/* h5py and h5ls show labels on plain dimensions, and scales on the columns of a table. */
static void names_dimensions(void) {
    const char *path = example("named.h5");
    char label[H5_NAME] = "";
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    hid_t matrix = H5Dopen2(file, "/deep/matrix", H5P_DEFAULT);
    hid_t step = H5Dopen2(file, "/table/step", H5P_DEFAULT);
    hid_t loss = H5Dopen2(file, "/table/loss", H5P_DEFAULT);
    CHECK(H5DSget_label(matrix, 1, label, sizeof label) == 2 && strcmp(label, "in") == 0,
          "label \"%s\"", label);
    CHECK(H5DSget_scale_name(step, label, sizeof label) == 4 && strcmp(label, "step") == 0,
          "scale \"%s\"", label);
    CHECK(H5DSis_attached(loss, step, 0) == 1, "loss has no scale");
    H5Dclose(matrix);
    H5Dclose(step);
    H5Dclose(loss);
    H5Fclose(file);
}

/* Text fills its attribute to the last letter, and the type says so: a reader that expects a zero
 * after it could take the last letter for one. */
static void text_is_padded_not_terminated(void) {
    hid_t file = H5Fopen(example("text.h5"), H5F_ACC_RDONLY, H5P_DEFAULT);
    hid_t attribute = H5Aopen(file, "format", H5P_DEFAULT), type = H5Aget_type(attribute);
    CHECK(H5Tget_size(type) == strlen("example") && H5Tget_strpad(type) == H5T_STR_NULLPAD &&
              H5Tget_cset(type) == H5T_CSET_UTF8,
          "the type of a text");
    H5Tclose(type);
    H5Aclose(attribute);
    H5Fclose(file);
}

/* The file holds no time of day. */
static void same_twice(void) {
    size_t a_count, b_count;
    char *a = scratch_read(example("a.h5"), &a_count);
    struct timespec second = {1, 100000000};
    nanosleep(&second, NULL);
    char *b = scratch_read(example("b.h5"), &b_count);
    CHECK(a_count > 0 && a_count == b_count && memcmp(a, b, a_count) == 0,
          "two files of the same contents differ");
    free(a);
    free(b);
}

static void refuses_strange_files(void) {
    H5File file;
    const char *path = scratch_path("absent.h5");
    CHECK(h5_open(&file, path) != 0, "opened");
    CHECK_ERROR("%s: cannot read: No such file or directory", path);
    path = scratch_text("text.h5", "not HDF5 at all");
    CHECK(h5_open(&file, path) != 0, "opened");
    CHECK_ERROR("%s: not an HDF5 file", path);
    path = scratch_text("empty.h5", "");
    CHECK(h5_open(&file, path) != 0, "opened");
    CHECK_ERROR("%s: not an HDF5 file", path);
    path = example("whole.h5");
    size_t count;
    char *bytes = scratch_read(path, &count);
    path = scratch_file("cut.h5", bytes, count / 2);
    free(bytes);
    CHECK(h5_open(&file, path) != 0, "opened");
    CHECK_ERROR("%s: a damaged or truncated HDF5 file", path);
}

static void refuses_strange_contents(void) {
    const char *path = example("contents.h5");
    H5File file;
    float data[64];
    double number;
    char text[4];
    size_t size[2] = {3, 2}, row_count;
    if (!CHECK(h5_open(&file, path) == 0, "%s", error_message())) return;
    CHECK(h5_read(&file, "/deep/matrix", H5_FLOAT, data, 2, size) != 0, "read");
    CHECK_ERROR("%s: /deep/matrix: has another shape than expected", path);
    CHECK(h5_read(&file, "/absent/matrix", H5_FLOAT, data, 2, size) != 0, "read");
    CHECK_ERROR("%s: /absent/matrix: is missing", path);
    CHECK(h5_read(&file, "/table/reason", H5_FLOAT, data, 1, (size_t[]){3}) != 0, "read");
    CHECK_ERROR("%s: /table/reason: has another type than expected", path);
    CHECK(h5_read(&file, "/deep", H5_FLOAT, data, 1, size) != 0, "read");
    CHECK_ERROR("%s: /deep: is no data set, or damaged", path);
    CHECK(h5_get(&file, "/", "format", H5_DOUBLE, &number) != 0, "read");
    CHECK_ERROR("%s: / attribute format: has another type than expected", path);
    CHECK(h5_get(&file, "/", "nothing", H5_DOUBLE, &number) != 0, "read");
    CHECK_ERROR("%s: / attribute nothing: is missing", path);
    CHECK(h5_get_text(&file, "/", "format", text, sizeof text) != 0, "read");
    CHECK_ERROR("%s: format: is too long", path);
    CHECK(!h5_read_table(&file, "/deep", columns, COLUMNS, sizeof(Row), &row_count), "read");
    CHECK_ERROR("%s: /deep/step: is missing", path);
    h5_close(&file);
}

/* A data set has at most H5_RANK dimensions. */
static void counts_dimensions(void) {
    static const hsize_t ones[H5_RANK + 1] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    H5File file;
    size_t size[H5_RANK];
    const float number = 7;
    const char *path = scratch_path("ranks.h5");
    if (!CHECK(h5_create(&file, path) == 0, "%s", error_message())) return;
    CHECK(H5LTmake_dataset_float(file.id, "eight", H5_RANK, ones, &number) >= 0 &&
              H5LTmake_dataset_float(file.id, "nine", H5_RANK + 1, ones, &number) >= 0,
          "eight and nine dimensions");
    CHECK(h5_commit(&file) == 0 && h5_open(&file, path) == 0, "%s", error_message());
    CHECK(h5_size(&file, "/eight", size) == H5_RANK && size[H5_RANK - 1] == 1, "eight");
    CHECK(h5_size(&file, "/nine", size) == -1, "nine dimensions in an array of eight");
    CHECK_ERROR("%s: /nine: has no usable shape", path);
    h5_close(&file);
}

/* A file has the size of its numbers, whatever part of a matrix one piece can hold. */
static void pieces_waste_nothing(void) {
    static float data[3001 * 300];
    for (size_t rows_of = 1; rows_of <= 3001; rows_of += 500) {
        const H5Dim dims[2] = {{"out", rows_of, NULL}, {"in", 300, NULL}};
        const double bytes = (double)(rows_of * 300 * sizeof *data);
        H5File file;
        struct stat status;
        CHECK(h5_create(&file, scratch_path("pieces.h5")) == 0, "%s", error_message());
        h5_write(&file, "/matrix", H5_FLOAT, data, 2, dims, NULL);
        CHECK(h5_commit(&file) == 0 && stat(scratch_path("pieces.h5"), &status) == 0, "%s",
              error_message());
        CHECK((double)status.st_size < 1.01 * bytes + 20000, "%zu rows", rows_of);
    }
}

/* On a disk that fills up after `bytes` bytes the old file stays as it was. */
static void full_disk(size_t bytes) {
    const char *path = example("kept.h5");
    size_t before, after;
    char *old = scratch_read(path, &before), part[700];
    size_t count = 300000;
    float *data = calloc(count, sizeof *data);
    struct rlimit limit, tight;
    getrlimit(RLIMIT_FSIZE, &limit);
    tight = limit;
    tight.rlim_cur = bytes;
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &tight);
    H5File file;
    H5Dim dim = {"x", count, NULL};
    int failed = h5_create(&file, path);
    if (!failed) {
        h5_write(&file, "/data", H5_FLOAT, data, 1, &dim, "s");
        h5_set_text(&file, "/data", "after", "the failure");
        failed = h5_commit(&file);
    }
    setrlimit(RLIMIT_FSIZE, &limit);
    CHECK(failed == -1, "%zu bytes were enough", bytes);
    CHECK(strstr(error_message(), "kept.h5: cannot ") && strstr(error_message(), "File too large"),
          "error is \"%s\"", error_message());
    char *now = scratch_read(path, &after);
    CHECK(before == after && memcmp(old, now, before) == 0, "the old file changed");
    snprintf(part, sizeof part, "%s.tmp", path);
    CHECK(!file_exists(part), "half a file is left behind");
    free(old);
    free(now);
    free(data);
}

static void survives_a_full_disk(void) {
    full_disk(1000);
    for (size_t bytes = 0; bytes <= 1200000; bytes += 150000) full_disk(bytes);
}

/* Of two writers of a file the second is refused, and the first one's file is complete. */
static void has_one_writer(void) {
    const char *path = scratch_path("contested.h5");
    H5File one, two;
    double value = 0;
    if (!CHECK(h5_create(&one, path) == 0, "%s", error_message())) return;
    CHECK(h5_create(&two, path) == -1 &&
              strstr(error_message(), "contested.h5: another process is writing it"),
          "%s", error_message());
    h5_write(&one, "/value", H5_DOUBLE, &(double){7}, 1, &(H5Dim){"mean", 1, NULL}, NULL);
    CHECK(h5_commit(&one) == 0, "%s", error_message());
    CHECK(h5_open(&two, path) == 0 &&
              h5_read(&two, "/value", H5_DOUBLE, &value, 1, (size_t[]){1}) == 0 && value == 7,
          "%s", error_message());
    h5_close(&two);
}

static void refuses_a_missing_directory(void) {
    H5File file;
    const char *path = "/nonexistent/directory/file.h5";
    CHECK(h5_create(&file, path) != 0, "created");
    CHECK_ERROR("%s: cannot create: No such file or directory", path);
}

/* A failure is remembered until h5_commit, which then leaves nothing behind. */
static void remembers_the_first_failure(void) {
    const char *path = scratch_path("failed.h5");
    H5File file;
    H5Dim dim = {"x", 3, NULL};
    CHECK(h5_create(&file, path) == 0, "%s", error_message());
    h5_write(&file, "/a", H5_INT, (int[]){1, 2, 3}, 1, &dim, NULL);
    h5_write(&file, "/a", H5_INT, (int[]){1, 2, 3}, 1, &dim, NULL);
    h5_write(&file, "/b", H5_INT, (int[]){1, 2, 3}, 1, &dim, NULL);
    CHECK(h5_commit(&file) != 0, "committed");
    CHECK_ERROR("%s: cannot write /a: the HDF5 library refused", path);
    CHECK(!file_exists(path), "a file is there");
}

/* A column of 4 MiB is stored in chunks of 1 MiB. */
static void large_columns_are_cut(void) {
    enum { NUMBERS = 1 << 19 };
    double *column = calloc(NUMBERS, sizeof *column);
    hsize_t chunk = 0;
    H5File file;
    CHECK(h5_create(&file, scratch_path("large.h5")) == 0, "%s", error_message());
    h5_write(&file, "/column", H5_DOUBLE, column, 1, (H5Dim[]){{"row", NUMBERS, NULL}}, "s");
    hid_t data = H5Dopen2(file.id, "/column", H5P_DEFAULT), how = H5Dget_create_plist(data);
    CHECK(H5Pget_chunk(how, 1, &chunk) == 1 && chunk == 1 << 17, "pieces of %d numbers",
          (int)chunk);
    H5Pclose(how);
    H5Dclose(data);
    CHECK(h5_commit(&file) == 0, "%s", error_message());
    free(column);
}

/* What another version means is not known. */
static void refuses_another_version(void) {
    const char *path = scratch_path("version.h5");
    H5File file;
    CHECK(h5_create_format(&file, path, "bcd run", 2) == 0 && h5_commit(&file) == 0, "%s",
          error_message());
    for (int version = 1; version <= 3; version++) {
        const int failed = h5_open_format(&file, path, "bcd run", version, "a run");
        if (!CHECK(failed == (version == 2 ? 0 : -1), "version 2 read as %d", version) || failed)
            CHECK_ERROR("%s: version 2; this program reads version %d", path, version);
        else
            h5_close(&file);
    }
}

void test_h5(void) {
    RUN(round_trip);
    RUN(optional_fields);
    RUN(names_dimensions);
    RUN(text_is_padded_not_terminated);
    RUN(same_twice);
    RUN(refuses_strange_files);
    RUN(refuses_strange_contents);
    RUN(refuses_another_version);
    RUN(counts_dimensions);
    RUN(pieces_waste_nothing);
    RUN(survives_a_full_disk);
    RUN(has_one_writer);
    RUN(refuses_a_missing_directory);
    RUN(remembers_the_first_failure);
    RUN(large_columns_are_cut);
}
