/* The libraries of devices, which the program loads when asked for: those that are not there, that
 * were built with another version, and that were built. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../../experiments/train/modules.h"
#include "../../ref/base/error.h"
#include "../../ref/headers.h"
#include "cli.h"

#define SMALL "--model resnet:depth=8,width=2 --data synthetic --limit 8 --batch 2 --threads 1 "

static void refuses_absent_devices(void) {
    if (has_device("cuda")) SKIP("there is a GPU");
    check_error(run(1, "train " SMALL "--steps 2 --device cuda --out never"),
                "bcd: --device cuda: ");
    const Printed *printed =
        run(1, "trace --model resnet:depth=8,width=2 --limit 8 --batch 2 --device cuda");
    check_error(printed, "bcd: --device cuda: ");
    CHECK(!strstr(printed->error, "symbol"), "the library does not fit: %s", printed->error);
    CHECK(!file_exists(scratch_path("never")), "a directory was made for nothing");
    run(0, "train " SMALL "--steps 1 --out here --quiet");
    check_error(run(1, "eval here --device cuda"), "bcd: --device cuda: ");
    check_error(run(1, "train --resume here --steps 2 --device cuda"), "bcd: --device cuda: ");
    check_error(run(1, "train --resume here --steps 2 --precision bf16"),
                "--precision bf16: the cpu computes in fp32");
    RunFile file;
    if (!read_run(&file, "here")) return;
    file.settings.device = DEVICE_CUDA; /* as in a file from another machine */
    file.settings.precision = PRECISION_BF16;
    CHECK(runfile_write(&file, scratch_path("here/run.h5")) == 0, "%s", error_message());
    runfile_free(&file);
    check_error(run(1, "train --resume here --steps 2"),
                "; to continue here: bcd train --resume here --device cpu --precision fp32");
    run(0, "train --resume here --steps 2 --device cpu --precision fp32 --quiet");
}

/* Copies a file into the scratch directory.  Unless `text` is NULL, the first character of its
 * first occurrence is changed in the copy.  Returns false if it does not occur. */
static bool copy_outside(const char *to, const char *from, const char *text) {
    struct stat status;
    FILE *file = fopen(from, "rb");
    if (!file || fstat(fileno(file), &status)) return false;
    size_t size = (size_t)status.st_size, length = text ? strlen(text) + 1 : 0;
    char *bytes = malloc(size), *at = NULL;
    bool whole = bytes && fread(bytes, 1, size, file) == size;
    fclose(file);
    for (size_t i = 0; whole && text && !at && i + length <= size; i++)
        if (memcmp(bytes + i, text, length) == 0) at = bytes + i;
    if (at) *at = *at == '1' ? '2' : '1';
    if (whole) scratch_file(to, bytes, size);
    free(bytes);
    return whole && (at || !text);
}

/* Overwrites `path`, of `size` bytes, with that of SIMT's library next to the program. */
static const char *simt_library(char *path, size_t size) {
    snprintf(path, size, "%.*s/libbcd-simt.so",
             (int)(strrchr(BCD_PROGRAM, '/') - (char *)BCD_PROGRAM), BCD_PROGRAM);
    return path;
}

/* A library that was built opens: where tests of SIMT are skipped, there is none. */
static void simt_opens_where_it_was_built(void) {
    char library[1024];
    if (!file_exists(simt_library(library, sizeof library))) SKIP("no libbcd-simt.so");
    CHECK(device_module_open("simt"), "%s", error_message());
    CHECK(has_device("simt"), "the program cannot open it");
}

/* A library of another build is refused: its structs may differ, so no function of it may be
 * called. */
static void refuses_libraries_of_another_version(void) {
    char library[1024], command[2300];
    if (!file_exists(simt_library(library, sizeof library))) SKIP("no libbcd-simt.so");
    copy_outside("bcd", BCD_PROGRAM, NULL);
    if (!CHECK(copy_outside("libbcd-simt.so", library, bcd_headers), "no checksum in it")) return;
    snprintf(command, sizeof command, "chmod +x '%s'; '%s' info --model resnet8",
             scratch_path("bcd"), scratch_path("bcd"));
    FILE *output = popen(command, "r");
    bool refused = false;
    for (char line[400]; output && fgets(line, sizeof line, output);)
        refused = refused || strstr(line, "was built with another version of this program");
    CHECK(output && pclose(output) == 0 && refused, "it was loaded");
}

void test_modules(void) {
    RUN(refuses_absent_devices);
    RUN(simt_opens_where_it_was_built);
    RUN(refuses_libraries_of_another_version);
}
