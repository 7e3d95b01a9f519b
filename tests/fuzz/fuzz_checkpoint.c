/* Damaged run.h5 and checkpoint.h5 files: a valid file in which some bytes were changed, and
 * which may be cut off, is refused or read. The input has four bytes for each change, an offset
 * (three) and a value; a value of 0 cuts the file off there. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../experiments/store/runfile.h"
#include "../../experiments/store/settings.h"
#include "../../experiments/train/checkpoint.h"
#include "../../ref/base/error.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

typedef struct {
    uint8_t *bytes;
    size_t count;
} Sound;

static char path[64];

static Sound read_sound(void) {
    enum { MOST = 1 << 20 };
    Sound sound = {malloc(MOST), 0};
    FILE *file = fopen(path, "rb");
    if (!file || !(sound.count = fread(sound.bytes, 1, MOST, file))) abort();
    fclose(file);
    return sound;
}

static void open_setup(Setup *setup) {
    Options options;
    options_defaults(&options, COMMAND_TRAIN);
    if (options_set(&options, "model", "resnet:depth=8,width=1") ||
        options_set(&options, "limit", "4") || options_set(&options, "batch", "2") ||
        options_set(&options, "submodels", "2") || setup_open(setup, &options) ||
        setup_engine(setup, NULL, NULL, NULL)) {
        fprintf(stderr, "%s\n", error_message());
        abort();
    }
}

static Sound sound_run(void) {
    RunFile run = {.status = "running"};
    options_defaults(&run.settings, COMMAND_TRAIN);
    for (uint64_t i = 1; i < 9; i++) runfile_add(&run, RUN_CURVE, &(CurveRow){.step = i});
    runfile_add(&run, RUN_EVALUATIONS, &(EvaluationRow){.step = 4});
    runfile_add(&run, RUN_SWITCHES, &(SwitchRow){.reason = "start"});
    if (runfile_write(&run, path)) abort();
    runfile_free(&run);
    return read_sound();
}

static Sound sound_checkpoint(const Setup *setup) {
    BcdState state = {0};
    if (checkpoint_write(path, setup, &state)) abort();
    return read_sound();
}

static void write_damaged(const Sound *sound, const uint8_t *changes, size_t count) {
    uint8_t *bytes = malloc(sound->count);
    size_t length = sound->count;
    memcpy(bytes, sound->bytes, sound->count);
    for (size_t i = 0; i + 4 <= count; i += 4) {
        size_t place = ((size_t)changes[i] << 16 | (size_t)changes[i + 1] << 8 | changes[i + 2]) %
                       sound->count;
        if (changes[i + 3] == 0)
            length = place;
        else
            bytes[place] = changes[i + 3];
    }
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(bytes, 1, length, file) != length || fclose(file)) abort();
    free(bytes);
}

static void try_run(const Sound *sound, const uint8_t *changes, size_t count) {
    RunFile run;
    write_damaged(sound, changes, count);
    if (runfile_read(&run, path) && !*error_message()) abort();
    runfile_free(&run);
}

static void try_checkpoint(const Sound *sound, Setup *setup, const uint8_t *changes, size_t count) {
    BcdState state;
    Options options;
    options_defaults(&options, COMMAND_TRAIN);
    write_damaged(sound, changes, count);
    if (settings_read_file(path, &options) && !*error_message()) abort();
    /* HDF5 checks the position in the training: if it can be read, it is the one that was
     * written. */
    if (checkpoint_resume(path, setup, &state) == 0 && state.step != 0) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
    static Sound run, checkpoint;
    Setup setup;
    open_setup(&setup);
    if (!run.count) {
        snprintf(path, sizeof path, "/tmp/fuzz-checkpoint-%d.h5", (int)getpid());
        run = sound_run();
        checkpoint = sound_checkpoint(&setup);
    }
    try_run(&run, bytes, count);
    try_checkpoint(&checkpoint, &setup, bytes, count);
    setup_free(&setup);
    unlink(path);
    return 0;
}
