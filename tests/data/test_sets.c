/* Data sets by name. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../data/data.h"
#include "../../data/file.h"
#include "../../data/images.h"
#include "../../data/textset.h"
#include "../../data/tokens.h"
#include "../../ref/base/error.h"
#include "scratch.h"
#include "tiny.h"

static Dataset *open_set(const char *name, const char *dir, Split split) {
    return data_open(&(DataRequest){.name = name, .dir = dir, .split = split, .context = 4});
}

static const char wrong_name[] =
    "data: no data set \"cifar11\"; there are synthetic, text, text1, text2, cifar10, "
    "cifar10-holdout, "
    "cifar100, shakespeare, shakespeare:N, wikitext2, wikitext2:N, webtext2, and token files "
    "FILE.tokens";

/* The path of the text is not too long, but that of its tokens is. */
static void long_directory(void) {
    char dir[PATH_BYTES - 24];
    memset(dir, 'x', sizeof dir - 1);
    dir[sizeof dir - 1] = 0;
    error_set("nothing");
    CHECK(!open_set("shakespeare:300", dir, SPLIT_TRAIN) && !strncmp(error_message(), dir, 60) &&
              strstr(error_message(), "...: the path is longer than 1023 bytes"),
          "%s", error_message());
}

static void kinds_and_names(void) {
    static const char *const images[] = {"synthetic", "cifar10", "cifar10-holdout", "cifar100"};
    static const char *const tokens[] = {"text",       "shakespeare",    "wikitext2",
                                         "a/b.tokens", "wikitext2:4096", "webtext2",
                                         "text1",      "shakespeare:300"};
    for (int i = 0; i < 4; i++) CHECK(data_is_tokens(images[i]) == 0, "%s", images[i]);
    for (int i = 0; i < 8; i++) CHECK(data_is_tokens(tokens[i]) == 1, "%s", tokens[i]);
    CHECK(data_is_tokens("cifar11") == -1, "cifar11 is known");
    CHECK_ERROR("%s", wrong_name);
    CHECK(!open_set("cifar11", NULL, SPLIT_TRAIN), "cifar11 opens");
    CHECK_ERROR("%s", wrong_name);
    CHECK(!data_tokenizer("cifar11", NULL), "cifar11 has a tokenizer");
    CHECK_ERROR("%s", wrong_name);
    FILE *text = fopen(scratch_path("chats.jsonl"), "w");
    if (text) fclose(text);
    CHECK(data_is_tokens(scratch_path("chats.jsonl")) == -1, "a text is a data set");
    CHECK(strstr(error_message(), "/chats.jsonl holds no tokens; type: bcd tokenize '"), "%s",
          error_message());
    char directory[1024];
    snprintf(directory, sizeof directory, "%s", scratch_path("images/a.png"));
    *strrchr(directory, '/') = 0;
    CHECK(
        data_is_tokens(directory) == -1 && strstr(error_message(), "/images is a directory, and "),
        "%s", error_message());
    CHECK(!data_tokenizer("cifar10", NULL), "cifar10 has a tokenizer");
    CHECK_ERROR("data: cifar10 is a set of images and has no tokenizer");
    CHECK(data_is_tokens("wikitext2:") == -1 && data_is_tokens("wikitext2:4k") == -1 &&
              data_is_tokens("wikitext2:-5") == -1 && data_is_tokens("text1:300") == -1 &&
              data_is_tokens("wiki") == -1,
          "it is no number of tokens, or of bytes");
    CHECK(data_is_tokens(".tokens") == -1, ".tokens has no name before it");
}

static void missing_files_say_how_to_get_them(void) {
    static const struct {
        const char *set, *file;
    } rows[] = {{"cifar10", "cifar-10-batches-bin/data_batch_1.bin"},
                {"cifar100", "cifar-100-binary/train.bin"},
                {"shakespeare", "tinyshakespeare.txt"},
                {"wikitext2", "wikitext-2/train.txt"}};
    for (int i = 0; i < 4; i++) {
        CHECK(!open_set(rows[i].set, "/nowhere", SPLIT_TRAIN), "%s opens", rows[i].set);
        CHECK_ERROR(
            "%s: /nowhere/%s: No such file or directory; data/fetch %s downloads "
            "it; BCD_DATA can name another directory",
            rows[i].set, rows[i].file, rows[i].set);
    }
    /* A set has a file if and only if it does not open without one. */
    for (const DataSet *set = data_sets; set->name; set++) {
        Dataset *opened = open_set(set->name, "/nowhere", SPLIT_TRAIN);
        CHECK(opened ? !set->file : set->file && strstr(error_message(), set->file), "%s: %s",
              set->name, opened ? "opens" : error_message());
        dataset_free(opened);
    }
    char *kept = getenv("BCD_DATA") ? strdup(getenv("BCD_DATA")) : NULL;
    setenv("BCD_DATA", "/elsewhere", 1);
    CHECK(!open_set("shakespeare", NULL, SPLIT_TRAIN), "opened");
    CHECK(strstr(error_message(), " /elsewhere/"), "BCD_DATA is not used: %s", error_message());
    unsetenv("BCD_DATA");
    if (!file_exists("datasets/tinyshakespeare.txt")) {
        CHECK(!open_set("shakespeare", NULL, SPLIT_TRAIN), "opened");
        CHECK(strstr(error_message(), " datasets/"), "datasets is not used: %s", error_message());
    }
    if (kept) setenv("BCD_DATA", kept, 1);
    free(kept);
}

static void synthetic_by_request(void) {
    Dataset *train = open_set("synthetic", NULL, SPLIT_TRAIN);
    Dataset *test = open_set("synthetic", NULL, SPLIT_TEST);
    CHECK(train->samples == SYNTHETIC_TRAIN && test->samples == SYNTHETIC_TEST, "sizes");
    CHECK(train->classes == 10 && !train->tokens && !train->augmented, "its description");
    DataRequest request = {.name = "synthetic", .limit = 100, .augment = true, .seed = 5};
    Dataset *some = data_open(&request);
    CHECK(some->samples == 100 && some->augmented, "limit and augment");
    CHECK(some->checksum != train->checksum, "the seed changes nothing");
    request.split = SPLIT_TEST;
    Dataset *plain = data_open(&request);
    CHECK(!plain->augmented, "the test split is augmented");
    plain->free(plain);
    some->free(some);
    test->free(test);
    train->free(train);
}

static void text_needs_no_download(void) {
    Dataset *train = open_set("text", "/nowhere", SPLIT_TRAIN);
    Dataset *valid = open_set("text", "/nowhere", SPLIT_VALID);
    Dataset *again = open_set("text", "/nowhere", SPLIT_TRAIN);
    if (!CHECK(train && valid && again, "%s", error_message())) return;
    CHECK(train->classes == 256 && train->tokens, "its description");
    const double share = (double)valid->samples / (train->samples + valid->samples);
    CHECK(share > 0.099 && share < 0.101, "%g of it is held out", share);
    CHECK(train->checksum == again->checksum, "two readings differ");
    train->free(train);
    valid->free(valid);
    again->free(again);
    Tokenizer *tokenizer = data_tokenizer("text", NULL);
    CHECK(tokenizer && strcmp(tokenizer->name, "bytes") == 0, "its tokenizer");
    tokenizer_free(tokenizer);
}

/* Each half has a validation split of its own. */
static void text_has_halves(void) {
    Dataset *whole = open_set("text", NULL, SPLIT_TRAIN), *part[4];
    static const Split splits[] = {SPLIT_TRAIN, SPLIT_VALID};
    int samples = 0;
    for (int i = 0; i < 4; i++) {
        part[i] = open_set(i < 2 ? "text1" : "text2", NULL, splits[i % 2]);
        if (!CHECK(part[i], "%s", error_message())) return;
        samples += part[i]->samples;
    }
    CHECK(whole && abs(samples - whole->samples * 10 / 9) < 8, "%d samples in the halves", samples);
    Batch first = batch_one(whole, 3, 0), same = batch_one(part[0], 3, 0),
          other = batch_one(part[2], 3, 0);
    CHECK(memcmp(first.tokens, same.tokens, 4 * sizeof *same.tokens) == 0, "text1 begins text");
    CHECK(memcmp(first.tokens, other.tokens, 4 * sizeof *other.tokens), "text2 does too");
    batch_free(&first);
    batch_free(&same);
    batch_free(&other);
    for (int i = 0; i < 4; i++) part[i]->free(part[i]);
    whole->free(whole);
}

/* A tenth of a token file is held out, but a million tokens at most. */
static void a_long_file_holds_out_a_million_tokens(void) {
    enum { MILLION = 1000000, MILLIONS = 11 };
    TokenWriter writer;
    const char *path = scratch_path("long.tokens");
    int *numbers = calloc(MILLION, sizeof *numbers);
    if (!CHECK(numbers && tokenwriter_open(&writer, path, "words", 2, false, 0) == 0, "%s",
               error_message()))
        return;
    for (int i = 0; i < MILLIONS; i++)
        CHECK(tokenwriter_add(&writer, numbers, MILLION) == 0, "%s", error_message());
    CHECK(tokenwriter_commit(&writer) == 0, "%s", error_message());
    free(numbers);
    Dataset *train = open_set(path, NULL, SPLIT_TRAIN), *valid = open_set(path, NULL, SPLIT_VALID);
    /* Samples have 4 tokens, and the last target is one further on. */
    if (CHECK(train && valid, "%s", error_message()))
        CHECK(valid->samples == (MILLION - 1) / 4 &&
                  train->samples == ((MILLIONS - 1) * MILLION - 1) / 4,
              "%d and %d samples", train->samples, valid->samples);
    dataset_free(train);
    dataset_free(valid);
    unlink(path);
}

static void sources_come_in_the_order_of_their_names(void) {
    scratch_text("tree/ref/b.c", "b");
    scratch_text("tree/ref/B.h", "B");
    scratch_text("tree/ref/a/z.cu", "z");
    scratch_text("tree/ref/picture.png", "no");
    scratch_text("tree/ref/.hidden.c", "no");
    scratch_text("tree/build/x.c", "no");
    scratch_text("tree/data/d.c", "d");
    char tree[700];
    snprintf(tree, sizeof tree, "%s", scratch_text("tree/README.md", "r"));
    *strrchr(tree, '/') = 0;
    size_t bytes;
    unsigned char *text = sources_read(tree, &bytes);
    if (CHECK(text, "%s", error_message()))
        CHECK(bytes == 5 && memcmp(text, "rdBzb", 5) == 0, "%.*s", (int)bytes, (const char *)text);
    free(text);
    CHECK(!sources_read("/nowhere", &bytes), "/nowhere has sources");
    CHECK_ERROR("text: no sources in /nowhere, where the program was built; build it again");
}

static void shakespeare_is_split(void) {
    scratch_text("tinyshakespeare.txt", "To be, or not to be, that is the questio");
    Dataset *train = open_set("shakespeare", scratch_directory(), SPLIT_TRAIN);
    CHECK(train && train->samples == 8, "training: 36 bytes are 8 samples of 4 and one more");
    CHECK(!open_set("shakespeare", scratch_directory(), SPLIT_VALID), "4 bytes are too few");
    CHECK_ERROR(
        "shakespeare: 4 tokens are too few for a context of 4; it needs 5; this is the last tenth, "
        "held out for validation unless --valid names a file");
    CHECK(!open_set("shakespeare", scratch_directory(), SPLIT_TEST), "a test split");
    CHECK_ERROR("shakespeare: a text without a test split; its last tenth is the validation split");
    Batch batch = batch_one(train, 7, 0);
    CHECK(batch.tokens[1] == 't' && batch.tokens[3] == 'e' && batch.targets[3] == ' ',
          "the last sample");
    batch_free(&batch);
    train->free(train);
}

/* The tokens of a text are made once, kept in a file, and made again when the text changes. */
static void wikitext2_keeps_its_tokens(void) {
    scratch_text("gpt2-bpe/vocab.bpe", tiny_merges());
    scratch_text("wikitext-2/train.txt", "hello hello hello world");
    const char *kept = scratch_path("wikitext-2/train.gpt2.tokens");
    Dataset *made = open_set("wikitext2", scratch_directory(), SPLIT_TRAIN);
    if (!CHECK(made, "%s", error_message())) return;
    /* The tokens are hello, twice the space and hello, then _w or l d. */
    CHECK(made->samples == 1 && made->classes == TINY_END + 1, "its description");
    Tokens tokens;
    if (CHECK(tokens_open(&tokens, kept) == 0, "%s", error_message())) {
        CHECK(tokens.count == 8, "%zu tokens", tokens.count);
        tokens_free(&tokens);
    }
    struct stat before, after;
    stat(kept, &before);
    Dataset *used = open_set("wikitext2", scratch_directory(), SPLIT_TRAIN);
    stat(kept, &after);
    CHECK(before.st_ino == after.st_ino, "the tokens were made a second time");
    CHECK(used && used->checksum == made->checksum, "the kept tokens differ");

    scratch_text("wikitext-2/train.txt", "world hello hello hello");
    Dataset *changed = open_set("wikitext2", scratch_directory(), SPLIT_TRAIN);
    CHECK(changed && changed->checksum != made->checksum, "old tokens for a new text");
    scratch_text("wikitext-2/train.gpt2.tokens", "damaged");
    Dataset *repaired = open_set("wikitext2", scratch_directory(), SPLIT_TRAIN);
    CHECK(repaired && repaired->checksum == changed->checksum, "a damaged file is not made again");
    Tokenizer *tokenizer = data_tokenizer("wikitext2", scratch_directory());
    CHECK(tokenizer && tokenizer->vocabulary == TINY_END + 1, "its tokenizer: %s", error_message());
    tokenizer_free(tokenizer);
    made->free(made);
    used->free(used);
    changed->free(changed);
    repaired->free(repaired);
}

static void other_merges_make_other_tokens(void) {
    scratch_text("gpt2-bpe/vocab.bpe", "#version: 0.2\nh e\n");
    Dataset *made = open_set("wikitext2", scratch_directory(), SPLIT_TRAIN);
    CHECK(made && made->classes == 258, "the kept tokens are those of other merges");
    dataset_free(made);
}

/* A smaller vocabulary has fewer merges; its tokens are kept in a file of their own. */
static void wikitext2_in_fewer_tokens(void) {
    scratch_text("gpt2-bpe/vocab.bpe", tiny_merges());
    scratch_text("wikitext-2/train.txt", "hello hello hello world");
    Dataset *made = open_set("wikitext2:259", scratch_directory(), SPLIT_TRAIN);
    Tokens tokens;
    if (!CHECK(made, "%s", error_message())) return;
    CHECK(made->classes == 259, "%d tokens to tell apart", made->classes);
    made->free(made);
    if (!CHECK(tokens_open(&tokens, scratch_path("wikitext-2/train.gpt2-259.tokens")) == 0, "%s",
               error_message()))
        return;
    /* The tokens are hell o, twice the space hell o, and world letter by letter. */
    CHECK(tokens.count == 14 && tokens_at(&tokens, 0) == 258, "%zu tokens", tokens.count);
    CHECK(strcmp(tokens.tokenizer, "gpt2:259") == 0, "%s", tokens.tokenizer);
    tokens_free(&tokens);
    Tokenizer *tokenizer =
        data_tokenizer(scratch_path("wikitext-2/train.gpt2-259.tokens"), scratch_directory());
    CHECK(tokenizer && tokenizer->vocabulary == 259 && tokenizer->end_of_text == -1, "%s",
          error_message());
    tokenizer_free(tokenizer);
    CHECK(!open_set("wikitext2:255", scratch_directory(), SPLIT_TRAIN),
          "fewer than there are bytes");
    CHECK_ERROR("gpt2: 255 tokens: a part of the vocabulary has 256 to 277");
    CHECK(!open_set("wikitext2:278", scratch_directory(), SPLIT_TRAIN), "as many as there are");
    CHECK_ERROR("gpt2: 278 tokens: a part of the vocabulary has 256 to 277");
}

static void shakespeare_in_fewer_tokens(void) {
    scratch_text("gpt2-bpe/vocab.bpe", tiny_merges());
    scratch_text("tinyshakespeare.txt", "hello hello hello worlds");
    Dataset *made = open_set("shakespeare:259", scratch_directory(), SPLIT_TRAIN);
    if (!CHECK(made, "%s", error_message())) return;
    CHECK(made->classes == 259 && made->samples == 3, "%d samples of %d tokens", made->samples,
          made->classes);
    made->free(made);
    Tokenizer *tokenizer = data_tokenizer("shakespeare:259", scratch_directory());
    CHECK(tokenizer && tokenizer->vocabulary == 259, "%s", error_message());
    tokenizer_free(tokenizer);
    CHECK(file_exists(scratch_path("tinyshakespeare.gpt2-259.tokens")), "it is not kept");
}

static void wikitext2_where_nothing_can_be_kept(void) {
    scratch_text("gpt2-bpe/vocab.bpe", tiny_merges());
    scratch_text("wikitext-2/valid.txt", "hello hello hello world");
    /* A directory is in the way, since permissions would not stop the superuser. */
    mkdir(scratch_path("wikitext-2/valid.gpt2.tokens"), 0777);
    Dataset *dataset = open_set("wikitext2", scratch_directory(), SPLIT_VALID);
    if (CHECK(dataset, "%s", error_message())) dataset->free(dataset);
}

static void token_files_are_split(void) {
    TokenWriter writer;
    int numbers[100];
    for (int i = 0; i < 100; i++) numbers[i] = i;
    const char *path = scratch_path("set.tokens");
    CHECK(tokenwriter_open(&writer, path, "bytes", 256, false, 0) == 0, "%s", error_message());
    CHECK(tokenwriter_add(&writer, numbers, 100) == 0, "%s", error_message());
    CHECK(tokenwriter_commit(&writer) == 0, "%s", error_message());
    Dataset *train = open_set(path, NULL, SPLIT_TRAIN), *valid = open_set(path, NULL, SPLIT_VALID);
    CHECK(train && train->samples == 22, "90 tokens are 22 samples of 4");
    CHECK(valid && valid->samples == 2, "10 tokens are 2");
    Batch batch = batch_one(valid, 0, 0);
    CHECK(batch.tokens[0] == 90, "validation begins at %d", batch.tokens[0]);
    batch_free(&batch);
    Tokenizer *tokenizer = data_tokenizer(path, NULL);
    CHECK(tokenizer && strcmp(tokenizer->name, "bytes") == 0, "its tokenizer");
    tokenizer_free(tokenizer);
    train->free(train);
    valid->free(valid);
}

/* WebText2 is a token file that the user made, in the directory of the data sets. */
static void webtext2_is_a_token_file(void) {
    CHECK(!open_set("webtext2", scratch_directory(), SPLIT_TRAIN), "it is not there, and opens");
    CHECK_ERROR(
        "webtext2: %s/webtext2.tokens does not exist; make it from a copy of WebText2 with "
        "bcd tokenize",
        scratch_directory());
    char made[1024];
    snprintf(made, sizeof made, "%s", scratch_path("set.tokens"));
    CHECK(rename(made, scratch_path("webtext2.tokens")) == 0, "cannot rename");
    Dataset *train = open_set("webtext2", scratch_directory(), SPLIT_TRAIN);
    if (CHECK(train && train->samples == 22, "%s", error_message())) train->free(train);
    Tokenizer *tokenizer = data_tokenizer("webtext2", scratch_directory());
    CHECK(tokenizer && strcmp(tokenizer->name, "bytes") == 0, "its tokenizer");
    tokenizer_free(tokenizer);
}

static void token_file_of_an_unknown_tokenizer(void) {
    static const char *const names[] = {"words", "", "gpt", ":300", "gpt2x"};
    for (int i = 0; i < 5; i++) {
        TokenWriter writer;
        const char *path = scratch_path("other.tokens");
        CHECK(tokenwriter_open(&writer, path, names[i], 256, false, 0) == 0, "%s", error_message());
        CHECK(tokenwriter_commit(&writer) == 0, "%s", error_message());
        CHECK(!data_tokenizer(path, NULL), "it has a tokenizer");
        CHECK_ERROR("data: %s: the tokenizer \"%s\" is not known; only bytes and gpt2 are", path,
                    names[i]);
    }
}

static void long_paths_are_refused(void) {
    char dir[2000];
    memset(dir, 'd', sizeof dir);
    dir[sizeof dir - 1] = 0;
    CHECK(!open_set("shakespeare", dir, SPLIT_TRAIN), "opened");
    CHECK(!open_set("cifar10", dir, SPLIT_TRAIN), "opened");
    CHECK(!open_set("wikitext2", dir, SPLIT_TRAIN), "opened");
    CHECK(!data_tokenizer("wikitext2", dir), "opened");
}

void test_data_sets(void) {
    RUN(kinds_and_names);
    RUN(long_directory);
    RUN(missing_files_say_how_to_get_them);
    RUN(synthetic_by_request);
    RUN(text_needs_no_download);
    RUN(text_has_halves);
    RUN(a_long_file_holds_out_a_million_tokens);
    RUN(sources_come_in_the_order_of_their_names);
    RUN(shakespeare_is_split);
    RUN(wikitext2_keeps_its_tokens);
    RUN(other_merges_make_other_tokens);
    RUN(wikitext2_in_fewer_tokens);
    RUN(shakespeare_in_fewer_tokens);
    RUN(wikitext2_where_nothing_can_be_kept);
    RUN(token_files_are_split);
    RUN(webtext2_is_a_token_file);
    RUN(token_file_of_an_unknown_tokenizer);
    RUN(long_paths_are_refused);
}
