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

enum { NUMBERS = 4096 };
static const uint32_t no_target = (uint32_t)1 << 31, begins = (uint32_t)1 << 30;

/* Reads up to `size` numbers.  *torn is set if the file ends within one. */
static size_t read_numbers(uint32_t *raw, size_t size, FILE *from, bool *torn) {
    unsigned char bytes[4];
    size_t count = 0, got = 0;
    while (count < size && (got = fread(bytes, 1, 4, from)) == 4)
        raw[count++] = (uint32_t)little_endian_get(bytes, 4);
    *torn = count < size && got != 0;
    return count;
}

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
    uint32_t raw[NUMBERS];
    bool torn = false;
    size_t count;
    for (int f = 0; f < files; f++) {
        if (read_head(from[f], out, vocabulary, note)) return -1;
        while (!*masked && (count = read_numbers(raw, NUMBERS, from[f], &torn)) > 0)
            for (size_t i = 0; i < count; i++) *masked |= (raw[i] & no_target) != 0;
        if (ferror(from[f])) return refuse(out, "left what cannot be read");
    }
    return 0;
}

/* The record that is being read, on its way into windows of `size` tokens.  One that is longer goes
 * on without being moved. */
typedef struct {
    TokenWriter *writer;
    bool moves; /* records are kept whole */
    bool whole; /* the record may still fit */
    int size, count, *held;
    int last; /* the token before, as one that is no target */
    TokenizeStats *stats;
} Windows;

/* Repeats the last token, as one that is no target. */
static int windows_fill(Windows *w, int count) {
    int failed = 0;
    while (count-- > 0 && !failed) failed = tokenwriter_add(w->writer, &w->last, 1);
    return failed;
}

/* Returns the tokens that are left in the window; all of it where none has begun. */
static int windows_left(const Windows *w) {
    return w->size - (int)(w->writer->header.count % (size_t)w->size);
}

/* Writes what is held, in the next window if it would be cut. */
static int windows_flush(Windows *w) {
    const int left = windows_left(w);
    int failed = w->moves && w->whole && left < w->count ? windows_fill(w, left) : 0;
    if (!failed) failed = tokenwriter_add(w->writer, w->held, (size_t)w->count);
    if (w->count) w->last = w->held[w->count - 1];
    if (w->last >= 0) w->last = -1 - w->last;
    w->count = 0;
    return failed;
}

static int windows_add(Windows *w, const uint32_t *raw, size_t count) {
    int failed = 0;
    for (size_t i = 0; i < count && !failed; i++) {
        const int token = (int)(raw[i] & ~(no_target | begins));
        const bool new = w->moves && (raw[i] & begins);
        if (new || w->count == w->size) {
            if (!new && w->whole) w->stats->cut++;
            w->whole = w->whole && new;
            failed = windows_flush(w);
            w->whole = new;
        }
        w->held[w->count++] = raw[i] & no_target ? -1 - token : token;
    }
    return failed;
}

/* Fills the last window, and adds what its last token is followed by. */
static int windows_end(Windows *w) {
    if (windows_flush(w)) return -1;
    const int left = windows_left(w);
    return w->moves && w->writer->header.count && windows_fill(w, left % w->size + 1) ? -1 : 0;
}

int tokenize_encoded(const char *out, const char *name, FILE *const *from, int files, int context,
                     TokenizeStats *stats, TokenizeProgress progress, void *progress_context) {
    int vocabulary = 0, result = 0;
    uint32_t raw[NUMBERS];
    bool masked = context > 0, torn = false;
    TokenWriter writer;
    Windows windows = {&writer, context > 0, .size = context > 0 ? context : NUMBERS,
                       .stats = stats};
    stats->cut = 0;
    if (look_for_masks(&masked, from, files, out, &vocabulary, stats->note)) return -1;
    windows.held = malloc((size_t)windows.size * sizeof *windows.held);
    if (!windows.held) return error_set("tokenize: out of memory");
    if (tokenwriter_open(&writer, out, name, vocabulary, masked, 0)) {
        free(windows.held);
        return -1;
    }
    writer.header.context = context;
    for (int f = 0; f < files && result == 0; f++) {
        size_t count = 1;
        result = read_head(from[f], out, &vocabulary, stats->note);
        while (result == 0 && count > 0) {
            count = read_numbers(raw, NUMBERS, from[f], &torn);
            result = ferror(from[f]) ? refuse(out, "left what cannot be read")
                     : torn          ? refuse(out, "ended in the middle of a token")
                                     : windows_add(&windows, raw, count);
            if (result == 0 && progress && progress(progress_context, stats)) result = 1;
        }
    }
    result = result ? result : windows_end(&windows);
    stats->tokens = writer.header.count;
    free(windows.held);
    return finish(&writer, out, stats, result);
}
