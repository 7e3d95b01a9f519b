/* What bcd export writes opens in the transformers library, where that is installed, and gives the
 * logits of the model that it was. */
#include <stdio.h>

#include "cli.h"

#define FIXTURES BCD_SOURCE_DIR "/tests/fixtures/"

static void opens_there(const void *row) {
    const char *name = row;
    static int missing = -1;
    char text[4096], line[512];
    if (missing < 0) missing = run_python("-c 'import transformers, torch, h5py'", text);
    if (missing) SKIP("no python with transformers, torch and h5py; PYTHON=... names another one");
    run(0,
        "train --init " FIXTURES
        "pretrained/%s --data text --context 10 --limit 8 --batch 2 --steps 0 --quiet "
        "--out opened-%s",
        name, name);
    run(0, "export opened-%s --out there-%s", name, name);
    snprintf(line, sizeof line, FIXTURES "pretrained.py check %s there-%s", name, name);
    CHECK(run_python(line, text) == 0, "%s", text);
}

void test_transformers(void) {
    static const char *const names[] = {"gpt2", "llama", "grouped", "mistral"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        RUN_ROW(names[i], opens_there, names[i]);
}
