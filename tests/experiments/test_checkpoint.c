/* checkpoint.h5: every number comes back, a resumed training gives the same result as one that did
 * not stop, and damage is noticed. */
#include <hdf5.h>
#include <omp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "../../experiments/store/settings.h"
#include "../../experiments/store/tensors.h"
#include "../../experiments/train/checkpoint.h"
#include "../data/scratch.h"
#include "program.h"

#define RESNET "--model resnet:depth=8,width=2 --data synthetic --limit 24 --batch 4"
#define GPT "--model gpt:layers=2,width=8,heads=2,context=8 --data text --limit 24 --batch 3"

/* Trainings that stop after `steps` updates, each at another kind of place. */
typedef struct {
    const char *name, *flags;
    int steps;
} Place;

static const Place places[] = {
    {"at the start", RESNET " --submodels 3 --switch-every 3", 0},
    {"in the middle of a submodel", RESNET " --submodels 3 --switch-every 4", 6},
    {"at the end of a submodel", RESNET " --submodels 3 --switch-every 3", 6},
    {"ordinary training", RESNET " --switch-every 3", 5},
    {"one submodel, at its end", RESNET " --switch-every 3", 6},
    {"kept state", RESNET " --submodels 3 --switch-every 2 --keep-state", 5},
    {"random order, half the data",
     RESNET " --submodels 3 --switch-every 0.5e --order random "
            "--fraction 0.5",
     7},
    {"no state, batch statistics, corrected",
     RESNET " --submodels 2 --switch-every 2 --momentum 0 --frozen-norm batch --correct-above 0.5",
     5},
    {"Adam", GPT " --submodels 3 --switch-every 4 --optimizer adam --lr 1e-2", 6},
    {"Adam, kept state, descending",
     GPT " --submodels 2 --switch-every 3 --optimizer adam "
         "--keep-state --order descending",
     8},
    {"AdamW, auto",
     GPT " --submodels 2 --switch-every auto --auto-window 2 --auto-min 4 "
         "--auto-max 6 --optimizer adamw --accumulate 2 --clip 1",
     5},
    {"Lion, ends always active, rates of the phase",
     GPT " --submodels 2 --switch-every 4 --optimizer lion --always-active ends "
         "--switch-warmup 3 --submodel-lr 1,0.5",
     6},
    {"largest gradient first", RESNET " --submodels 3 --switch-every 2 --order gauss-southwell", 4},
};

static int open_flags(Setup *setup, const char *flags) {
    char text[512];
    CommandLine line;
    snprintf(text, sizeof text, "train %s --steps 12", flags);
    memset(setup, 0, sizeof *setup);
    return parse_line(&line, text) || setup_open(setup, &line.options) ||
           setup_engine(setup, NULL, NULL, NULL);
}

static int stop_after(void *context, const BcdState *state, const Loss *loss, double lr) {
    (void)loss;
    (void)lr;
    return state->step >= *(const uint64_t *)context;
}

static void train_to(Setup *setup, BcdState *state, uint64_t step) {
    if (state->step >= step) return;
    CHECK(bcd_train(state, &setup->bcd, setup->engine, setup->train, stop_after, &step) >= 0, "%s",
          error_message());
    CHECK(state->step == step, "stopped at step %d", (int)state->step);
}

static void check_tensor(const Setup *a, const Setup *b, TensorRole role, int number) {
    size_t count = engine_read(a->engine, role, number, NULL);
    size_t other = engine_read(b->engine, role, number, NULL);
    if (!CHECK(count == other, "role %d tensor %d: %zu and %zu numbers", (int)role, number, count,
               other))
        return;
    real *x = malloc(count * sizeof *x + 1), *y = malloc(count * sizeof *y + 1);
    engine_read(a->engine, role, number, x);
    engine_read(b->engine, role, number, y);
    CHECK(memcmp(x, y, count * sizeof *x) == 0, "role %d tensor %d differs", (int)role, number);
    free(x);
    free(y);
}

static void check_same(const Setup *a, const BcdState *at, const Setup *b, const BcdState *bt) {
    static const TensorRole roles[] = {TENSOR_PARAMETER, TENSOR_BUFFER, TENSOR_STATE0,
                                       TENSOR_STATE1};
    for (size_t r = 0; r < sizeof roles / sizeof *roles; r++) {
        int count = roles[r] == TENSOR_BUFFER ? a->model->buffers : a->model->params;
        for (int i = 0; i < count; i++) check_tensor(a, b, roles[r], i);
    }
    for (int block = 0; block < a->model->blocks; block++)
        CHECK(engine_optimizer_step(a->engine, block) == engine_optimizer_step(b->engine, block),
              "optimizer step of block %d", block);
    CHECK(at->step == bt->step && at->position == bt->position && at->phase == bt->phase &&
              at->phase_steps == bt->phase_steps && at->phase_start == bt->phase_start &&
              at->submodel == bt->submodel && at->window_sum == bt->window_sum &&
              at->last_window_sum == bt->last_window_sum && at->windows == bt->windows,
          "the place in the training");
}

static void resumes_exactly(const void *row) {
    const Place *place = row;
    const char *path = scratch_path("checkpoint.h5");
    Setup a, b;
    BcdState at = {0}, bt = {0};
    if (!CHECK(open_flags(&a, place->flags) == 0, "%s", error_message())) return;
    train_to(&a, &at, (uint64_t)place->steps);
    CHECK(checkpoint_write(path, &a, &at) == 0, "%s", error_message());
    CHECK(open_flags(&b, place->flags) == 0, "%s", error_message());
    if (CHECK(checkpoint_resume(path, &b, &bt) == 0, "%s", error_message())) {
        check_same(&a, &at, &b, &bt);
        train_to(&a, &at, 12);
        train_to(&b, &bt, 12);
        check_same(&a, &at, &b, &bt);
    }
    setup_free(&a);
    setup_free(&b);
}

/* Its settings can be rebuilt from those in the file. */
static void settings_come_back(const void *place) {
    const char *path = scratch_path("settings.h5"), *flags = ((const Place *)place)->flags;
    Setup a;
    BcdState state = {0};
    Options options;
    if (!CHECK(open_flags(&a, flags) == 0, "%s", error_message())) return;
    CHECK(checkpoint_write(path, &a, &state) == 0, "%s", error_message());
    options_defaults(&options, COMMAND_TRAIN);
    CHECK(settings_read_file(path, &options) == 0, "%s", error_message());
    for (int row = 0; option_table[row].name; row++) {
        const Option *option = &option_table[row];
        if (!(option->commands & COMMAND_TRAIN) || option->role < OPTION_EXTENDS) continue;
        const Text text = options_format(&a.options, row), again = options_format(&options, row);
        CHECK(strcmp(text.text, again.text) == 0, "--%s: %s, then %s", option->name, text.text,
              again.text);
    }
    setup_free(&a);
}

/* ---- refusals ------------------------------------------------------------------------------ */

static void write_example(const char *path, const char *flags) {
    Setup setup;
    BcdState state = {0};
    CHECK(open_flags(&setup, flags) == 0, "%s", error_message());
    train_to(&setup, &state, 5);
    CHECK(checkpoint_write(path, &setup, &state) == 0, "%s", error_message());
    setup_free(&setup);
}

static void refuses_other_files(void) {
    const char *path = scratch_path("other.h5");
    Setup setup;
    BcdState state;
    write_example(path, RESNET);
    if (!CHECK(open_flags(&setup, GPT) == 0, "%s", error_message())) return;
    CHECK(checkpoint_resume(path, &setup, &state) != 0, "resumed another model");
    CHECK_ERROR("%s: holds the model resnet:depth=8,width=2,classes=10,size=32,fused=1, not %s",
                path, setup.model->spec);
    setup_free(&setup);
    if (!CHECK(open_flags(&setup, RESNET " --seed 2") == 0, "%s", error_message())) return;
    CHECK(checkpoint_resume(path, &setup, &state) != 0, "resumed on other data");
    CHECK_ERROR(
        "%s: the data set synthetic is not the one this run was trained on (its checksum "
        "differs); put that one back",
        path);
    const char *run = scratch_path("run.h5");
    H5File file;
    CHECK(h5_create(&file, run) == 0, "%s", error_message());
    h5_set_text(&file, "/", "format", "bcd run");
    CHECK(h5_commit(&file) == 0, "%s", error_message());
    CHECK(checkpoint_resume(run, &setup, &state) != 0, "resumed a run file");
    CHECK_ERROR("%s: not a checkpoint of bcd train", run);
    CHECK(h5_create(&file, run) == 0, "%s", error_message());
    h5_set_text(&file, "/", "format", "bcd checkpoint");
    h5_set(&file, "/", "version", H5_INT, &(int){1});
    h5_set_text(&file, "/", "precision", "double");
    CHECK(h5_commit(&file) == 0, "%s", error_message());
    CHECK(checkpoint_resume(run, &setup, &state) != 0, "resumed another precision");
    CHECK_ERROR("%s: written in double; this program computes in float", run);
    setup_free(&setup);
}

/* A file is refused wherever it is cut off. */
static void refuses_truncated(void) {
    const char *path = scratch_path("long.h5");
    Setup setup;
    BcdState state;
    size_t count;
    write_example(path, RESNET);
    char *bytes = scratch_read(path, &count);
    if (!CHECK(open_flags(&setup, RESNET) == 0, "%s", error_message())) return;
    for (int part = 0; part < 40; part++) {
        const char *cut = scratch_file("cut.h5", bytes, count * (size_t)part / 40);
        CHECK(checkpoint_resume(cut, &setup, &state) != 0, "%d/40 of a file is accepted", part);
        CHECK(strstr(error_message(), "cut.h5: "), "error is \"%s\"", error_message());
    }
    free(bytes);
    setup_free(&setup);
}

/* A file with a changed byte is refused, unless the byte is one that is not read; then the
 * training is the same. */
static void notices_damage(void) {
    if (TEST_SANITIZED) SKIP("damaged files are fuzz_checkpoint's, watched as well");
    const char *path = scratch_path("sound.h5");
    Setup sound, setup;
    BcdState sound_state, state;
    size_t count;
    int refused = 0, tried = 0;
    write_example(path, RESNET " --submodels 2");
    char *bytes = scratch_read(path, &count);
    if (!CHECK(open_flags(&sound, RESNET " --submodels 2") == 0 &&
                   open_flags(&setup, RESNET " --submodels 2") == 0,
               "%s", error_message()))
        return;
    CHECK(checkpoint_resume(path, &sound, &sound_state) == 0, "%s", error_message());
    for (size_t at = 0; at < count; at += count / 300 + 1, tried++) {
        bytes[at] = (char)(bytes[at] ^ 0x55);
        const char *damaged = scratch_file("damaged.h5", bytes, count);
        bytes[at] = (char)(bytes[at] ^ 0x55);
        if (checkpoint_resume(damaged, &setup, &state) == 0)
            check_same(&sound, &sound_state, &setup, &state);
        else
            refused++;
    }
    CHECK(refused > tried / 4, "only %d of %d damaged files are refused", refused, tried);
    test_note("%d of %d damaged files refused, the others read the same", refused, tried);
    free(bytes);
    setup_free(&sound);
    setup_free(&setup);
}

static void survives_a_full_disk(void) {
    const char *path = scratch_path("kept.h5");
    size_t before, after;
    struct rlimit limit, tight;
    Setup setup;
    BcdState state = {0};
    write_example(path, RESNET);
    char *old = scratch_read(path, &before);
    if (!CHECK(open_flags(&setup, RESNET) == 0, "%s", error_message())) return;
    train_to(&setup, &state, 5);
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &limit);
    for (int part = 0; part < 8; part++) {
        tight = limit;
        tight.rlim_cur = before * (size_t)part / 8;
        setrlimit(RLIMIT_FSIZE, &tight);
        int failed = checkpoint_write(path, &setup, &state);
        setrlimit(RLIMIT_FSIZE, &limit);
        CHECK(failed == -1, "written with %d/8 of the room", part);
        CHECK(strstr(error_message(), "File too large"), "error is \"%s\"", error_message());
    }
    char *now = scratch_read(path, &after);
    CHECK(before == after && memcmp(old, now, before) == 0, "the old checkpoint changed");
    free(old);
    free(now);
    setup_free(&setup);
}

static int reads_left;

static size_t read_until_lost(Engine *engine, TensorRole role, int number, real *data) {
    if (reads_left-- > 0) {
        size_t count = data && role == TENSOR_PARAMETER ? engine->model->param[number].count : 0;
        if (count) memset(data, 0, count * sizeof *data);
        return count;
    }
    error_set("link: rank 2 has died");
    return READ_FAILED;
}

/* When a rank of a pipeline dies while a checkpoint is written, the old one remains. */
static void survives_a_lost_rank(void) {
    const char *path = scratch_path("kept.h5");
    size_t before, after;
    Setup setup;
    BcdState state = {0};
    write_example(path, RESNET);
    char *old = scratch_read(path, &before);
    if (!CHECK(open_flags(&setup, RESNET) == 0, "%s", error_message())) return;
    const EngineClass *sound = setup.engine->is;
    EngineClass dying = *sound;
    dying.read = read_until_lost;
    setup.engine->is = &dying;
    for (int reads = 0; reads < 40; reads += 13) {
        reads_left = reads;
        CHECK(checkpoint_write(path, &setup, &state) == TENSORS_UNREAD, "with %d tensors", reads);
        CHECK(strstr(error_message(), "rank 2 has died"), "error is \"%s\"", error_message());
    }
    setup.engine->is = sound;
    char *now = scratch_read(path, &after);
    CHECK(before == after && memcmp(old, now, before) == 0, "the old checkpoint changed");
    free(old);
    free(now);
    setup_free(&setup);
}

/* A rank of a pipeline that dies during a resume is no damage of the checkpoint, which has no state
 * of frozen parameters. */
static void names_a_rank_lost_while_resuming(void) {
    static const char flags[] = RESNET " --submodels 3";
    const char *path = scratch_path("resumed.h5");
    Setup setup;
    BcdState state;
    write_example(path, flags);
    if (!CHECK(open_flags(&setup, flags) == 0, "%s", error_message())) return;
    const EngineClass *sound = setup.engine->is;
    EngineClass dying = *sound;
    dying.read = read_until_lost;
    dying.view = NULL;
    reads_left = 0;
    setup.engine->is = &dying;
    CHECK(checkpoint_resume(path, &setup, &state) == -1, "resumed");
    CHECK(strstr(error_message(), "rank 2 has died"), "error is \"%s\"", error_message());
    setup.engine->is = sound;
    setup_free(&setup);
}

/* ---- settings ------------------------------------------------------------------------------ */

static Options flags_of(const char *text) {
    CommandLine line;
    CHECK(parse_line(&line, text) == 0, "%s", error_message());
    return line.options;
}

static void resume_refuses_contradictions(void) {
    Options stored = flags_of("train --lr 0.5 --model resnet8 --steps 10");
    Options same = flags_of("train --lr 0.5 --steps 20 --threads 2 --cache 1M --keep-last 2");
    CHECK(settings_resume(&stored, &same) == 0, "%s", error_message());
    CHECK(stored.steps == 20 && stored.threads == 2 && stored.cache == 1 << 20 &&
              stored.keep_last == 2 && stored.optimizer.lr == 0.5,
          "what may change did not");
    Options other = flags_of("train --lr 0.25");
    CHECK(settings_resume(&stored, &other) != 0, "took another rate");
    CHECK_ERROR(
        "--lr 0.25: this run was started with 0.5, and a resume must give the same result; "
        "start a new run with --out for another");
    Options partition = flags_of("train --partition 0/1-4");
    CHECK(settings_resume(&stored, &partition) != 0, "took another partition");
    CHECK_ERROR(
        "--partition 0/1-4: this run was started with none, and a resume must give the "
        "same result; start a new run with --out for another");
}

void test_checkpoint(void) {
    int threads = omp_get_max_threads();
    omp_set_num_threads(1); /* the models are too small to gain from more threads */
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        RUN_ROW(places[i].name, resumes_exactly, &places[i]);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        RUN_ROW(places[i].name, settings_come_back, &places[i]);
    RUN(refuses_other_files);
    RUN(refuses_truncated);
    RUN(notices_damage);
    RUN(survives_a_full_disk);
    RUN(survives_a_lost_rank);
    RUN(names_a_rank_lost_while_resuming);
    RUN(resume_refuses_contradictions);
    omp_set_num_threads(threads);
}
