/* The tokenizer with one token for each byte, and the names of other programs' tokenizers. */
#include "tokenizer.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../ref/base/checksum.h"
#include "../ref/base/error.h"
#include "file.h"

static int bytes_encode(const Tokenizer *tokenizer, const char *text, size_t bytes, int **tokens,
                        size_t *count) {
    (void)tokenizer;
    int *grown = realloc(*tokens, (*count + bytes + 1) * sizeof *grown);
    if (!grown) return error_set("bytes: no memory for %zu tokens", *count + bytes);
    *tokens = grown;
    for (size_t i = 0; i < bytes; i++) grown[*count + i] = (unsigned char)text[i];
    *count += bytes;
    return 0;
}

static char every_byte[256];

static const char *bytes_decode(const Tokenizer *tokenizer, int token, size_t *bytes) {
    (void)tokenizer;
    *bytes = token >= 0 && token < 256;
    return every_byte + (*bytes ? token : 0);
}

Tokenizer *tokenizer_bytes(void) {
    for (int i = 0; i < 256; i++) every_byte[i] = (char)i;
    static Tokenizer bytes = {"bytes", 256, -1, bytes_encode, bytes_decode, NULL};
    return &bytes;
}

void tokenizer_free(Tokenizer *tokenizer) {
    if (tokenizer && tokenizer->free) tokenizer->free(tokenizer);
}

const char *const tokenizer_files[TOKENIZER_FILES] = {"tokenizer.json", "tokenizer.model"};

int tokenizer_fingerprint(char name[TOKENIZER_NAME], const char *path) {
    size_t bytes;
    unsigned char *data = file_read("tokenizer", path, "it belongs to the model", &bytes);
    if (!data) return -1;
    if (strncmp((char *)data, "version https://git-lfs", 23) == 0) {
        free(data);
        return error_set("%s: is a pointer of Git LFS, not the tokenizer; type: git lfs pull",
                         path);
    }
    const uint64_t sum = checksum_bytes(CHECKSUM_START, data, bytes);
    snprintf(name, TOKENIZER_NAME, "hf:%012llx", (unsigned long long)sum & 0xFFFFFFFFFFFF);
    free(data);
    return 0;
}

int tokenizer_of_model(char name[TOKENIZER_NAME], const char *dir) {
    char path[PATH_BYTES];
    for (int i = 0; i < TOKENIZER_FILES; i++) {
        if (path_join(path, dir, tokenizer_files[i])) return -1;
        if (access(path, F_OK) == 0) return tokenizer_fingerprint(name, path);
    }
    if (path_join(path, dir, "vocab.json")) return -1;
    return error_set("%s: neither tokenizer.json nor tokenizer.model is there%s", dir,
                     access(path, F_OK) ? ""
                                        : "; of vocab.json one is made by: python3 -c \"from "
                                          "transformers import AutoTokenizer as T; "
                                          "T.from_pretrained('DIR').save_pretrained('DIR')\"");
}

int tokenizer_check(const char *dir, const char *name) {
    char path[PATH_BYTES], own[TOKENIZER_NAME] = "";
    if (strncmp(name, "hf:", 3) != 0) return 0;
    for (int i = 0; i < TOKENIZER_FILES; i++) {
        if (path_join(path, dir, tokenizer_files[i])) return -1;
        if (access(path, F_OK)) continue;
        if (tokenizer_fingerprint(own, path)) return -1;
        if (strcmp(own, name) == 0) return 0;
    }
    if (!*own) return 0;
    return error_set("%s: its tokenizer is not %s any more, which made the tokens of the run", dir,
                     name);
}

int tokenizer_part(const char *name) {
    const char *colon = strchr(name, ':');
    int number, used = 0;
    if (!colon) return 0;
    return sscanf(colon + 1, "%6d%n", &number, &used) == 1 && !colon[1 + used] && number > 0
               ? number
               : -1;
}
