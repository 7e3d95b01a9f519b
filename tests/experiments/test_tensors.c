/* bcd train --init FILE.safetensors loads tensors under our own names, as another framework writes
 * them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../data/safetensors.h"
#include "../../experiments/convert/convert.h"
#include "../../experiments/store/tensors.h"
#include "../../ref/base/error.h"
#include "../../ref/blocks/models.h"
#include "cli.h"
#include "compare.h"

#define IMAGES "--model resnet:depth=8,width=2 --data synthetic --limit 32 --batch 4 --quiet "

enum { OWN_MAX = 64 };

/* Reads the parameters of a checkpoint and, if `buffers`, its running statistics; the caller frees
 * the numbers of each.  Returns how many there are. */
static int read_own(SafeTensor list[OWN_MAX], float *numbers[OWN_MAX], const char *checkpoint,
                    bool buffers) {
    static char name[OWN_MAX][H5_NAME];
    H5File file;
    int count = 0;
    if (!CHECK(h5_open(&file, scratch_path(checkpoint)) == 0, "%s", error_message())) return 0;
    for (int group = 0; group <= buffers; group++) {
        const char *path = group ? "/buffers" : "/parameters";
        for (int i = 0; i < h5_count(&file, path) && count < OWN_MAX; i++) {
            SafeTensor *t = &list[count];
            if (h5_name(&file, path, i, name[count])) break;
            const Text full = text_of("%s/%s", path, name[count]);
            *t = (SafeTensor){.name = name[count], .count = 1};
            t->rank = h5_size(&file, full.text, t->dim);
            for (int d = 0; d < t->rank; d++) t->count *= t->dim[d];
            numbers[count] = malloc(t->count * sizeof **numbers);
            real *stored = malloc(t->count * sizeof *stored);
            CHECK(h5_read(&file, full.text, H5_REAL, stored, t->rank, t->dim) == 0, "%s",
                  error_message());
            for (size_t n = 0; n < t->count; n++) numbers[count][n] = (float)stored[n];
            free(stored);
            count++;
        }
    }
    h5_close(&file);
    return count;
}

static void write_own(const char *name, const SafeTensor *list, float *const *numbers, int count) {
    SafetensorsWriter writer;
    CHECK(safetensors_create(&writer, scratch_path(name), NUMBER_F32, list, count) == 0, "%s",
          error_message());
    for (int i = 0; i < count; i++)
        CHECK(safetensors_append(&writer, numbers[i], list[i].count) == 0, "%s", error_message());
    CHECK(safetensors_commit(&writer) == 0, "%s", error_message());
}

/* CHECKs that two checkpoints have the same numbers in these tensors. */
static void check_same_tensors(const char *a, const char *b, bool buffers) {
    SafeTensor theirs[OWN_MAX], ours[OWN_MAX];
    float *x[OWN_MAX], *y[OWN_MAX];
    const int count = read_own(theirs, x, a, buffers), also = read_own(ours, y, b, buffers);
    CHECK(count > 0 && count == also, "%d tensors, not %d", also, count);
    for (int i = 0; i < count && i < also; i++)
        CHECK(
            ours[i].count == theirs[i].count && memcmp(x[i], y[i], ours[i].count * sizeof **x) == 0,
            "%s", theirs[i].name);
    for (int i = 0; i < count; i++) free(x[i]);
    for (int i = 0; i < also; i++) free(y[i]);
}

/* A ResNet from such a file has its numbers, whatever the seed is; and a resume reads only the
 * checkpoint. */
static void own_names_are_read(void) {
    SafeTensor list[OWN_MAX];
    float *numbers[OWN_MAX];
    run(0, "train " IMAGES "--steps 3 --out own");
    const int count = read_own(list, numbers, "own/checkpoint.h5", true);
    int parameters = 0;
    while (parameters < count && !strstr(list[parameters].name, "running")) parameters++;
    char some[2 * H5_NAME], less[2 * H5_NAME], shape[2 * H5_NAME];
    snprintf(some, sizeof some, "no tensor %s", list[count - 1].name);
    snprintf(less, sizeof less, "no tensor %s", list[0].name);
    snprintf(shape, sizeof shape, "%s has the shape ", list[0].name);
    write_own("all.safetensors", list, numbers, count);
    write_own("bare.safetensors", list, numbers, parameters);
    write_own("some.safetensors", list, numbers, count - 1);
    write_own("less.safetensors", list + 1, numbers + 1, count - 1);
    for (int t = 0; t < parameters; t++)
        for (size_t i = 0; i < list[t].count; i++) numbers[t][i] *= 1e37f;
    write_own("huge.safetensors", list, numbers, count);
    list[0].dim[0]++; /* a row more, in a convolution or a scale */
    list[0].count += list[0].count / (list[0].dim[0] - 1);
    float *longer = calloc(list[0].count, sizeof *longer), *first = numbers[0];
    numbers[0] = longer;
    write_own("shape.safetensors", list, numbers, count);
    list[0] = (SafeTensor){.name = "other.weight", .rank = 1, .dim = {1}, .count = 1};
    write_own("other.safetensors", list, numbers, count);
    for (int i = 1; i < count; i++) free(numbers[i]);
    free(first);
    free(longer);

    run(0, "train " IMAGES "--init all.safetensors --seed 2 --steps 0 --out all");
    check_same_tensors("own/checkpoint.h5", "all/checkpoint.h5", true);
    run(0, "train " IMAGES "--init bare.safetensors --seed 2 --steps 0 --out bare");
    check_same_tensors("own/checkpoint.h5", "bare/checkpoint.h5", false);
    run(0, "train " IMAGES
           "--init all.safetensors --pipeline local:2 --accumulate 2 --steps 0 --out two");
    check_same_tensors("own/checkpoint.h5", "two/checkpoint.h5", true);
    run(0, "train --resume bare --steps 2 --quiet");
    run(0, "eval bare --limit 8");
    const char *const refused[][2] = {{"some", some},
                                      {"less", less},
                                      {"shape", shape},
                                      {"other", "holds other.weight, which resnet"},
                                      {"nowhere", "nowhere.safetensors: No such file"}};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        check_error(run(1, "train " IMAGES "--init %s.safetensors --out never11", refused[i][0]),
                    refused[i][1]);
    check_error(run(1, "train " IMAGES "--init huge.safetensors --steps 3 --out never12"),
                "--init huge.safetensors: the validation loss is nan before any update");
    CHECK(!file_exists(scratch_path("never12")), "a directory is left");
    check_error(run(1, "eval --init all.safetensors --data synthetic"),
                "holds only tensors; bcd train --init takes it, together with --model");
}

/* The file names the dimensions of embeddings by their meaning, and those of other matrices "out"
 * and "in". */
static void embeddings_have_names(void) {
    static const struct {
        const char *param, *first, *second;
    } rows[] = {{"embedding.token.weight", "token", "channel"},
                {"embedding.position.weight", "position", "channel"},
                {"block1.attention.qkv.weight", "out", "in"}};
    Model *model = model_create("gpt:layers=1,width=4,heads=1,context=3,vocabulary=5");
    int found = 0;
    for (int p = 0; p < model->params; p++)
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            if (strcmp(model->param[p].name, rows[i].param)) continue;
            const TensorInfo info = tensor_info(model, TENSOR_PARAMETER, p);
            CHECK(!strcmp(info.dims[0].name, rows[i].first) &&
                      !strcmp(info.dims[1].name, rows[i].second),
                  "%s: %s, %s", rows[i].param, info.dims[0].name, info.dims[1].name);
            found++;
        }
    CHECK(found == 3, "%d of 3 parameters", found);
    model_free(model);
}

/* A model can be in at most 256 files. */
static void a_limit_of_files(void) {
    enum { MOST = 256 };
    static char list[40 * (MOST + 2)];
    for (int files = MOST; files <= MOST + 1; files++) {
        Weights w;
        size_t length = (size_t)snprintf(list, sizeof list, "{\"weight_map\": {");
        for (int i = 0; i < files; i++) {
            char name[32], text[128] = {0};
            snprintf(name, sizeof name, "many/part-%d", i);
            /* the length of the header, the header, and no numbers */
            text[0] = (char)snprintf(
                text + 8, sizeof text - 8,
                "{\"%d\": {\"dtype\": \"F32\", \"shape\": [0], \"data_offsets\": [0, 0]}}", i);
            scratch_file(name, text, 8 + (size_t)text[0]);
            length += (size_t)snprintf(list + length, sizeof list - length, "%s\"%d\": \"part-%d\"",
                                       i ? ", " : "", i, i);
        }
        snprintf(list + length, sizeof list - length, "}}");
        scratch_text("many/model.safetensors.index.json", list);
        int failed = weights_open(&w, scratch_path("many"));
        CHECK(failed == (files == MOST ? 0 : -1) &&
                  (!failed || strstr(error_message(), "many: more than 256 files")),
              "%d files: %s", files, failed ? error_message() : "opened");
        CHECK(w.files == MOST, "%d are open", w.files);
        weights_close(&w);
    }
}

void test_tensors(void) {
    RUN(own_names_are_read);
    RUN(embeddings_have_names);
    RUN(a_limit_of_files);
}
