/* Samples of tokens, token files, and the errors of damaged files. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../data/tokens.h"
#include "../../ref/base/checksum.h"
#include "scratch.h"

static int *counting(size_t count) {
    int *numbers = malloc((count + 1) * sizeof *numbers);
    for (size_t i = 0; i < count; i++) numbers[i] = (int)i;
    return numbers;
}

/* Returns the tokens 0, 1, 2, ... count - 1. */
static Tokens counting_tokens(size_t count, int vocabulary) {
    Tokens tokens;
    int *numbers = counting(count);
    if (tokens_pack(&tokens, numbers, count, "test", vocabulary)) abort();
    free(numbers);
    return tokens;
}

static void windows_do_not_overlap_and_targets_are_one_on(void) {
    Dataset *dataset = tokens_dataset("test", counting_tokens(100, 100), 3, 96, 7, 0);
    /* Of 93 tokens 92 have a successor, which gives 13 windows of 7. */
    CHECK(dataset->samples == 13, "%d samples", dataset->samples);
    CHECK(dataset->tokens && dataset->classes == 100 && dataset->input.w == 7, "its description");
    for (int n = 0; n < dataset->samples; n++) {
        Batch batch = batch_one(dataset, n, 9);
        for (int t = 0; t < 7; t++) {
            CHECK(batch.tokens[t] == 3 + 7 * n + t, "sample %d token %d: %d", n, t,
                  batch.tokens[t]);
            CHECK(batch.targets[t] == 4 + 7 * n + t, "sample %d target %d: %d", n, t,
                  batch.targets[t]);
        }
        batch_free(&batch);
    }
    dataset->free(dataset);
}

static void just_enough_tokens(void) {
    Dataset *dataset = tokens_dataset("test", counting_tokens(8, 8), 0, 8, 7, 0);
    if (CHECK(dataset != NULL, "%s", error_message())) {
        CHECK(dataset->samples == 1, "%d samples", dataset->samples);
        dataset->free(dataset);
    }
    CHECK(!tokens_dataset("test", counting_tokens(7, 7), 0, 7, 7, 0), "too few pass");
    CHECK_ERROR("test: 7 tokens are too few for a context of 7; it needs 8");
    CHECK(!tokens_dataset("test", counting_tokens(0, 7), 0, 0, 1, 0), "none pass");
    CHECK_ERROR("test: 0 tokens are too few for a context of 1; it needs 2");
    CHECK(!tokens_dataset("test", counting_tokens(9, 9), 0, 9, 0, 0), "no context passes");
    CHECK_ERROR("test: a context of 0 tokens; it must be 1 at least");
}

static void limit_takes_the_first(void) {
    Dataset *all = tokens_dataset("test", counting_tokens(100, 100), 0, 100, 7, 0);
    Dataset *some = tokens_dataset("test", counting_tokens(100, 100), 0, 100, 7, 5);
    Dataset *more = tokens_dataset("test", counting_tokens(100, 100), 0, 100, 7, 1000);
    CHECK(some->samples == 5, "%d samples", some->samples);
    CHECK(more->samples == all->samples, "%d samples", more->samples);
    CHECK(some->checksum != all->checksum, "the checksum is not of the samples used");
    /* One sample of a context of 7 uses 8 tokens. */
    Dataset *one = tokens_dataset("test", counting_tokens(100, 100), 0, 100, 7, 1);
    uint64_t sum = CHECKSUM_START;
    for (unsigned i = 0; i < 8; i++) sum = checksum_add(sum, i);
    CHECK(one->samples == 1 && one->checksum == sum, "%d samples", one->samples);
    one->free(one);
    all->free(all);
    some->free(some);
    more->free(more);
}

static const char *write_counting(const char *name, size_t count, int vocabulary) {
    TokenWriter writer;
    const char *path = scratch_path(name);
    int *numbers = counting(count);
    CHECK(tokenwriter_open(&writer, path, "test", vocabulary, false, 77) == 0, "%s",
          error_message());
    /* The tokens are written in uneven pieces, on which the file must not depend. */
    for (size_t done = 0, piece = 1; done < count; done += piece, piece = piece * 3 + 1) {
        if (piece > count - done) piece = count - done;
        CHECK(tokenwriter_add(&writer, numbers + done, piece) == 0, "%s", error_message());
    }
    CHECK(!file_exists(path), "the file is there before it is complete");
    CHECK(tokenwriter_commit(&writer) == 0, "%s", error_message());
    free(numbers);
    return path;
}

static void check_round_trip(const char *name, size_t count, int vocabulary, int width) {
    Tokens tokens;
    const char *path = write_counting(name, count, vocabulary);
    Tokens packed = counting_tokens(count, vocabulary);
    CHECK(packed.width == width, "%d bytes a token in memory", packed.width);
    tokens_free(&packed);
    if (!CHECK(tokens_open(&tokens, path) == 0, "%s", error_message())) return;
    CHECK(tokens.count == count, "%zu tokens", tokens.count);
    CHECK(tokens.width == width, "%d bytes a token", tokens.width);
    CHECK(tokens.vocabulary == vocabulary, "vocabulary %d", tokens.vocabulary);
    CHECK(tokens.source == 77, "source %d", (int)tokens.source);
    CHECK(strcmp(tokens.tokenizer, "test") == 0, "tokenizer %s", tokens.tokenizer);
    for (size_t i = 0; i < tokens.count; i++)
        CHECK(tokens_at(&tokens, i) == (int)i, "token %zu is %d", i, tokens_at(&tokens, i));
    tokens_free(&tokens);
}

static void token_files_round_trip(void) {
    check_round_trip("narrow.tokens", 65536, 65536, 2);
    check_round_trip("wide.tokens", 65537, 65537, 4);
    check_round_trip("empty.tokens", 0, 5, 2);
}

static void the_layout_is_the_documented_one(void) {
    static const unsigned char expected[] = {'B', 'C', 'D', 'T', 'O', 'K', 'E', 'N', 1,  0, 0, 0,
                                             2,   0,   0,   0,   't', 'e', 's', 't', 0,  0, 0, 0,
                                             0,   0,   0,   0,   0,   0,   0,   0,   44, 1, 0, 0};
    const char *path = write_counting("layout.tokens", 300, 300);
    unsigned char bytes[1000];
    FILE *file = fopen(path, "rb");
    const size_t count = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    CHECK(count == 64 + 600, "%zu bytes", count);
    CHECK(memcmp(bytes, expected, sizeof expected) == 0, "the header's first 36 bytes");
    CHECK(bytes[40] == 44 && bytes[41] == 1 && bytes[47] == 0, "the count");
    CHECK(bytes[64] == 0 && bytes[66] == 1 && bytes[64 + 598] == 43 && bytes[64 + 599] == 1,
          "the tokens");
}

static void a_wrong_token_leaves_no_file(void) {
    TokenWriter writer;
    const char *path = scratch_path("wrong.tokens");
    CHECK(tokenwriter_open(&writer, path, "test", 10, false, 0) == 0, "%s", error_message());
    CHECK(tokenwriter_add(&writer, (int[]){9, 10}, 2) == -1, "10 passes");
    CHECK_ERROR("tokens: %s: token 10, the vocabulary has 10", path);
    CHECK(tokenwriter_add(&writer, (int[]){-1}, 1) == -1, "-1 passes");
    CHECK_ERROR("tokens: %s: token -1, the vocabulary has 10", path);
    char temporary[1100];
    snprintf(temporary, sizeof temporary, "%s", writer.atomic.temporary);
    CHECK(file_exists(temporary), "%s is not where it was written", temporary);
    tokenwriter_abandon(&writer);
    CHECK(!file_exists(path) && !file_exists(temporary), "a file is left behind");
}

static void a_place_that_cannot_be_written(void) {
    TokenWriter writer;
    const char *path = scratch_path("no-such-directory");
    char below[700];
    snprintf(below, sizeof below, "%s/x.tokens", path);
    CHECK(tokenwriter_open(&writer, below, "test", 10, false, 0) == -1, "opened");
    CHECK_ERROR("%s: cannot create: No such file or directory", below);
}

/* Masked tokens are no targets, for every width, in the file and in a batch. */
static void masked_tokens_are_no_targets(int vocabulary, int width) {
    const int numbers[] = {5, -1 - 6, 7, 0, -1, vocabulary - 1, -vocabulary};
    static const int targets[] = {-1, 7, 0, -1};
    TokenWriter writer;
    Tokens tokens;
    const char *path = scratch_path("masked.tokens");
    CHECK(tokenwriter_open(&writer, path, "test", vocabulary, true, 0) == 0, "%s", error_message());
    CHECK(tokenwriter_add(&writer, (int[]){-1 - vocabulary}, 1) == -1, "a masked one passes");
    CHECK(tokenwriter_add(&writer, numbers, 7) == 0, "%s", error_message());
    CHECK(tokenwriter_commit(&writer) == 0, "%s", error_message());
    if (!CHECK(tokens_open(&tokens, path) == 0, "%s", error_message())) return;
    CHECK(tokens.width == width && tokens.masked, "%d bytes a token", tokens.width);
    for (size_t i = 0; i < 7; i++) {
        const int token = numbers[i] < 0 ? -1 - numbers[i] : numbers[i];
        CHECK(tokens_at(&tokens, i) == token, "token %zu is %d", i, tokens_at(&tokens, i));
        CHECK(tokens_is_target(&tokens, i) == (numbers[i] >= 0), "the mask of token %zu", i);
    }
    Dataset *dataset = tokens_dataset("test", tokens, 0, 7, 4, 0);
    Batch batch = batch_one(dataset, 0, 0);
    CHECK(memcmp(batch.targets, targets, sizeof targets) == 0, "%d %d %d %d", batch.targets[0],
          batch.targets[1], batch.targets[2], batch.targets[3]);
    CHECK(batch.tokens[1] == 6 && batch.tokens[3] == 0, "%d, %d", batch.tokens[1], batch.tokens[3]);
    CHECK(strcmp(dataset->tokenizer, "test") == 0, "made by \"%s\"", dataset->tokenizer);
    batch_free(&batch);
    dataset->free(dataset);
}

/* Of eleven tokens, in samples of two, only 3, 8 and 9 are targets: those of samples 1, 3 and 4. */
static void samples_without_targets_are_left_out(void) {
    static const int windows[] = {1, 3, 4};
    for (int limit = 0; limit <= 2; limit += 2) {
        TokenWriter writer;
        Tokens tokens;
        const char *path = scratch_path("sparse.tokens");
        CHECK(tokenwriter_open(&writer, path, "test", 20, true, 0) == 0, "%s", error_message());
        for (int i = 0; i < 11; i++)
            tokenwriter_add(&writer, (int[]){i == 3 || i == 8 || i == 9 ? i : -1 - i}, 1);
        CHECK(tokenwriter_commit(&writer) == 0, "%s", error_message());
        if (!CHECK(tokens_open(&tokens, path) == 0, "%s", error_message())) return;
        Dataset *dataset = tokens_dataset("test", tokens, 0, 11, 2, limit);
        if (!CHECK(dataset, "%s", error_message())) return;
        CHECK(dataset->samples == (limit ? limit : 3), "%d samples", dataset->samples);
        for (int id = 0; id < dataset->samples; id++) {
            Batch batch = batch_one(dataset, id, 0);
            CHECK(batch.tokens[0] == 2 * windows[id], "sample %d begins with token %d", id,
                  batch.tokens[0]);
            CHECK(batch.targets[0] >= 0 || batch.targets[1] >= 0, "sample %d has no target", id);
            batch_free(&batch);
        }
        dataset->free(dataset);
    }
    Tokens tokens;
    if (!CHECK(tokens_open(&tokens, scratch_path("sparse.tokens")) == 0, "%s", error_message()))
        return;
    CHECK(!tokens_dataset("test", tokens, 4, 8, 3, 0), "a part without targets passes");
    CHECK_ERROR("test: no token is a target of the loss");
}

static void prompts_are_masked(void) {
    masked_tokens_are_no_targets(10, 2);
    masked_tokens_are_no_targets(32768, 2);
    masked_tokens_are_no_targets(32769, 4);
}

/* A temporary file that a killed process left behind is overwritten, even if it is longer. */
static void left_temporary_file_is_overwritten(void) {
    enum { OLD = 5000 };
    static const unsigned char old[OLD];
    const int numbers[] = {1, 2, 3};
    TokenWriter writer;
    Tokens tokens;
    scratch_file("left.tokens.tmp", old, OLD);
    const char *path = scratch_path("left.tokens");
    CHECK(tokenwriter_open(&writer, path, "test", 10, false, 0) == 0, "%s", error_message());
    CHECK(tokenwriter_add(&writer, numbers, 3) == 0, "%s", error_message());
    CHECK(tokenwriter_commit(&writer) == 0, "%s", error_message());
    CHECK(!file_exists(scratch_path("left.tokens.tmp")), "left behind again");
    if (!CHECK(tokens_open(&tokens, path) == 0, "%s", error_message())) return;
    CHECK(tokens.count == 3, "%zu tokens", tokens.count);
    tokens_free(&tokens);
}

static void one_process_at_a_time_writes(void) {
    const int numbers[] = {1, 2, 3};
    TokenWriter first, second;
    const char *path = scratch_path("both.tokens");
    CHECK(tokenwriter_open(&first, path, "test", 10, false, 0) == 0, "%s", error_message());
    CHECK(tokenwriter_add(&first, numbers, 3) == 0, "%s", error_message());
    CHECK(tokenwriter_open(&second, path, "test", 10, false, 0) == -1, "both write");
    CHECK_ERROR("%s: another process is writing it", path);
    CHECK(tokenwriter_commit(&first) == 0 && file_exists(path), "%s", error_message());
    CHECK(tokenwriter_open(&second, path, "test", 10, false, 0) == 0, "%s", error_message());
    tokenwriter_abandon(&second);
}

/* A token file of the tokens 0 .. 9, vocabulary 10, with bytes changed or cut off. */
typedef struct {
    const char *what, *error;
    size_t size;  /* 0: all 84 bytes */
    size_t place; /* offset of the byte that is changed; 0: none */
    unsigned char value;
} Damage;

static const Damage damages[] = {
    {"whole", NULL, 0, 0, 0},
    {"no bytes", "not a token file; make one with `bcd tokenize`", 1, 0, 0},
    {"half a header", "not a token file; make one with `bcd tokenize`", 63, 0, 0},
    {"another file", "not a token file; make one with `bcd tokenize`", 0, 7, 'X'},
    {"newer version", "version 2, this program reads version 1; make it again", 0, 8, 2},
    {"odd width", "damaged header; make it again with `bcd tokenize`", 0, 12, 3},
    {"no vocabulary", "damaged header; make it again with `bcd tokenize`", 0, 32, 0},
    {"absurd vocabulary", "damaged header; make it again with `bcd tokenize`", 0, 35, 0x80},
    {"absurd mask", "damaged header; make it again with `bcd tokenize`", 0, 36, 2},
    {"no tokens behind the header",
     "0 bytes are not the 10 tokens of 2 bytes the header promises; make it again", 64, 0, 0},
    {"half a token", "19 bytes are not the 10 tokens of 2 bytes the header promises; make it again",
     83, 0, 0},
    {"absurd count",
     "20 bytes are not the 9223372036854775818 tokens of 2 bytes the header promises; make it "
     "again",
     0, 47, 0x80},
    {"token out of range", "token 9 is 10, the vocabulary has 10; make it again", 0, 82, 10},
    {"changed token", "damaged: the tokens do not match their checksum; make it again", 0, 64, 1},
    {"changed checksum", "damaged: the tokens do not match their checksum; make it again", 0, 48,
     1},
};

static void check_damage(const void *row) {
    const Damage *damage = row;
    unsigned char bytes[200];
    FILE *file = fopen(write_counting("damaged.tokens", 10, 10), "rb");
    size_t count = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    CHECK(count == 84, "%zu bytes", count);
    if (damage->place) {
        CHECK(bytes[damage->place] != damage->value, "nothing is changed");
        bytes[damage->place] = damage->value;
    }
    const char *path = scratch_file("damaged.tokens", bytes, damage->size ? damage->size : count);
    Tokens tokens;
    const int failed = tokens_open(&tokens, path);
    if (!damage->error) {
        CHECK(!failed, "%s", error_message());
        tokens_free(&tokens);
    } else if (CHECK(failed, "it passes")) {
        CHECK_ERROR("tokens: %s: %s", path, damage->error);
    }
    remove(path); /* since write_counting expects that it does not exist */
}

/* A mask is the highest of 16 bits, so that tokens have 15. */
static void masks_in_16_bits(void) {
    Tokens tokens;
    unsigned char bytes[TOKENFILE_HEADER + 2] = "BCDTOKEN\1\0\0\0\2";
    little_endian_put(bytes + 32, 4, 32769);
    little_endian_put(bytes + 36, 4, 1);
    CHECK(tokens_parse(&tokens, bytes, TOKENFILE_HEADER, "PATH") == -1, "it passes");
    CHECK_ERROR(
        "tokens: PATH: a vocabulary of 32769 leaves no bit of 16 for masks; write 32-bit tokens");
    little_endian_put(bytes + 32, 4, 32768);
    little_endian_put(bytes + 48, 8, CHECKSUM_START);
    CHECK(tokens_parse(&tokens, bytes, TOKENFILE_HEADER, "PATH") == 0, "%s", error_message());
}

static void write_into(const char *path, long place, char value) {
    FILE *file = fopen(path, "r+b");
    fseek(file, place, SEEK_SET);
    fputc(value, file);
    fclose(file);
}

/* What is written into a file that is in use is noticed; a file that replaces it is another one. */
static void a_file_that_is_written_into(void) {
    static const struct timespec past[2] = {{1, 0}, {1, 0}}, later[2] = {{2, 0}, {2, 0}};
    Tokens tokens;
    const char *path = write_counting("used.tokens", 5000, 5000);
    utimensat(AT_FDCWD, path, past, 0); /* clocks of files tick slowly */
    if (!CHECK(tokens_open(&tokens, path) == 0, "%s", error_message())) return;
    Dataset *set = tokens_dataset("used", tokens, 0, 5000, 10, 0);
    Dataset *memory = tokens_dataset("memory", counting_tokens(100, 100), 0, 100, 7, 0);
    CHECK(!tokens_unchanged(set) && !tokens_unchanged(memory), "%s", error_message());
    utimensat(AT_FDCWD, path, later, 0);
    CHECK(!tokens_unchanged(set), "another time: %s", error_message());
    write_into(path, TOKENFILE_HEADER + 6000, 1);
    CHECK(tokens_unchanged(set) == -1, "another token passes");
    CHECK_ERROR("used: its file was written to while it was in use; put back what it had");
    write_into(path, TOKENFILE_HEADER + 6000, (char)(3000 & 255));
    CHECK(!tokens_unchanged(set), "put back: %s", error_message());
    CHECK(truncate(path, 5000) == 0 && tokens_unchanged(set) == -1, "cut short");
    set->free(set);
    memory->free(memory);
    remove(path);
    path = write_counting("used.tokens", 5000, 5000);
    if (!CHECK(tokens_open(&tokens, path) == 0, "%s", error_message())) return;
    set = tokens_dataset("used", tokens, 0, 5000, 10, 0);
    remove(path);
    write_counting("used.tokens", 300, 300);
    CHECK(!tokens_unchanged(set), "replaced: %s", error_message());
    char copy[600];
    snprintf(copy, sizeof copy, "%s", write_counting("copy.tokens", 300, 300));
    CHECK(tokens_same(copy, path) && tokens_same(copy, copy), "a copy is another file");
    CHECK(!tokens_same(copy, scratch_path("absent.tokens")), "absent");
    CHECK(!tokens_same(copy, write_counting("more.tokens", 301, 301)), "other tokens");
    write_into(copy, 48, 1);
    CHECK(!tokens_same(copy, path), "as many other tokens");
    set->free(set);
}

static void no_file_and_no_regular_file(void) {
    Tokens tokens;
    char path[600];
    snprintf(path, sizeof path, "%s", scratch_path("absent.tokens"));
    CHECK(tokens_open(&tokens, path) == -1, "opened");
    CHECK_ERROR("tokens: %s: No such file or directory; make it with `bcd tokenize`", path);
    snprintf(path, sizeof path, "%s/a.tokens", scratch_text("file", ""));
    CHECK(tokens_open(&tokens, path) == -1, "opened below a file");
    CHECK_ERROR("tokens: %s: Not a directory",
                path); /* it is not missing, so no advice to make it */
    *strrchr(path, '/') = 0;
    *strrchr(path, '/') = 0;
    CHECK(tokens_open(&tokens, path) == -1, "opened a directory");
    CHECK_ERROR("tokens: %s: not a token file; make one with `bcd tokenize`", path);
    CHECK(tokens_open(&tokens, scratch_text("zero.tokens", "")) == -1, "opened an empty file");
}

void test_data_tokens(void) {
    RUN(windows_do_not_overlap_and_targets_are_one_on);
    RUN(just_enough_tokens);
    RUN(limit_takes_the_first);
    RUN(token_files_round_trip);
    RUN(the_layout_is_the_documented_one);
    RUN(a_wrong_token_leaves_no_file);
    RUN(prompts_are_masked);
    RUN(samples_without_targets_are_left_out);
    RUN(a_place_that_cannot_be_written);
    RUN(left_temporary_file_is_overwritten);
    RUN(one_process_at_a_time_writes);
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++)
        RUN_ROW(damages[i].what, check_damage, &damages[i]);
    RUN(masks_in_16_bits);
    RUN(a_file_that_is_written_into);
    RUN(no_file_and_no_regular_file);
}
