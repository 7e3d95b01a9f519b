#include "tokenize.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../ref/base/error.h"
#include "documents.h"
#include "tokens.h"

enum { REPORT_BYTES = 1 << 20 };

typedef struct {
    TokenWriter writer;
    const Tokenizer *tokenizer;
    int *tokens;
    TokenizeStats *stats;
    TokenizeProgress progress;
    void *context;
    uint64_t next_report; /* the bytes of text at which progress is called next */
} TokenizeJob;

static int add_piece(TokenizeJob *job, const char *text, size_t bytes, bool starts) {
    size_t count = 0;
    const int end_of_text = job->tokenizer->end_of_text;
    if (starts && job->stats->documents++ > 0 && end_of_text >= 0) {
        if (tokenwriter_add(&job->writer, &end_of_text, 1)) return -1;
        job->stats->tokens++;
    }
    if (job->tokenizer->encode(job->tokenizer, text, bytes, &job->tokens, &count)) return -1;
    if (tokenwriter_add(&job->writer, job->tokens, count)) return -1;
    job->stats->tokens += count;
    job->stats->text_bytes += bytes;
    return 0;
}

static int report(TokenizeJob *job) {
    if (!job->progress || job->stats->text_bytes < job->next_report) return 0;
    job->next_report = job->stats->text_bytes + REPORT_BYTES;
    return job->progress(job->context, job->stats) != 0;
}

static int add_file(TokenizeJob *job, const char *path) {
    Documents *documents = documents_open(path);
    if (!documents) return -1;
    const uint64_t before = job->stats->bytes_read;
    const char *text;
    size_t bytes;
    bool starts;
    int found, result = 0;
    while (result == 0 && (found = documents_next(documents, &text, &bytes, &starts)) != 0) {
        result = found < 0 ? -1 : bytes ? add_piece(job, text, bytes, starts) : 0;
        job->stats->bytes_read = before + documents_bytes_read(documents);
        if (result == 0) result = report(job);
    }
    documents_close(documents);
    return result;
}

/* Sums up the sizes of the inputs.  It also checks that all exist, so that a missing last one is
 * reported at once instead of after hours. */
static int measure_inputs(uint64_t *total, const char *const *inputs, int count) {
    *total = 0;
    for (int i = 0; i < count; i++) {
        struct stat status;
        if (stat(inputs[i], &status) != 0)
            return error_set("tokenize: %s: %s", inputs[i], strerror(errno));
        if (S_ISDIR(status.st_mode))
            return error_set("tokenize: %s: is a directory; name the files in it", inputs[i]);
        *total += (uint64_t)status.st_size;
    }
    return 0;
}

/* Commits the file, unless something went wrong or there are no tokens. */
static int finish(TokenWriter *writer, const char *out, const TokenizeStats *stats, int result) {
    if (result == 0 && stats->tokens == 0)
        result = error_set("tokenize: %s: the inputs have no text", out);
    if (result == 0) return tokenwriter_commit(writer);
    tokenwriter_abandon(writer);
    return result;
}

int tokenize_file(const char *out, const char *const *inputs, int count, const Tokenizer *tokenizer,
                  TokenizeStats *stats, TokenizeProgress progress, void *context) {
    TokenizeJob job = {
        .tokenizer = tokenizer, .stats = stats, .progress = progress, .context = context};
    *stats = (TokenizeStats){0};
    if (measure_inputs(&stats->total_bytes, inputs, count)) return -1;
    if (tokenwriter_open(&job.writer, out, tokenizer->name, tokenizer->vocabulary, false, 0))
        return -1;
    int result = 0;
    for (int i = 0; result == 0 && i < count; i++) result = add_file(&job, inputs[i]);
    free(job.tokens);
    return finish(&job.writer, out, stats, result);
}

/* ---- tokens that another program has made ---- */

static int refuse(const char *out, const char *what) {
    return error_set("tokenize: %s: the program that encodes the text %s", out, what);
}

int tokenize_encoded(const char *out, FILE *from, TokenizeStats *stats) {
    enum { PIECE = 4096 };
    char line[64], name[TOKENIZER_NAME];
    int vocabulary, masked, numbers[PIECE];
    unsigned char bytes[4 * PIECE];
    TokenWriter writer;
    *stats = (TokenizeStats){0};
    if (!fgets(line, sizeof line, from) ||
        sscanf(line, "%15s %d %d", name, &vocabulary, &masked) != 3 || vocabulary < 1 ||
        (masked != 0 && masked != 1))
        return refuse(out, "did not begin with the line about its tokens");
    if (tokenwriter_open(&writer, out, name, vocabulary, masked, 0)) return -1;
    size_t got;
    int result = 0;
    while (result == 0 && (got = fread(bytes, 1, sizeof bytes, from)) > 0) {
        const size_t count = got / 4;
        for (size_t i = 0; i < count; i++) {
            const uint32_t raw = (uint32_t)little_endian_get(bytes + 4 * i, 4);
            const int token = (int)(raw & 0x7fffffff);
            numbers[i] = raw >> 31 ? -1 - token : token;
        }
        result = got % 4 ? refuse(out, "ended in the middle of a token")
                         : tokenwriter_add(&writer, numbers, count);
        stats->tokens += count;
    }
    return finish(&writer, out, stats, result);
}
