#include "data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../ref/base/error.h"
#include "file.h"
#include "images.h"
#include "textset.h"
#include "tokens.h"

/* ---- data: request->dir is where the data sets are ---- */

static Dataset *open_synthetic(const DataRequest *request) {
    const bool training = request->split == SPLIT_TRAIN;
    int samples = training ? SYNTHETIC_TRAIN : SYNTHETIC_TEST;
    Images images;
    if (request->limit > 0 && request->limit < samples) samples = request->limit;
    if (synthetic_generate(&images, samples, request->split, request->seed)) return NULL;
    return images_dataset(request->name, images, &synthetic_normalisation,
                          request->augment && training, request->seed, request->limit);
}

static Dataset *open_cifar(const DataRequest *request) {
    const CifarKind kind = strcmp(request->name, "cifar100") == 0 ? CIFAR_100 : CIFAR_10;
    const bool training = request->split == SPLIT_TRAIN;
    const bool holdout =
        strcmp(request->name, "cifar10-holdout") == 0 && request->split != SPLIT_TEST;
    Images images;
    if (cifar_load(&images, kind, request->dir, holdout ? SPLIT_TRAIN : request->split))
        return NULL;
    if (holdout) images_hold_out(&images, CIFAR_HELD_OUT, training);
    return images_dataset(request->name, images, &cifar_normalisation[kind],
                          request->augment && training, request->seed, request->limit);
}

static Dataset *open_file(const DataRequest *request) {
    return textset_file(request, request->name);
}

#define WEBTEXT2 "webtext2.tokens"

static Dataset *open_webtext2(const DataRequest *request) {
    char path[PATH_BYTES];
    if (path_join(path, request->dir, WEBTEXT2)) return NULL;
    if (access(path, R_OK) == 0) return textset_file(request, path);
    return error_null(
        "webtext2: %s does not exist; make it from a copy of WebText2 with bcd tokenize", path);
}

/* ---- tokenizers ---- */

/* Opens GPT-2's tokenizer; `name` may end in ":N". */
static Tokenizer *gpt2_tokenizer(const char *name, const char *dir) {
    char path[PATH_BYTES];
    return path_join(path, dir, "gpt2-bpe") ? NULL : tokenizer_gpt2(path, tokenizer_part(name));
}

/* Opens the tokenizer of bytes, or for NAME:N GPT-2's. */
static Tokenizer *text_tokenizer(const char *name, const char *dir) {
    return tokenizer_part(name) ? gpt2_tokenizer(name, dir) : tokenizer_bytes();
}

static Tokenizer *named_tokenizer(const char *name, const char *dir) {
    if (strcmp(name, "bytes") == 0) return tokenizer_bytes();
    if (strcspn(name, ":") == 4 && strncmp(name, "gpt2", 4) == 0 && tokenizer_part(name) >= 0)
        return gpt2_tokenizer(name, dir);
    return error_null("the tokenizer \"%s\" is not known; only bytes and gpt2 are", name);
}

/* Opens the tokenizer that a token file names. */
static Tokenizer *file_tokenizer(const char *path, const char *dir) {
    Tokens tokens;
    if (tokens_open(&tokens, path)) return NULL;
    Tokenizer *tokenizer = named_tokenizer(tokens.tokenizer, dir);
    tokens_free(&tokens);
    return tokenizer ? tokenizer : error_null("data: %s: %s", path, error_message());
}

static Tokenizer *webtext2_tokenizer(const char *name, const char *dir) {
    (void)name;
    char path[PATH_BYTES];
    return path_join(path, dir, WEBTEXT2) ? NULL : file_tokenizer(path, dir);
}

/* ---- the table ---- */

#define CIFAR_10_FILE "cifar-10-batches-bin/data_batch_1.bin"

const DataSet data_sets[] = {
    {"synthetic", false, NULL, "images", open_synthetic, NULL},
    {"text", false, NULL, "this project's sources", textset_sources, text_tokenizer},
    {"text1", false, NULL, "their first half", textset_sources, text_tokenizer},
    {"text2", false, NULL, "the second one", textset_sources, text_tokenizer},
    {"cifar10", false, CIFAR_10_FILE, NULL, open_cifar, NULL},
    {"cifar10-holdout", false, CIFAR_10_FILE, "validated on 5,000 training images", open_cifar,
     NULL},
    {"cifar100", false, "cifar-100-binary/train.bin", NULL, open_cifar, NULL},
    {"shakespeare", true, "tinyshakespeare.txt", NULL, textset_shakespeare, text_tokenizer},
    {"wikitext2", true, "wikitext-2/train.txt",
     ":N is only the first N tokens of GPT-2's vocabulary", textset_wikitext2, gpt2_tokenizer},
    {"webtext2", false, WEBTEXT2, NULL, open_webtext2, webtext2_tokenizer},
    {.name = NULL},
};
static const DataSet token_file = {
    .name = "FILE.tokens", .open = open_file, .tokenizer = file_tokenizer};

static bool is_named(const DataSet *set, const char *name) {
    const size_t stem = strcspn(name, ":");
    return strncmp(name, set->name, stem) == 0 && !set->name[stem] &&
           (!name[stem] || (set->in_tokens && tokenizer_part(name) > 0));
}

bool data_is_file(const char *name) {
    const size_t length = strlen(name), ending = strlen(".tokens");
    return length > ending && strcmp(name + length - ending, ".tokens") == 0;
}

/* Returns the row of a data set, or NULL and an error that lists the names. */
static const DataSet *find_set(const char *name) {
    for (const DataSet *set = data_sets; set->name; set++)
        if (is_named(set, name)) return set;
    struct stat status;
    if (data_is_file(name)) return &token_file;
    if (stat(name, &status) == 0 && S_ISDIR(status.st_mode))
        return error_null(
            "data: %s is a directory, and no folders of files or images are read; of text, bcd "
            "tokenize makes a FILE.tokens",
            name);
    if (access(name, F_OK) == 0)
        return error_null("data: %s holds no tokens; type: bcd tokenize '%s' --tokenizer DIR", name,
                          name);
    char names[256] = "";
    for (const DataSet *set = data_sets; set->name; set++) {
        const size_t length = strlen(names);
        snprintf(names + length, sizeof names - length, set->in_tokens ? "%s, %s:N, " : "%s, ",
                 set->name, set->name);
    }
    return error_null("data: no data set \"%s\"; there are %sand token files FILE.tokens", name,
                      names);
}

static const char *directory(const char *dir) {
    if (!dir) dir = getenv("BCD_DATA");
    return dir && *dir ? dir : "datasets";
}

int data_is_tokens(const char *name) {
    const DataSet *set = find_set(name);
    return set ? set->tokenizer != NULL : -1;
}

Dataset *data_open(const DataRequest *request) {
    const DataSet *set = find_set(request->name);
    DataRequest found = *request;
    found.dir = directory(request->dir);
    return set ? set->open(&found) : NULL;
}

Tokenizer *data_named_tokenizer(const char *tokenizer, const char *dir) {
    return named_tokenizer(tokenizer, directory(dir));
}

Tokenizer *data_tokenizer(const char *name, const char *dir) {
    const DataSet *set = find_set(name);
    if (!set) return NULL;
    if (set->tokenizer) return set->tokenizer(name, directory(dir));
    return error_null("data: %s is a set of images and has no tokenizer", name);
}
