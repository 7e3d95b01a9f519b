/* bcd plan says below its table what the numbers leave out, and gives small ones their digits. */
#include <string.h>

#include "../near.h"
#include "cli.h"
#include "tables_sample.h"

#define TINY "--model gpt:layers=6,width=64,heads=4,context=32,vocabulary=96 --per-node 2 "

typedef struct {
    const char *name, *flags, *note;
    bool is_there;
} NoteRow;

static const NoteRow note_rows[] = {
    {"no price", TINY "--gpu h100 --method full", "--price h100=DOLLARS gives one.", true},
    {"a price", TINY "--gpu h100 --method full --price 2", "no price", false},
    {"all digits of the tokens", TINY "--tokens 123456789", "of 123456789 tokens;", true},
    {"epochs of images", "--model resnet8", "1e+09 images, which are 20000 epochs of CIFAR-10",
     true},
    {"replicas", TINY "--replicas 2", "Gradients of replicas are simulated", true},
    {"a tied head", "--model qwen2.5-0.5B --context 64 --per-node 2 --batch 13",
     "Gradients of a tied head on another rank than the embedding are", true},
    {"neither", "--model resnet8 --per-node 1", "Gradients of", false},
    {"an odd batch", TINY "--batch 13", "--batch 13: it has no divisor in common with the 2 GPUs",
     true},
    {"an even batch", TINY "--batch 14", "no divisor", false},
    {"no language model", "--model resnet8", "LoRA", false},
    /* The prefix's largest output, of 1024 x 2048 numbers, which are floats in every precision. */
    {"a cache", "--model G-1.6B --gpu a100 --per-node 1 --cache",
     "--cache: up to 7.812 GiB on disk or in host memory for each 1000 samples", true},
    {"a cache in bf16", "--model G-1.6B --gpu a100 --per-node 1 --cache --precision bf16",
     "--cache: up to 7.812 GiB on disk or in host memory for each 1000 samples", true},
};

/* Finds a text in the notes of a table. */
static bool notes_have(const Table *table, const char *text) {
    int i = 0;
    while (i < table->notes && !strstr(table->note[i], text)) i++;
    return i < table->notes;
}

static void case_note(const void *data) {
    const NoteRow *row = data;
    Tables t;
    run(0, "plan %s --out noted.h5", row->flags);
    if (!read_tables(&t, "noted.h5")) return;
    CHECK(notes_have(tables_find(&t, "plan"), row->note) == row->is_there, "%s", row->note);
    tables_free(&t);
}

/* The full update without state is planned as if it had been asked for. */
static void case_plain_sgd(void) {
    static const char question[] = "plan --model gpt2 --per-node 1 --batch 8";
    Tables plain, adam;
    char text[64];
    run(0, "%s --method full --optimizer sgd --momentum 0 --out plain.h5", question);
    run(0, "%s --out adam.h5", question);
    if (!read_tables(&plain, "plain.h5") || !read_tables(&adam, "adam.h5")) return;
    snprintf(text, sizeof text, "takes %.1f GiB (closed form) and fits",
             cell(&plain, "plan", "full", "memory"));
    CHECK(notes_have(tables_find(&adam, "plan"), text), "not %s", text);
    CHECK(!notes_have(tables_find(&plain, "plan"), "SGD without momentum"), "it is the row");
    tables_free(&plain);
    tables_free(&adam);
}

/* Two digits of the least number of a column. */
static void case_small_numbers(void) {
    Tables t;
    const char *out = run(0,
                          "plan --model resnet8 --per-node 1 --method full --tokens 1e6 --out "
                          "small.h5")
                          ->out;
    if (!read_tables(&t, "small.h5")) return;
    const double hours = cell(&t, "plan", "full", "gpu_hours");
    char text[32];
    snprintf(text, sizeof text, " %.4f s ", hours);
    CHECK(hours > 0.001 && hours < 0.01 && strstr(out, text), "%g h are not%s in %s", hours, text,
          out);
    tables_free(&t);
}

void test_plan_notes(void) {
    for (size_t i = 0; i < sizeof note_rows / sizeof *note_rows; i++)
        RUN_ROW(note_rows[i].name, case_note, &note_rows[i]);
    RUN(case_plain_sgd);
    RUN(case_small_numbers);
}
