#include "data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../ref/error.h"
#include "cifar.h"
#include "file.h"
#include "synthetic.h"
#include "textset.h"
#include "tokens.h"

typedef enum {
    SET_SYNTHETIC,
    SET_CIFAR10,
    SET_CIFAR100,
    SET_TEXT,
    SET_TEXT1,
    SET_TEXT2,
    SET_SHAKESPEARE,
    SET_WIKITEXT2,
    SET_WEBTEXT2,
    SET_FILE
} Set;

static const char *const names[] = {"synthetic", "cifar10",     "cifar100",  "text",    "text1",
                                    "text2",     "shakespeare", "wikitext2", "webtext2"};

int data_vocabulary(const char *name) {
    const char *colon = strchr(name, ':');
    int number, used = 0;
    if (!colon) return 0;
    return sscanf(colon + 1, "%6d%n", &number, &used) == 1 && !colon[1 + used] && number > 0
               ? number
               : -1;
}

/* -1 and an error if there is no such set. */
static int find_set(const char *name) {
    const size_t stem = strcspn(name, ":");
    for (int i = 0; i < SET_FILE; i++) {
        const bool in_tokens = i == SET_SHAKESPEARE || i == SET_WIKITEXT2;
        if (strncmp(name, names[i], stem) == 0 && !names[i][stem] &&
            (!name[stem] || (in_tokens && data_vocabulary(name) > 0)))
            return i;
    }
    const size_t length = strlen(name), ending = strlen(".tokens");
    if (length > ending && strcmp(name + length - ending, ".tokens") == 0) return SET_FILE;
    return error_set(
        "data: no data set \"%s\"; there are synthetic, cifar10, cifar100, text, "
        "text1, text2, shakespeare, wikitext2, shakespeare:N and wikitext2:N in N tokens, "
        "webtext2, and token files FILE.tokens",
        name);
}

static const char *directory(const char *dir) {
    if (!dir) dir = getenv("BCD_DATA");
    return dir && *dir ? dir : "datasets";
}

int data_is_tokens(const char *name) {
    const int set = find_set(name);
    return set < 0 ? -1 : set >= SET_TEXT;
}

bool data_present(const char *name, const char *dir) {
    static const char *const files[] = {[SET_CIFAR10] = "cifar-10-batches-bin/data_batch_1.bin",
                                        [SET_CIFAR100] = "cifar-100-binary/train.bin",
                                        [SET_SHAKESPEARE] = "tinyshakespeare.txt",
                                        [SET_WIKITEXT2] = "wikitext-2/train.txt",
                                        [SET_WEBTEXT2] = "webtext2.tokens",
                                        [SET_FILE] = NULL};
    char path[PATH_BYTES];
    const int set = find_set(name);
    if (set == SET_FILE) return access(name, R_OK) == 0;
    if (set < 0 || !files[set]) return set >= 0;
    return !path_join(path, directory(dir), files[set]) && access(path, R_OK) == 0;
}

static Dataset *open_images(const DataRequest *request, Set set, const char *dir) {
    const bool training = request->split == SPLIT_TRAIN;
    const Normalisation *normalisation = &synthetic_normalisation;
    Images images;
    int failed;
    if (set == SET_SYNTHETIC) {
        int samples = training ? SYNTHETIC_TRAIN : SYNTHETIC_TEST;
        if (request->limit > 0 && request->limit < samples) samples = request->limit;
        failed = synthetic_generate(&images, samples, request->split, request->seed);
    } else {
        const CifarKind kind = set == SET_CIFAR10 ? CIFAR_10 : CIFAR_100;
        normalisation = &cifar_normalisation[kind];
        failed = cifar_load(&images, kind, dir, request->split);
    }
    return failed ? NULL
                  : images_dataset(request->name, images, normalisation,
                                   request->augment && training, request->seed, request->limit);
}

Dataset *data_open(const DataRequest *request) {
    const char *dir = directory(request->dir);
    const int set = find_set(request->name);
    switch (set) {
        case SET_SYNTHETIC:
        case SET_CIFAR10:
        case SET_CIFAR100:
            return open_images(request, (Set)set, dir);
        case SET_TEXT:
        case SET_TEXT1:
        case SET_TEXT2:
            return textset_sources(request);
        case SET_SHAKESPEARE:
            return textset_shakespeare(request, dir);
        case SET_WIKITEXT2:
            return textset_wikitext2(request, dir);
        case SET_WEBTEXT2:
            return textset_webtext2(request, dir);
        case SET_FILE:
            return textset_file(request, request->name);
        default:
            return NULL;
    }
}

static Tokenizer *open_gpt2(const char *dir, int vocabulary) {
    char path[PATH_BYTES];
    return path_join(path, dir, "gpt2-bpe") ? NULL : tokenizer_gpt2(path, vocabulary);
}

Tokenizer *data_tokenizer(const char *name, const char *dir) {
    const int set = find_set(name);
    if (set < 0) return NULL;
    if ((set >= SET_TEXT && set < SET_SHAKESPEARE) || strcmp(name, "shakespeare") == 0)
        return tokenizer_bytes();
    if (set == SET_SHAKESPEARE || set == SET_WIKITEXT2)
        return open_gpt2(directory(dir), data_vocabulary(name));
    if (set < SET_WEBTEXT2) {
        error_set("data: %s is a set of images and has no tokenizer", name);
        return NULL;
    }
    char path[PATH_BYTES];
    Tokens tokens;
    if (set == SET_WEBTEXT2 && path_join(path, directory(dir), "webtext2.tokens")) return NULL;
    if (tokens_open(&tokens, set == SET_WEBTEXT2 ? path : name)) return NULL;
    Tokenizer *tokenizer = NULL;
    if (strcmp(tokens.tokenizer, "bytes") == 0)
        tokenizer = tokenizer_bytes();
    else if (strcmp(tokens.tokenizer, "gpt2") == 0 ||
             (strncmp(tokens.tokenizer, "gpt2:", 5) == 0 && data_vocabulary(tokens.tokenizer) > 0))
        tokenizer = open_gpt2(directory(dir), data_vocabulary(tokens.tokenizer));
    else
        error_set("data: %s: made with the tokenizer \"%s\"; there are bytes and gpt2", name,
                  tokens.tokenizer);
    tokens_free(&tokens);
    return tokenizer;
}
