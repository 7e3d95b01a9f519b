/* `bcd gradients`: every number in its file is compared with PyTorch's, through files alone, as a
 * user of another framework would do. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../experiments/cli/commands.h"
#include "../../experiments/store/h5.h"
#include "../../experiments/train/modules.h"
#include "../../ref/base/error.h"
#include "../data/scratch.h"
#include "../test.h"
#include "compare.h"

static void fixture_path(char path[256], const char *name) {
    snprintf(path, 256, "tests/fixtures/%s.h5", name);
}

/* Runs the command on a device: it reads two files and writes a third. */
static int make_on(DeviceKind device, Mode mode, const char *checkpoint, const char *batch_path,
                   const char *out) {
    CommandLine line;
    command_line_defaults(&line, COMMAND_GRADIENTS);
    line.options.device = (int)device;
    line.options.gradients.mode = (int)mode;
    strcpy(line.options.gradients.checkpoint, checkpoint);
    strcpy(line.options.gradients.batch_file, batch_path);
    strcpy(line.options.out, out);
    return command_gradients(&line);
}

static int make(const char *checkpoint, const char *batch_path, const char *out) {
    return make_on(DEVICE_CPU, MODE_TRAIN, checkpoint, batch_path, out);
}

/* Returns the largest difference between the two files' arrays of this name, and overwrites *most
 * with the largest magnitude in `want`.  NAN after a failed CHECK. */
static double difference(const H5File *want, const H5File *got, const char *name, double *most) {
    size_t size[H5_RANK], other[H5_RANK], count = 1;
    int rank = h5_size(want, name, size);
    if (!CHECK(rank >= 0 && h5_size(got, name, other) == rank, "%s: %s", name, error_message()))
        return NAN;
    for (int i = 0; i < rank; i++) {
        if (!CHECK(size[i] == other[i], "%s: dimension %d", name, i)) return NAN;
        count *= size[i];
    }
    double *a = malloc(count * sizeof *a), *b = malloc(count * sizeof *b), error = NAN;
    *most = 0;
    if (a && b &&
        CHECK(!h5_read(want, name, H5_DOUBLE, a, rank, size) &&
                  !h5_read(got, name, H5_DOUBLE, b, rank, size),
              "%s: %s", name, error_message())) {
        error = 0;
        for (size_t i = 0; i < count; i++) {
            *most = fmax(*most, fabs(a[i]));
            error = worse(error, fabs(a[i] - b[i]));
            CHECK(!isnan(b[i]), "%s[%zu] is NaN", name, i);
        }
    }
    free(a);
    free(b);
    return error;
}

/* Where the fixture has the error of PyTorch's numbers in float, which depends on its order of
 * sums, ours may have eight times that, as in tests/fixtures/check.c.  Else sums of a few hundred
 * products in float, through up to ten layers, differ by a few dozen rounding errors of 6e-8. */
static void compare_array(const H5File *want, const H5File *got, const char *name) {
    double most = 0, error = difference(want, got, name, &most), allowed = 1e-5 * most, theirs;
    if (h5_get(want, name, "float_error", H5_DOUBLE, &theirs) == 0)
        allowed = 8 * (theirs + FLT_EPSILON * most);
    CHECK(error <= allowed, "%s: off by %g of %g, not %g", name, error, most, allowed);
}

static int compare_group(const H5File *want, const H5File *got, const char *group) {
    int count = h5_count(want, group);
    CHECK(count > 0 && h5_count(got, group) == count, "%s: %d arrays expected", group, count);
    for (int i = 0; i < count; i++) {
        char name[H5_NAME], path[2 * H5_NAME];
        if (!CHECK(h5_name(want, group, i, name) == 0, "%s", error_message())) break;
        snprintf(path, sizeof path, "%s/%s", group, name);
        compare_array(want, got, path);
    }
    return count;
}

/* On every device the numbers are those of PyTorch. */
typedef struct {
    const char *name, *fixture;
    DeviceKind device;
} Row;

static void case_fixture(const void *row) {
    const Row *r = row;
    char fixture[256];
    H5File want, got, plain;
    fixture_path(fixture, r->fixture);
    const char *out = scratch_path("gradients.h5"), *textbook = scratch_path("plain.h5");
    if (r->device >= DEVICE_CUDA && !device_module_open(device_names[r->device]))
        SKIP("%s", error_message());
    if (!CHECK(make_on(r->device, MODE_TRAIN, fixture, fixture, out) == 0 &&
                   make_on(DEVICE_PLAIN, MODE_TRAIN, fixture, fixture, textbook) == 0,
               "%s", error_message()))
        return;
    if (CHECK(h5_open(&want, fixture) == 0 && h5_open(&got, out) == 0 &&
                  h5_open(&plain, textbook) == 0,
              "%s", error_message())) {
        compare_array(&want, &got, "/loss");
        compare_array(&want, &got, "/logits");
        compare_group(&want, &got, "/activations");
        compare_group(&want, &got, "/gradients");
        if (h5_exists(&plain, "/buffers")) compare_group(&plain, &got, "/buffers");
        h5_close(&want);
        h5_close(&got);
        h5_close(&plain);
    }
}

/* ---- statistics of batch norm -------------------------------------------------------------- */

/* With --mode eval the loss is PyTorch's after model.eval(), and the running statistics do not
 * change. */
static void case_evaluation(const void *row) {
    const Row *r = row;
    char fixture[256];
    H5File want, got;
    double most, expected = NAN, loss = NAN;
    fixture_path(fixture, r->fixture);
    const char *out = scratch_path("evaluated.h5");
    if (r->device >= DEVICE_CUDA && !device_module_open(device_names[r->device]))
        SKIP("%s", error_message());
    if (!CHECK(make_on(r->device, MODE_EVALUATE, fixture, fixture, out) == 0 &&
                   h5_open(&want, fixture) == 0 && h5_open(&got, out) == 0,
               "%s", error_message()))
        return;
    const size_t one[] = {1};
    CHECK(h5_read(&want, "/evaluation/loss", H5_DOUBLE, &expected, 1, one) == 0 &&
              h5_read(&got, "/loss", H5_DOUBLE, &loss, 1, one) == 0,
          "%s", error_message());
    CHECK(fabs(loss - expected) <= 1e-5 * expected, "the loss is %.9g, not %.9g", loss, expected);
    for (int i = 0; h5_exists(&want, "/buffers") && i < h5_count(&want, "/buffers"); i++) {
        char name[H5_NAME], path[2 * H5_NAME];
        if (!CHECK(h5_name(&want, "/buffers", i, name) == 0, "%s", error_message())) break;
        snprintf(path, sizeof path, "/buffers/%s", name);
        CHECK(difference(&want, &got, path, &most) == 0, "%s moved", path);
    }
    CHECK(!h5_exists(&got, "/gradients"), "there are gradients");
    h5_close(&want);
    h5_close(&got);
}

enum { STEM_IMAGES = 5, STEM_SIDE = 9, STEM_IN = 3, STEM_OUT = 3 };
typedef real StemImages[STEM_IMAGES][STEM_SIDE][STEM_SIDE][STEM_IN];
typedef real StemWeight[STEM_OUT][3][3][STEM_IN];

/* Returns one output of the fixture's first convolution, whose input is padded with zeros. */
static double convolve(StemImages x, StemWeight w, int n, int row, int column, int out) {
    double sum = 0;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            for (int c = 0; c < STEM_IN; c++) {
                const int h = row + i - 1, v = column + j - 1;
                if (h >= 0 && h < STEM_SIDE && v >= 0 && v < STEM_SIDE)
                    sum += (double)x[n][h][v][c] * (double)w[out][i][j][c];
            }
    return sum;
}

/* After a step PyTorch's running statistics are 0.9 of the old ones and 0.1 of the batch's, whose
 * variance is the unbiased one.  The test works those of the first norm out. */
static void case_running_statistics(void) {
    enum { COUNT = STEM_IMAGES * STEM_SIDE * STEM_SIDE };
    static StemImages images;
    static StemWeight weight;
    double before[2][STEM_OUT] = {{0}}, after[2][STEM_OUT] = {{0}};
    char fixture[256];
    H5File want, got;
    fixture_path(fixture, "resnet");
    const char *out = scratch_path("moved.h5");
    if (!CHECK(make(fixture, fixture, out) == 0 && h5_open(&want, fixture) == 0 &&
                   h5_open(&got, out) == 0,
               "%s", error_message()))
        return;
    CHECK(h5_read(&want, "/images", H5_REAL, images, 4,
                  (size_t[]){STEM_IMAGES, STEM_SIDE, STEM_SIDE, STEM_IN}) == 0 &&
              h5_read(&want, "/parameters/stem.conv.weight", H5_REAL, weight, 4,
                      (size_t[]){STEM_OUT, 3, 3, STEM_IN}) == 0,
          "%s", error_message());
    static const char *const names[] = {"/buffers/stem.norm.running_mean",
                                        "/buffers/stem.norm.running_var"};
    for (int i = 0; i < 2; i++)
        CHECK(h5_read(&want, names[i], H5_DOUBLE, before[i], 1, (size_t[]){STEM_OUT}) == 0 &&
                  h5_read(&got, names[i], H5_DOUBLE, after[i], 1, (size_t[]){STEM_OUT}) == 0,
              "%s", error_message());
    for (int c = 0; c < STEM_OUT; c++) {
        double sum = 0, squares = 0;
        for (int p = 0; p < COUNT; p++) {
            const int n = p / (STEM_SIDE * STEM_SIDE), q = p % (STEM_SIDE * STEM_SIDE);
            const double y = convolve(images, weight, n, q / STEM_SIDE, q % STEM_SIDE, c);
            sum += y;
            squares += y * y;
        }
        const double mean = sum / COUNT, variance = (squares - sum * mean) / (COUNT - 1);
        const double wanted[] = {0.9 * before[0][c] + 0.1 * mean,
                                 0.9 * before[1][c] + 0.1 * variance};
        for (int i = 0; i < 2; i++)
            CHECK(fabs(after[i][c] - wanted[i]) <= 1e-6, "%s[%d] is %.9g, not %.9g", names[i], c,
                  after[i][c], wanted[i]);
    }
    h5_close(&want);
    h5_close(&got);
}

/* ---- wrong files --------------------------------------------------------------------------- */

static void write_batch(const char *path, int n, int t, int64_t token, int64_t target) {
    H5File file;
    int64_t tokens[64], targets[64];
    for (int i = 0; i < n * t; i++) {
        tokens[i] = token;
        targets[i] = target;
    }
    H5Dim dims[] = {{"sample", (size_t)n, NULL}, {"token", (size_t)t, NULL}};
    CHECK(h5_create(&file, path) == 0, "%s", error_message());
    h5_write(&file, "/tokens", H5_INT64, tokens, 2, dims, NULL);
    h5_write(&file, "/targets", H5_INT64, targets, 2, dims, NULL);
    CHECK(h5_commit(&file) == 0, "%s", error_message());
}

static void refused(const char *checkpoint, const char *batch, const char *word) {
    const char *out = scratch_path("never.h5");
    CHECK(make(checkpoint, batch, out) == -1 && strstr(error_message(), word), "%s",
          error_message());
    CHECK(access(out, F_OK) != 0, "something was written");
}

static void case_wrong_files(void) {
    char batch[256];
    snprintf(batch, sizeof batch, "%s", scratch_path("batch.h5"));
    char gpt[256], images[256];
    fixture_path(gpt, "gpt");
    fixture_path(images, "resnet");
    write_batch(batch, 2, 7, 3, 3);
    refused("/nowhere.h5", batch, "/nowhere.h5");
    refused(batch, batch, "neither");
    refused(gpt, "/nowhere.h5", "/nowhere.h5");
    refused(gpt, images, "/tokens"); /* images for a model that reads tokens */
    refused(images, batch, "/images");
    write_batch(batch, 0, 7, 3, 3);
    refused(gpt, batch, "/targets: 1 to 1048576 samples");
    write_batch(batch, 2, 5, 3, 3);
    refused(gpt, batch, "/tokens"); /* five tokens where the model reads seven */
    write_batch(batch, 2, 7, 31, 3);
    refused(gpt, batch, "31"); /* the vocabulary has 31 tokens: 0 to 30 */
    write_batch(batch, 2, 7, -1, 3);
    refused(gpt, batch, "-1");
    write_batch(batch, 2, 7, 5000000000, 3);
    refused(gpt, batch, "/tokens holds 5000000000; the model has 0 to 30");
    write_batch(batch, 2, 7, 3, 5000000000);
    refused(gpt, batch, "/targets holds 5000000000; ");
    write_batch(batch, 2, 7, 3, 31);
    refused(gpt, batch, "/targets");
    write_batch(batch, 2, 7, 3, -1);
    refused(gpt, batch, "no target");
    snprintf(images, sizeof images, "%s", scratch_path("small.h5"));
    H5File file;
    CHECK(h5_create(&file, images) == 0, "%s", error_message());
    h5_set_text(&file, "/", "model", "resnet:depth=8,width=2,size=4");
    CHECK(h5_commit(&file) == 0, "%s", error_message());
    write_batch(batch, 1, 1, 0, 0);
    refused(images, batch, "would see a single value"); /* its last images are of one pixel */
}

void test_gradients(void) {
    static const Row rows[] = {
        {"resnet", "resnet", DEVICE_CPU},
        {"resnet on simt", "resnet", DEVICE_SIMT},
        {"resnet on cuda", "resnet", DEVICE_CUDA},
        {"bottleneck", "bottleneck", DEVICE_CPU},
        {"bottleneck on simt", "bottleneck", DEVICE_SIMT},
        {"bottleneck on cuda", "bottleneck", DEVICE_CUDA},
        {"gpt", "gpt", DEVICE_CPU},
        {"gpt on simt", "gpt", DEVICE_SIMT},
        {"gpt on cuda", "gpt", DEVICE_CUDA},
        {"llama", "llama", DEVICE_CPU},
        {"llama on simt", "llama", DEVICE_SIMT},
        {"llama on cuda", "llama", DEVICE_CUDA},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        RUN_ROW(rows[i].name, case_fixture, &rows[i]);
    static const Row evaluated[] = {{"eval: resnet", "resnet", DEVICE_CPU},
                                    {"eval: resnet on simt", "resnet", DEVICE_SIMT},
                                    {"eval: resnet on cuda", "resnet", DEVICE_CUDA},
                                    {"eval: bottleneck", "bottleneck", DEVICE_CPU},
                                    {"eval: gpt", "gpt", DEVICE_CPU}};
    for (size_t i = 0; i < sizeof evaluated / sizeof *evaluated; i++)
        RUN_ROW(evaluated[i].name, case_evaluation, &evaluated[i]);
    RUN(case_running_statistics);
    RUN(case_wrong_files);
}
