/* Trainings with random flags.  Whatever is combined, the memory is as planned, and a resume gives
 * the same bits; or it is refused in one line. */
#include <stdio.h>
#include <string.h>

#include "../../experiments/base/text.h"
#include "../../experiments/train/modules.h"
#include "../../ref/base/random.h"
#include "../../ref/bcd.h"
#include "cli.h"

enum { TRAININGS = 40, ALTERNATIVES = 6 };

/* One of each row is chosen.  A row with an empty first alternative is often left out. */
typedef const char *Row[ALTERNATIVES];

static const Row models = {
    "--data synthetic --model resnet:depth=8,width=2",
    "--data synthetic --model bottleneck:depth=14,width=4",
    "--data words.tokens --model gpt:layers=5,width=8,heads=1,context=8",
    "--data words.tokens --model gpt:layers=3,width=16,heads=2,context=16",
    "--data words.tokens --model llama:layers=4,width=16,heads=4,groups=2,context=16,tied=1",
};
static const Row always[] = {
    {"--batch 2", "--batch 3", "--batch 4"},
    {"", "--accumulate 2"},
    {"", "--recompute"},
    {"", "--clip 1"},
    {"", "--device plain", "--device simt", "--device simt --precision bf16", "--pipeline local:2",
     "--pipeline local:3 --pipeline-schedule zero-bubble"},
};
static const Row with_submodels[] = {
    {"--submodels 2", "--submodels 3", "--submodels 4"},
    {"--switch-every 1", "--switch-every 2", "--switch-every 5", "--switch-every 0.5e",
     "--switch-every auto --auto-min 2 --auto-window 1"},
    {"", "--keep-state"},
    {"", "--always-active none", "--always-active ends", "--always-active block1"},
    {"", "--correct-above 0.5"},
    {"", "--fraction 0.5"},
};

/* The draws of one training. */
typedef struct {
    uint64_t seed, draws;
} Draw;

static uint32_t draw(Draw *d, uint32_t bound) {
    return random_below(d->seed, STREAM_SAMPLE, d->draws++, bound);
}

static const char *draw_from(Draw *d, const Row row) {
    uint32_t count = 0;
    while (count < ALTERNATIVES && row[count]) count++;
    if (!*row[0] && draw(d, 2)) return "";
    return row[draw(d, count)];
}

static Text draw_flags(Draw *d) {
    Text flags = text_of("%s --limit 32 --eval-samples 4 --threads 1 --schedule constant --lr 1e-3",
                         draw_from(d, models));
    for (size_t i = 0; i < sizeof always / sizeof *always; i++)
        text_add(&flags, " %s", draw_from(d, always[i]));
    text_add(&flags, " --optimizer %s", optimizer_names[draw(d, OPTIMIZER_KINDS)]);
    if (draw(d, 4) == 0) return flags;
    text_add(&flags, " --order %s", order_names[draw(d, ORDER_KINDS)]);
    for (size_t i = 0; i < sizeof with_submodels / sizeof *with_submodels; i++)
        text_add(&flags, " %s", draw_from(d, with_submodels[i]));
    return flags;
}

/* Otherwise losses or gradients decide which submodels have a turn, and the plan is the most that
 * can come. */
static bool is_planned_exactly(const char *flags) {
    for (Order order = 0; order < ORDER_KINDS; order++)
        if (!order_by_phase[order] && strstr(flags, order_names[order])) return false;
    return !strstr(flags, "--switch-every auto");
}

static void check_memory(const char *flags, const char *dir) {
    RunFile file;
    if (!read_run(&file, dir)) return;
    for (int role = 0; role <= MEM_ROLES; role++) {
        const MemoryRow *row = &file.memory[role];
        CHECK(is_planned_exactly(flags) ? row->peak == row->planned : row->peak <= row->planned,
              "bcd train %s: %s: peak %llu, planned %llu", flags, row->role,
              (unsigned long long)row->peak, (unsigned long long)row->planned);
    }
    runfile_free(&file);
}

/* Returns false for flags that are refused, which has to be in one line. */
static bool check_training(int number, const char *flags, int steps, int first) {
    const Text whole = text_of("whole%d", number), last = text_of("last%d", number);
    const Printed *printed =
        program_run(text_of("train %s --steps %d --save-every %d --keep-last 99 --quiet --out %s",
                            flags, steps, first, whole.text)
                        .text,
                    0);
    if (printed->status) {
        const char *end = strchr(printed->error, '\n');
        CHECK((printed->status == 1 || printed->status == 2) && end && !end[1],
              "bcd train %s: %d, %s", flags, printed->status, printed->error);
        return false;
    }
    check_memory(flags, whole.text);
    const Text checkpoint = text_of("%s/checkpoint.h5", whole.text);
    copy_file(text_of("%s/checkpoint.h5", last.text).text, checkpoint.text);
    copy_file(checkpoint.text, text_of("%s/checkpoint-%d.h5", whole.text, first).text);
    run(0, "train --resume %s --quiet", whole.text);
    check_same_checkpoint(last.text, whole.text);
    return true;
}

static void random_trainings(void) {
    int trained = 0;
    const bool simt = device_module_open("simt");
    for (int i = 0; i < TRAININGS; i++) {
        Draw d = {.seed = (uint64_t)i};
        const Text flags = draw_flags(&d);
        const int steps = 2 + (int)draw(&d, 12);
        if (strstr(flags.text, "simt") && !simt) continue;
        trained += check_training(i, flags.text, steps, 1 + (int)draw(&d, (uint32_t)steps - 1));
    }
    /* Any error would do for a refusal, so that how many there are is pinned.  It changes with the
     * flags above, or with what they allow. */
    const int expected = simt ? 34 : 26;
    CHECK(trained == expected, "%d of %d trained, not %d", trained, TRAININGS, expected);
}

void test_random_trainings(void) {
    make_words();
    RUN(random_trainings);
}
