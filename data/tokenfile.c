/* Reading and writing token files; tokens.h has the format. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../ref/base/checksum.h"
#include "../ref/base/error.h"
#include "tokens.h"

static const char magic[8] = {'B', 'C', 'D', 'T', 'O', 'K', 'E', 'N'};
enum { VERSION = 1 };

static int parse_header(Tokens *tokens, const unsigned char *bytes, size_t count,
                        const char *path) {
    if (count < TOKENFILE_HEADER || memcmp(bytes, magic, sizeof magic) != 0)
        return error_set("tokens: %s: not a token file; make one with `bcd tokenize`", path);
    const uint64_t version = little_endian_get(bytes + 8, 4),
                   width = little_endian_get(bytes + 12, 4);
    const uint64_t vocabulary = little_endian_get(bytes + 32, 4),
                   flags = little_endian_get(bytes + 36, 4), masked = flags & 1,
                   context = flags >> 1, numbers = little_endian_get(bytes + 40, 8);
    if (version != VERSION)
        return error_set("tokens: %s: version %u, this program reads version %d; make it again",
                         path, (unsigned)version, VERSION);
    if (width == 2 && masked == 1 && vocabulary > 1 << 15)
        return error_set(
            "tokens: %s: a vocabulary of %u leaves no bit of 16 for masks; write 32-bit tokens",
            path, (unsigned)vocabulary);
    if ((width != 2 && width != 4) || vocabulary < 1 || vocabulary > INT32_MAX ||
        (context && !masked) || memchr(bytes + 16, 0, TOKENIZER_NAME) == NULL)
        return error_set("tokens: %s: damaged header; make it again with `bcd tokenize`", path);
    if ((count - TOKENFILE_HEADER) / width != numbers || (count - TOKENFILE_HEADER) % width != 0)
        return error_set(
            "tokens: %s: %zu bytes are not the %llu tokens of %d bytes the header "
            "promises; make it again",
            path, count - TOKENFILE_HEADER, (unsigned long long)numbers, (int)width);
    *tokens = (Tokens){.data = bytes + TOKENFILE_HEADER,
                       .count = (size_t)numbers,
                       .width = (int)width,
                       .vocabulary = (int)vocabulary,
                       .masked = masked == 1,
                       .context = (int)context,
                       .checksum = little_endian_get(bytes + 48, 8),
                       .source = little_endian_get(bytes + 56, 8)};
    memcpy(tokens->tokenizer, bytes + 16, TOKENIZER_NAME);
    return 0;
}

int tokens_parse(Tokens *tokens, const unsigned char *bytes, size_t count, const char *path) {
    if (parse_header(tokens, bytes, count, path)) return -1;
    uint64_t sum = CHECKSUM_START;
    for (size_t i = 0; i < tokens->count; i++) {
        uint32_t token = (uint32_t)tokens_at(tokens, i);
        if (token >= (uint32_t)tokens->vocabulary)
            return error_set("tokens: %s: token %zu is %u, the vocabulary has %d; make it again",
                             path, i, token, tokens->vocabulary);
        sum = checksum_add(sum, tokens_raw(tokens, i));
    }
    if (sum != tokens->checksum)
        return error_set(
            "tokens: %s: damaged: the tokens do not match their checksum; make it again", path);
    return 0;
}

int tokens_open(Tokens *tokens, const char *path) {
    struct stat status;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0 || fstat(descriptor, &status) != 0) {
        const bool missing = errno == ENOENT;
        error_set("tokens: %s: %s%s", path, strerror(errno),
                  missing ? "; make it with `bcd tokenize`" : "");
        if (descriptor >= 0) close(descriptor);
        return -1;
    }
    const size_t bytes = S_ISREG(status.st_mode) ? (size_t)status.st_size : 0;
    /* Nothing can be mapped of an empty file or a directory; parsing no bytes says what is
     * wrong. */
    void *base = bytes ? mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, descriptor, 0) : NULL;
    if (base == MAP_FAILED) {
        error_set("tokens: %s: cannot map it into memory: %s", path, strerror(errno));
        close(descriptor);
        return -1;
    }
    if (tokens_parse(tokens, base, bytes, path)) {
        if (base) munmap(base, bytes);
        close(descriptor);
        return -1;
    }
    tokens->base = base;
    tokens->mapped = bytes;
    tokens->file = descriptor;
    tokens->changed = status.st_mtim;
    return 0;
}

static bool read_header(unsigned char bytes[TOKENFILE_HEADER], const char *path) {
    FILE *file = fopen(path, "rb");
    const bool whole = file && fread(bytes, 1, TOKENFILE_HEADER, file) == TOKENFILE_HEADER;
    if (file) fclose(file);
    return whole && memcmp(bytes, magic, sizeof magic) == 0;
}

bool tokens_same(const char *a, const char *b) {
    enum { UP_TO_CHECKSUM = 56 };
    unsigned char first[TOKENFILE_HEADER], second[TOKENFILE_HEADER];
    return read_header(first, a) && read_header(second, b) &&
           memcmp(first, second, UP_TO_CHECKSUM) == 0;
}

static void write_header(TokenWriter *writer) {
    unsigned char bytes[TOKENFILE_HEADER] = {0};
    const Tokens *header = &writer->header;
    memcpy(bytes, magic, sizeof magic);
    little_endian_put(bytes + 8, 4, VERSION);
    little_endian_put(bytes + 12, 4, (uint64_t)header->width);
    memcpy(bytes + 16, header->tokenizer, TOKENIZER_NAME);
    little_endian_put(bytes + 32, 4, (uint64_t)header->vocabulary);
    little_endian_put(bytes + 36, 4, header->masked + 2 * (uint64_t)header->context);
    little_endian_put(bytes + 40, 8, header->count);
    little_endian_put(bytes + 48, 8, header->checksum);
    little_endian_put(bytes + 56, 8, header->source);
    fwrite(bytes, 1, sizeof bytes, writer->atomic.file); /* the commit sees an error */
}

/* Returns the bytes of a token with its mask. */
static int token_width(int vocabulary, bool masked) {
    return vocabulary <= (masked ? 1 << 15 : 1 << 16) ? 2 : 4;
}

int tokenwriter_open(TokenWriter *writer, const char *path, const char *tokenizer, int vocabulary,
                     bool masked, uint64_t source) {
    writer->header = (Tokens){.width = token_width(vocabulary, masked),
                              .vocabulary = vocabulary,
                              .masked = masked,
                              .checksum = CHECKSUM_START,
                              .source = source};
    snprintf(writer->header.tokenizer, TOKENIZER_NAME, "%s", tokenizer);
    if (atomic_open(&writer->atomic, path)) return -1;
    write_header(writer);
    return 0;
}

int tokenwriter_add(TokenWriter *writer, const int *numbers, size_t count) {
    enum { PIECE = 4096 };
    unsigned char bytes[PIECE * 4];
    Tokens *header = &writer->header;
    const size_t width = (size_t)header->width;
    for (size_t done = 0; done < count;) {
        size_t piece = count - done < PIECE ? count - done : PIECE;
        for (size_t i = 0; i < piece; i++) {
            const bool no_target = header->masked && numbers[done + i] < 0;
            const int token = no_target ? -1 - numbers[done + i] : numbers[done + i];
            const uint32_t raw = (uint32_t)token | (no_target ? token_mask(header->width) : 0);
            if (token < 0 || token >= header->vocabulary)
                return error_set("tokens: %s: token %d, the vocabulary has %d", writer->atomic.path,
                                 token, header->vocabulary);
            little_endian_put(bytes + i * width, header->width, raw);
            header->checksum = checksum_add(header->checksum, raw);
        }
        if (fwrite(bytes, width, piece, writer->atomic.file) != piece)
            return error_set("tokens: %s: cannot write: %s", writer->atomic.path, strerror(errno));
        done += piece;
    }
    header->count += count;
    return 0;
}

int tokenwriter_commit(TokenWriter *writer) {
    if (fseek(writer->atomic.file, 0, SEEK_SET) == 0) write_header(writer);
    return atomic_commit(&writer->atomic);
}

void tokenwriter_abandon(TokenWriter *writer) { atomic_abandon(&writer->atomic); }
