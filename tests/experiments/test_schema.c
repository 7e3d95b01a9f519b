/* Compares every kind of file that the program writes with the page that describes it
 * (experiments/results/README.md), through h5py. PYTHON names another interpreter. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../experiments/store/h5.h"
#include "../../ref/base/error.h"
#include "cli.h"

#define PAGE BCD_SOURCE_DIR "/experiments/results/README.md"
#define FIXTURE BCD_SOURCE_DIR "/tests/fixtures/gpt.h5"
#define IMAGES BCD_SOURCE_DIR "/tests/fixtures/resnet.h5"

static bool has_h5py(void) {
    static int status = -1;
    char text[4096];
    if (status < 0) status = run_python("-c 'import h5py'", text) != 0;
    return status == 0;
}

static int check_files(const char *files, char text[4096]) {
    char arguments[4096];
    snprintf(arguments, sizeof arguments,
             BCD_SOURCE_DIR "/tests/experiments/check_schema.py " PAGE " %s", files);
    return run_python(arguments, text);
}

/* A command, and the files that it writes. */
typedef struct {
    const char *name, *line, *files;
} Writer;

static const Writer writers[] = {
    {"run of images", "train " RESNET "--steps 30 --out schema-images --quiet",
     "schema-images/run.h5 schema-images/checkpoint.h5"},
    {"run of tokens", "train " GPT "--steps 30 --out schema-tokens --quiet",
     "schema-tokens/run.h5 schema-tokens/checkpoint.h5"},
    {"run of no updates", "train " RESNET "--steps 0 --out schema-zero --quiet",
     "schema-zero/run.h5 schema-zero/checkpoint.h5"},
    {"study",
     "experiment validity --preset smoke --models resnet:depth=8,width=4 --optimizers sgd "
     "--steps 12 --quiet --out schema-study",
     "schema-study/validity.h5"},
    {"memory", "experiment memory --preset smoke --quiet --out schema-tables",
     "schema-tables/memory.h5"},
    {"cost", "experiment cost --preset smoke --quiet --out schema-tables", "schema-tables/cost.h5"},
    {"timing", "experiment timing --preset smoke --quiet --out schema-tables",
     "schema-tables/timing.h5"},
    {"info of all models", "info --out info.h5", "info.h5"},
    {"info of a model", "info --model resnet8 --out model.h5", "model.h5"},
    {"plan", "plan --model G-1.6B --per-node 4 --batch 64 --out plan.h5", "plan.h5"},
    {"trace",
     "trace --model resnet:depth=8,width=2 --data synthetic --limit 32 --batch 4 --out trace.h5",
     "trace.h5"},
    {"gradients", "gradients --checkpoint " FIXTURE " --batch " FIXTURE " --out gradients.h5",
     "gradients.h5"},
    {"gradients in mode eval",
     "gradients --checkpoint " IMAGES " --batch " IMAGES " --mode eval --out evaluated.h5",
     "evaluated.h5"},
};

static void writes(const void *row) {
    if (!has_h5py()) SKIP("no python with h5py; PYTHON=... names another one");
    run(0, "%s", ((const Writer *)row)->line);
}

/* Those of the rows above, and the committed ones. One call checks all, since a Python that has
 * h5py starts slowly; a mistake is said with the file's name. */
static void files_are_as_described(void) {
    char files[2048] = BCD_SOURCE_DIR "/experiments/results/[a-z]*.h5", text[4096];
    if (!has_h5py()) SKIP("no python with h5py; PYTHON=... names another one");
    for (size_t i = 0; i < sizeof writers / sizeof *writers; i++) {
        strcat(files, " ");
        strcat(files, writers[i].files);
    }
    CHECK(check_files(files, text) == 0, "%s", text);
}

/* Files that differ from the page are found. */
static void mistakes_are_found(void) {
    static const char *const expected[] = {"/loss: has unit 1, not nats per target",
                                           "/loss: dimension 0 is called 'x', not mean",
                                           "/logits: is int32, not float",
                                           "/unheard: is not on the page",
                                           "/@model: is missing",
                                           "/provenance@commit: is missing"};
    char text[4096];
    if (!has_h5py()) SKIP("no python with h5py; PYTHON=... names another one");
    H5File file;
    H5Dim dim = {"x", 1, NULL};
    CHECK(h5_create(&file, scratch_path("wrong.h5")) == 0, "%s", error_message());
    h5_set_text(&file, "/", "format", "bcd gradients");
    h5_write(&file, "/loss", H5_DOUBLE, (double[]){1}, 1, &dim, NULL);
    h5_write(&file, "/logits", H5_INT, (int[]){1}, 1, &dim, NULL);
    h5_write(&file, "/unheard", H5_INT, (int[]){1}, 1, &dim, NULL);
    CHECK(h5_commit(&file) == 0, "%s", error_message());
    CHECK(check_files("wrong.h5", text) != 0, "nothing was found");
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        CHECK(strstr(text, expected[i]), "not found: %s\n%s", expected[i], text);
}

/* The program on the page runs, with the files of the rows above. */
static void example_runs(void) {
    char text[4096];
    if (!has_h5py()) SKIP("no python with h5py; PYTHON=... names another one");
    copy_file("run.h5", "schema-images/run.h5");
    CHECK(
        run_python(BCD_SOURCE_DIR "/tests/experiments/check_schema.py --example " PAGE, text) == 0,
        "%s", text);
    CHECK(strstr(text, "7 after 7 steps") && strstr(text, "stem "), "%s", text);
}

static void is_covered_elsewhere(void) {
    SKIP("what writes and reads these files is watched in suites of its own");
}

void test_schema(void) {
    if (TEST_SANITIZED) {
        RUN(is_covered_elsewhere);
        return;
    }
    make_words();
    for (size_t i = 0; i < sizeof writers / sizeof *writers; i++)
        RUN_ROW(writers[i].name, writes, &writers[i]);
    RUN(files_are_as_described);
    RUN(mistakes_are_found);
    RUN(example_runs);
}
