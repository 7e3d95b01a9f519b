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

/* The arguments of the functions in the table below. */
typedef struct {
    const DataRequest *request; /* NULL to open a tokenizer */
    const char *name, *dir;
    int vocabulary; /* N of NAME:N, or 0 */
    int variant;    /* see DataSet */
} DataSource;

/* ---- data ---- */

static Dataset *open_synthetic(const DataSource *from) {
    const DataRequest *request = from->request;
    const bool training = request->split == SPLIT_TRAIN;
    int samples = training ? SYNTHETIC_TRAIN : SYNTHETIC_TEST;
    Images images;
    if (request->limit > 0 && request->limit < samples) samples = request->limit;
    if (synthetic_generate(&images, samples, request->split, request->seed)) return NULL;
    return images_dataset(request->name, images, &synthetic_normalisation,
                          request->augment && training, request->seed, request->limit);
}

static Dataset *open_cifar(const DataSource *from) {
    const CifarKind kind = (CifarKind)from->variant;
    const DataRequest *request = from->request;
    Images images;
    if (cifar_load(&images, kind, from->dir, request->split)) return NULL;
    return images_dataset(request->name, images, &cifar_normalisation[kind],
                          request->augment && request->split == SPLIT_TRAIN, request->seed,
                          request->limit);
}

static Dataset *open_text(const DataSource *from) {
    return textset_sources(from->request, from->variant);
}

static Dataset *open_file(const DataSource *from) {
    return textset_file(from->request, from->name);
}

static Dataset *open_shakespeare(const DataSource *from) {
    return textset_shakespeare(from->request, from->dir, from->vocabulary);
}

static Dataset *open_wikitext2(const DataSource *from) {
    return textset_wikitext2(from->request, from->dir, from->vocabulary);
}

static Dataset *open_webtext2(const DataSource *from) {
    char path[PATH_BYTES];
    if (path_join(path, from->dir, "webtext2.tokens")) return NULL;
    if (access(path, R_OK) == 0) return textset_file(from->request, path);
    error_set("webtext2: %s is not there: bcd tokenize makes it of a copy of WebText2", path);
    return NULL;
}

/* ---- tokenizers ---- */

static Tokenizer *bytes_tokenizer(const DataSource *from) {
    (void)from;
    return tokenizer_bytes();
}

static Tokenizer *gpt2_tokenizer(const DataSource *from) {
    char path[PATH_BYTES];
    return path_join(path, from->dir, "gpt2-bpe") ? NULL : tokenizer_gpt2(path, from->vocabulary);
}

static Tokenizer *shakespeare_tokenizer(const DataSource *from) {
    return from->vocabulary ? gpt2_tokenizer(from) : tokenizer_bytes();
}

/* Opens the tokenizer that a token file names. */
static Tokenizer *file_tokenizer(const DataSource *from) {
    Tokens tokens;
    Tokenizer *tokenizer = NULL;
    if (tokens_open(&tokens, from->name)) return NULL;
    const DataSource named = {.dir = from->dir, .vocabulary = data_vocabulary(tokens.tokenizer)};
    if (strcmp(tokens.tokenizer, "bytes") == 0)
        tokenizer = tokenizer_bytes();
    else if (strncmp(tokens.tokenizer, "gpt2", strcspn(tokens.tokenizer, ":")) == 0 &&
             named.vocabulary >= 0)
        tokenizer = gpt2_tokenizer(&named);
    else
        error_set("data: %s: made with the tokenizer \"%s\"; there are bytes and gpt2", from->name,
                  tokens.tokenizer);
    tokens_free(&tokens);
    return tokenizer;
}

static Tokenizer *webtext2_tokenizer(const DataSource *from) {
    char path[PATH_BYTES];
    if (path_join(path, from->dir, "webtext2.tokens")) return NULL;
    return file_tokenizer(&(DataSource){.name = path, .dir = from->dir});
}

/* ---- the table ---- */

typedef struct {
    const char *name;
    const char *file; /* a file that it needs, in the directory of the data sets; NULL: none */
    bool in_tokens;   /* NAME:N exists as well, in the first N of GPT-2's tokens */
    Dataset *(*open)(const DataSource *from);
    Tokenizer *(*tokenizer)(const DataSource *from); /* NULL: images */
    int variant; /* CIFAR: its CifarKind; text: all of it, or which half */
} DataSet;

static const DataSet sets[] = {
    {"synthetic", NULL, false, open_synthetic, NULL, 0},
    {"cifar10", "cifar-10-batches-bin/data_batch_1.bin", false, open_cifar, NULL, CIFAR_10},
    {"cifar100", "cifar-100-binary/train.bin", false, open_cifar, NULL, CIFAR_100},
    {"text", NULL, false, open_text, bytes_tokenizer, 0},
    {"text1", NULL, false, open_text, bytes_tokenizer, 1},
    {"text2", NULL, false, open_text, bytes_tokenizer, 2},
    {"shakespeare", "tinyshakespeare.txt", true, open_shakespeare, shakespeare_tokenizer, 0},
    {"wikitext2", "wikitext-2/train.txt", true, open_wikitext2, gpt2_tokenizer, 0},
    {"webtext2", "webtext2.tokens", false, open_webtext2, webtext2_tokenizer, 0},
};
static const DataSet token_file = {"FILE.tokens", NULL, false, open_file, file_tokenizer, 0};

int data_vocabulary(const char *name) {
    const char *colon = strchr(name, ':');
    int number, used = 0;
    if (!colon) return 0;
    return sscanf(colon + 1, "%6d%n", &number, &used) == 1 && !colon[1 + used] && number > 0
               ? number
               : -1;
}

static bool is_named(const DataSet *set, const char *name) {
    const size_t stem = strcspn(name, ":");
    return strncmp(name, set->name, stem) == 0 && !set->name[stem] &&
           (!name[stem] || (set->in_tokens && data_vocabulary(name) > 0));
}

/* Returns the row of a data set, or NULL and an error that lists the names. */
static const DataSet *find_set(const char *name) {
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
        if (is_named(&sets[i], name)) return &sets[i];
    const size_t length = strlen(name), ending = strlen(".tokens");
    if (length > ending && strcmp(name + length - ending, ".tokens") == 0) return &token_file;
    error_set(
        "data: no data set \"%s\"; there are synthetic, cifar10, cifar100, text, "
        "text1, text2, shakespeare, wikitext2, shakespeare:N and wikitext2:N in N tokens, "
        "webtext2, and token files FILE.tokens",
        name);
    return NULL;
}

static const char *directory(const char *dir) {
    if (!dir) dir = getenv("BCD_DATA");
    return dir && *dir ? dir : "datasets";
}

int data_is_tokens(const char *name) {
    const DataSet *set = find_set(name);
    return set ? set->tokenizer != NULL : -1;
}

bool data_present(const char *name, const char *dir) {
    char path[PATH_BYTES];
    const DataSet *set = find_set(name);
    if (set == &token_file) return access(name, R_OK) == 0;
    if (!set || !set->file) return set != NULL;
    return !path_join(path, directory(dir), set->file) && access(path, R_OK) == 0;
}

static DataSource source_of(const DataSet *set, const DataRequest *request, const char *name,
                            const char *dir) {
    return (DataSource){request, name, directory(dir), data_vocabulary(name), set->variant};
}

Dataset *data_open(const DataRequest *request) {
    const DataSet *set = find_set(request->name);
    if (!set) return NULL;
    const DataSource from = source_of(set, request, request->name, request->dir);
    return set->open(&from);
}

Tokenizer *data_tokenizer(const char *name, const char *dir) {
    const DataSet *set = find_set(name);
    if (!set) return NULL;
    const DataSource from = source_of(set, NULL, name, dir);
    if (set->tokenizer) return set->tokenizer(&from);
    error_set("data: %s is a set of images and has no tokenizer", name);
    return NULL;
}
