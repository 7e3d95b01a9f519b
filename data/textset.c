#include "textset.h"

#include <errno.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../ref/base/checksum.h"
#include "../ref/base/error.h"
#include "file.h"
#include "tokens.h"

#ifndef BCD_SOURCE_DIR
#error "the Makefile defines BCD_SOURCE_DIR, the root of the source tree"
#endif

/* ---- the project's own sources ---- */

/* Listed, so that builds, results and data in the tree are not read. */
static const char *const directories[] = {"cuda", "data",  "dist", "experiments",
                                          "ref",  "tests", NULL};
static const char *const endings[] = {".c", ".h", ".cu", ".md", NULL};

static bool is_in(const char *const *list, const char *text) {
    while (*list && strcmp(*list, text) != 0) list++;
    return *list;
}

/* Compares bytes, where strcoll would follow the user's language.  In the root, files come before
 * directories. */
static int by_name(const FTSENT **a, const FTSENT **b) {
    const bool a_is_directory = (*a)->fts_info == FTS_D, b_is_directory = (*b)->fts_info == FTS_D;
    if ((*a)->fts_level == 1 && a_is_directory != b_is_directory) return a_is_directory ? 1 : -1;
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

static int append_file(FILE *text, const char *path) {
    size_t bytes;
    unsigned char *data = file_read("text", path, "check that it can be read", &bytes);
    if (!data) return -1;
    const bool written = fwrite(data, 1, bytes, text) == bytes;
    free(data);
    return written ? 0 : error_set("text: no memory for %s", path);
}

static int append_tree(FILE *text, const char *root) {
    char *const roots[] = {(char *)root, NULL};
    FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, by_name);
    if (!tree) return error_set("text: no memory to search %s", root);
    FTSENT *entry;
    int failed = 0;
    errno = 0; /* by which the end differs from an error */
    while (!failed && (entry = fts_read(tree))) {
        const int info = entry->fts_info;
        const bool missing = entry->fts_level == 0 && entry->fts_errno == ENOENT; /* said below */
        if (!missing && (info == FTS_DNR || info == FTS_ERR || info == FTS_NS))
            failed = error_set("text: %s: %s", entry->fts_path, strerror(entry->fts_errno));
        const char *name = entry->fts_name, *dot = strrchr(name, '.');
        const bool hidden = entry->fts_level > 0 && name[0] == '.';
        if (entry->fts_info == FTS_D &&
            (hidden || (entry->fts_level == 1 && !is_in(directories, name))))
            fts_set(tree, entry, FTS_SKIP);
        if (entry->fts_info == FTS_F && !hidden && dot && is_in(endings, dot))
            failed = append_file(text, entry->fts_path);
        errno = 0;
    }
    if (!failed && errno) failed = error_set("text: %s: %s", root, strerror(errno));
    fts_close(tree);
    return failed;
}

unsigned char *sources_read(const char *root, size_t *bytes) {
    char *text = NULL;
    FILE *stream = open_memstream(&text, bytes);
    int failed = stream ? append_tree(stream, root) : -1;
    if (!stream || fclose(stream) || !text)
        failed = error_set("text: no memory for the sources");
    else if (!failed && *bytes == 0)
        failed =
            error_set("text: no sources in %s, where the program was built; build it again", root);
    if (!failed) return (unsigned char *)text;
    free(text);
    return NULL;
}

/* ---- data sets ---- */

/* Opens the requested split of tokens [begin, end), of which the last tenth is held out. */
static Dataset *open_part(const DataRequest *request, Tokens tokens, size_t begin, size_t end,
                          size_t max_held_out) {
    if (request->split == SPLIT_TEST && !request->whole) {
        tokens_free(&tokens);
        return error_null("%s: a text without a test split; its last tenth is the validation split",
                          request->name);
    }
    const size_t tenth = (end - begin) / 10;
    size_t cut = end - (tenth < max_held_out ? tenth : max_held_out);
    if (tokens.context) cut -= (cut - begin) % (size_t)tokens.context;
    /* Of windows the last one has a token that follows it. */
    if (!request->whole && request->split == SPLIT_TRAIN) end = cut + (tokens.context ? 1 : 0);
    if (!request->whole && request->split != SPLIT_TRAIN) begin = cut;
    Dataset *set =
        tokens_dataset(request->name, tokens, begin, end, request->context, request->limit);
    if (set || request->whole) return set;
    return error_null("%s; %s the last tenth, held out for validation unless --valid names a file",
                      error_message(),
                      request->split == SPLIT_TRAIN ? "this is without" : "this is");
}

Dataset *textset_sources(const DataRequest *request) {
    const int half = atoi(request->name + strlen("text"));
    size_t count;
    unsigned char *text = sources_read(BCD_SOURCE_DIR, &count);
    const size_t begin = half == 2 ? count / 2 : 0, end = half == 1 ? count / 2 : count;
    return text ? open_part(request, tokens_of_bytes(text, count), begin, end, SIZE_MAX) : NULL;
}

Dataset *textset_file(const DataRequest *request, const char *path) {
    Tokens tokens;
    if (tokens_open(&tokens, path)) return NULL;
    if (tokens.context && request->context % tokens.context) {
        const int context = tokens.context;
        tokens_free(&tokens);
        return error_null(
            "%s: its records are whole in windows of %d tokens, and a context of %d would cut them",
            path, context, request->context);
    }
    return open_part(request, tokens, 0, tokens.count, 1000000);
}

/* Encodes text[count] into *tokens, and keeps them in the file `path` if that can be written. */
static int encode_text(Tokens *tokens, const Tokenizer *tokenizer, const unsigned char *text,
                       size_t count, const char *path, uint64_t source) {
    int *numbers = NULL;
    size_t length = 0;
    int failed = tokenizer->encode(tokenizer, (const char *)text, count, &numbers, &length);
    if (!failed)
        failed = tokens_pack(tokens, numbers, length, tokenizer->name, tokenizer->vocabulary);
    TokenWriter writer;
    if (!failed &&
        !tokenwriter_open(&writer, path, tokenizer->name, tokenizer->vocabulary, false, source)) {
        /* The file is only a cache: failing to write it, on a full disk for example, is no
         * error. */
        if (tokenwriter_add(&writer, numbers, length))
            tokenwriter_abandon(&writer);
        else
            tokenwriter_commit(&writer);
    }
    free(numbers);
    return failed;
}

/* Computes a checksum of what the tokens depend on: the text and the vocabulary. */
static int source_checksum(uint64_t *sum, const char *dir, const unsigned char *text,
                           size_t count) {
    char path[PATH_BYTES];
    size_t bytes;
    if (path_join(path, dir, "gpt2-bpe/vocab.bpe")) return -1;
    unsigned char *merges = file_read_set("gpt2", path, &bytes);
    if (!merges) return -1;
    *sum = checksum_bytes(CHECKSUM_START, text, count);
    *sum = checksum_bytes(*sum, merges, bytes);
    free(merges);
    return 0;
}

/* Loads DIR/STEM.txt in the first `size` of GPT-2's tokens, or in all if size is 0.  The tokens are
 * kept in DIR/STEM.gpt2[-size].tokens. */
static int load_gpt2(Tokens *tokens, const char *set, const char *dir, const char *stem, int size) {
    char name[64], part[16] = "", path[PATH_BYTES], kept[PATH_BYTES], vocabulary[PATH_BYTES];
    size_t count;
    uint64_t source;
    snprintf(name, sizeof name, "%s.txt", stem);
    if (path_join(path, dir, name) || path_join(vocabulary, dir, "gpt2-bpe")) return -1;
    if (size) snprintf(part, sizeof part, "-%d", size);
    snprintf(name, sizeof name, "%s.gpt2%s.tokens", stem, part);
    if (path_join(kept, dir, name)) return -1;
    unsigned char *text = file_read_set(set, path, &count);
    if (!text) return -1;
    int failed = source_checksum(&source, dir, text, count);
    if (!failed && tokens_open(tokens, kept) == 0) {
        if (tokens->source == source) {
            free(text);
            return 0;
        }
        tokens_free(tokens);
    }
    Tokenizer *tokenizer = failed ? NULL : tokenizer_gpt2(vocabulary, size);
    failed = !tokenizer || encode_text(tokens, tokenizer, text, count, kept, source);
    tokenizer_free(tokenizer);
    free(text);
    return failed ? -1 : 0;
}

static Dataset *shakespeare_bytes(const DataRequest *request) {
    char path[PATH_BYTES];
    size_t count;
    if (path_join(path, request->dir, "tinyshakespeare.txt")) return NULL;
    unsigned char *text = file_read_set("shakespeare", path, &count);
    return text ? open_part(request, tokens_of_bytes(text, count), 0, count, SIZE_MAX) : NULL;
}

Dataset *textset_shakespeare(const DataRequest *request) {
    const int size = tokenizer_part(request->name);
    Tokens tokens;
    if (!size) return shakespeare_bytes(request);
    if (load_gpt2(&tokens, "shakespeare", request->dir, "tinyshakespeare", size)) return NULL;
    return open_part(request, tokens, 0, tokens.count, SIZE_MAX);
}

Dataset *textset_wikitext2(const DataRequest *request) {
    static const char *const stems[] = {"wikitext-2/train", "wikitext-2/valid", "wikitext-2/test"};
    Tokens tokens;
    if (load_gpt2(&tokens, "wikitext2", request->dir, stems[request->split],
                  tokenizer_part(request->name)))
        return NULL;
    return tokens_dataset(request->name, tokens, 0, tokens.count, request->context, request->limit);
}
