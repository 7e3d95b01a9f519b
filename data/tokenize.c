#include "tokenize.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../ref/base/error.h"
#include "documents.h"
#include "file.h"
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
        job->stats->bytes_read = before + pieces_bytes_read(documents_pieces(documents));
        if (result == 0) result = report(job);
    }
    documents_close(documents);
    return result;
}

int tokenize_measure(uint64_t *total, const char *const *inputs, int count) {
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
    if (tokenize_measure(&stats->total_bytes, inputs, count)) return -1;
    if (tokenwriter_open(&job.writer, out, tokenizer->name, tokenizer->vocabulary, false, 0))
        return -1;
    int result = 0;
    for (int i = 0; result == 0 && i < count; i++) result = add_file(&job, inputs[i]);
    free(job.tokens);
    return finish(&job.writer, out, stats, result);
}

/* ---- tokens that another program makes ---- */

/* Writes a line or element of JSON as one line, after its number. */
static void put_record(FILE *to, size_t number, char *json, size_t bytes) {
    for (char *at = json; (at = memchr(at, '\n', bytes - (size_t)(at - json)));) *at = ' ';
    fprintf(to, "%zu ", number);
    fwrite(json, 1, bytes, to);
    fputc('\n', to);
}

int tokenize_feed(FILE *to, const char *input, TokenizeStats *stats, TokenizeProgress progress,
                  void *context) {
    TokenizeJob job = {.stats = stats, .progress = progress, .context = context};
    Documents *documents = documents_open(input);
    if (!documents) return -1;
    const Pieces *pieces = documents_pieces(documents);
    const char *unit = pieces_unit(pieces);
    const uint64_t before = stats->bytes_read;
    char *text;
    size_t bytes;
    int found, result = 0;
    fprintf(to, "%s\n", unit ? unit : "text");
    while (result == 0 && !ferror(to) && (found = documents_record(documents, &text, &bytes))) {
        if (found < 0)
            result = -1;
        else if (unit)
            put_record(to, pieces_number(pieces), text, bytes);
        else
            fwrite(text, 1, bytes, to);
        stats->text_bytes += found > 0 ? bytes : 0;
        stats->bytes_read = before + pieces_bytes_read(pieces);
        if (result == 0) result = report(&job);
    }
    documents_close(documents);
    return result;
}

static int refuse(const char *out, const char *what) {
    return error_set("tokenize: %s: the program that encodes the text %s", out, what);
}

/* Reads up to `size` numbers; -1 - token stands for one that is no target.  *torn is set if the
 * file ends within a number. */
static size_t read_numbers(int *numbers, size_t size, FILE *from, bool *torn) {
    unsigned char bytes[4];
    size_t count = 0, got = 0;
    while (count < size && (got = fread(bytes, 1, 4, from)) == 4) {
        const uint32_t raw = (uint32_t)little_endian_get(bytes, 4);
        const int token = (int)(raw & 0x7fffffff);
        numbers[count++] = raw >> 31 ? -1 - token : token;
    }
    *torn = count < size && got != 0;
    return count;
}

enum { NUMBERS = 4096 };

/* Reads the first line: the vocabulary, and after a blank what the user should know. */
static int read_head(FILE *from, const char *out, int *vocabulary, char note[TOKENIZE_NOTE]) {
    char line[16 + TOKENIZE_NOTE];
    int used = 0;
    rewind(from);
    if (!fgets(line, sizeof line, from) || sscanf(line, "%d%n", vocabulary, &used) != 1 ||
        *vocabulary < 1)
        return refuse(out, "did not begin with the line about its tokens");
    line[strcspn(line, "\n")] = 0;
    snprintf(note, TOKENIZE_NOTE, "%s", line + used + (line[used] == ' '));
    return 0;
}

/* Finds out whether any token is no target. */
static int look_for_masks(bool *masked, FILE *const *from, int files, const char *out,
                          int *vocabulary, char note[TOKENIZE_NOTE]) {
    int numbers[NUMBERS];
    bool torn = false;
    size_t count;
    for (int f = 0; f < files; f++) {
        if (read_head(from[f], out, vocabulary, note)) return -1;
        while (!*masked && (count = read_numbers(numbers, NUMBERS, from[f], &torn)) > 0)
            for (size_t i = 0; i < count; i++) *masked |= numbers[i] < 0;
        if (ferror(from[f])) return refuse(out, "left what cannot be read");
    }
    return 0;
}

int tokenize_encoded(const char *out, const char *name, FILE *const *from, int files,
                     TokenizeStats *stats) {
    int vocabulary = 0, numbers[NUMBERS], result = 0;
    bool masked = false, torn = false;
    TokenWriter writer;
    stats->tokens = 0;
    if (look_for_masks(&masked, from, files, out, &vocabulary, stats->note)) return -1;
    if (tokenwriter_open(&writer, out, name, vocabulary, masked, 0)) return -1;
    for (int f = 0; f < files && result == 0; f++) {
        size_t count = 1;
        result = read_head(from[f], out, &vocabulary, stats->note);
        while (result == 0 && count > 0) {
            count = read_numbers(numbers, NUMBERS, from[f], &torn);
            result = ferror(from[f]) ? refuse(out, "left what cannot be read")
                     : torn          ? refuse(out, "ended in the middle of a token")
                                     : tokenwriter_add(&writer, numbers, count);
            stats->tokens += count;
        }
    }
    return finish(&writer, out, stats, result);
}
