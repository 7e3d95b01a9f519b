#include "documents.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "../ref/base/error.h"
#include "file.h"

enum { INPUT_BYTES = 1 << 17 };

/* A line of JSON, or text without a place to cut it, may be longer than a piece.  If it is longer
 * than this, the file is probably neither JSON lines nor text. */
enum { MAX_BYTES = 1 << 28 };

struct Documents {
    FILE *file;
    char path[PATH_BYTES];
    uint64_t bytes_read;
    ZSTD_DStream *zstd;  /* NULL: plain */
    bool within_frame;   /* zstd: the file must not end here */
    ZSTD_inBuffer input; /* what was read last, not yet decompressed */
    bool lines, ended, started;
    size_t piece;                /* bytes of text that are read at once */
    char *text;                  /* [capacity + 1] */
    size_t capacity, begin, end; /* [begin, end) has been read, but not returned yet */
    size_t line;                 /* the number of the last line, from 1 */
    cJSON *object;               /* the last line, which holds the returned text */
    char input_bytes[INPUT_BYTES];
};

/* ---- the bytes of the file, decompressed ---- */

/* Reads more input; at the end of the file there is none. */
static int refill(Documents *documents) {
    const size_t count = fread(documents->input_bytes, 1, INPUT_BYTES, documents->file);
    documents->input = (ZSTD_inBuffer){documents->input_bytes, count, 0};
    documents->bytes_read += count;
    if (ferror(documents->file))
        return error_set("tokenize: %s: cannot read: %s", documents->path, strerror(errno));
    return 0;
}

static long read_plain(Documents *documents, char *to, size_t size) {
    ZSTD_inBuffer *input = &documents->input;
    if (input->pos == input->size && refill(documents)) return -1;
    const size_t left = input->size - input->pos, count = left < size ? left : size;
    memcpy(to, documents->input_bytes + input->pos, count);
    input->pos += count;
    return (long)count;
}

static long read_zstd(Documents *documents, char *to, size_t size) {
    ZSTD_inBuffer *input = &documents->input;
    ZSTD_outBuffer output = {to, size, 0};
    while (output.pos == 0) {
        const bool empty = input->pos == input->size;
        if (empty && refill(documents)) return -1;
        /* Even without input, the decoder may still have output. */
        if (empty && input->size == 0 && !documents->within_frame) return 0;
        const size_t before = input->pos;
        const size_t hint = ZSTD_decompressStream(documents->zstd, &output, input);
        if (ZSTD_isError(hint))
            return error_set("tokenize: %s: damaged zstd: %s; get it again", documents->path,
                             ZSTD_getErrorName(hint));
        documents->within_frame = hint != 0;
        if (output.pos == 0 && input->pos == before && input->size == 0)
            return error_set("tokenize: %s: truncated zstd; get it again", documents->path);
    }
    return (long)output.pos;
}

static int begin_reading(Documents *documents) {
    static const unsigned char magic[4] = {0x28, 0xB5, 0x2F, 0xFD};
    if (refill(documents)) return -1;
    if (documents->input.size < 4 || memcmp(documents->input_bytes, magic, 4) != 0) return 0;
    documents->zstd = ZSTD_createDStream();
    return documents->zstd ? 0 : error_set("tokenize: %s: no memory for zstd", documents->path);
}

Documents *documents_of(FILE *file, const char *path, bool lines, size_t piece) {
    Documents *documents = calloc(1, sizeof *documents);
    char *text = malloc(2 * piece + 1);
    if (!documents || !text) {
        fclose(file);
        free(documents);
        free(text);
        return error_null("tokenize: %s: out of memory", path);
    }
    documents->file = file;
    documents->lines = lines;
    documents->piece = piece;
    documents->text = text;
    documents->capacity = 2 * piece;
    snprintf(documents->path, sizeof documents->path, "%s", path);
    if (begin_reading(documents) == 0) return documents;
    documents_close(documents);
    return NULL;
}

Documents *documents_open(const char *path) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const bool lines = strstr(name, ".jsonl") || strstr(name, ".ndjson");
    FILE *file = fopen(path, "rb");
    if (file) return documents_of(file, path, lines, DOCUMENTS_PIECE);
    return error_null("tokenize: %s: %s", path, strerror(errno));
}

void documents_close(Documents *documents) {
    if (!documents) return;
    fclose(documents->file);
    ZSTD_freeDStream(documents->zstd);
    cJSON_Delete(documents->object);
    free(documents->text);
    free(documents);
}

uint64_t documents_bytes_read(const Documents *documents) { return documents->bytes_read; }

/* ---- pieces: lines of JSON, or plain text up to a place to cut it ---- */

/* Reads up to another piece behind [begin, end), after making room for it. */
static int read_more(Documents *documents) {
    const size_t held = documents->end - documents->begin;
    if (documents->begin > 0) memmove(documents->text, documents->text + documents->begin, held);
    documents->begin = 0;
    documents->end = held;
    if (documents->capacity - held < documents->piece) {
        char *grown = realloc(documents->text, documents->capacity * 2 + 1);
        if (!grown) return error_set("tokenize: %s: out of memory", documents->path);
        documents->text = grown;
        documents->capacity *= 2;
    }
    while (!documents->ended && documents->end < held + documents->piece) {
        char *to = documents->text + documents->end;
        const size_t wanted = held + documents->piece - documents->end;
        const long count =
            documents->zstd ? read_zstd(documents, to, wanted) : read_plain(documents, to, wanted);
        if (count < 0) return -1;
        documents->ended = count == 0;
        documents->end += (size_t)count;
    }
    return 0;
}

/* Returns true if a byte can only be the last one of a character that is not white space.  The
 * bytes excluded here are those in which white space outside of ASCII ends. */
static bool ends_visible(unsigned char last) {
    if (last < 0x80) return last > ' ' && last <= '~';
    return last > 0x8A && last != 0x9F && last != 0xA0 && last != 0xA8 && last != 0xA9 &&
           last != 0xAF;
}

/* Returns true if white space begins at text[i], i >= 1, so that a word ends before it. */
static bool can_cut(const unsigned char *text, size_t i) {
    return (text[i] == ' ' || text[i] == '\n') && ends_visible(text[i - 1]);
}

/* Returns the length of the next piece, 0 if its end has not been read yet.  It does not end before
 * byte `searched`. */
static size_t piece_length(const Documents *documents, size_t searched) {
    const char *start = documents->text + documents->begin;
    const size_t held = documents->end - documents->begin;
    if (documents->lines) {
        const char *newline = memchr(start + searched, '\n', held - searched);
        if (newline) return (size_t)(newline - start) + 1;
    }
    if (documents->ended) return held;
    if (documents->lines) return 0;
    for (size_t i = held; i-- > 1 && i >= searched;)
        if (can_cut((const unsigned char *)start, i)) return i;
    return 0;
}

/* Finds the next piece and returns 1; 0 at the end. */
static int next_piece(Documents *documents, char **piece, size_t *bytes) {
    size_t searched = 0;
    while (!(*bytes = piece_length(documents, searched))) {
        if (documents->ended) return 0;
        searched = documents->end - documents->begin;
        if (searched >= MAX_BYTES && documents->lines)
            return error_set("tokenize: %s: line %zu is longer than %d MB; is it JSON lines?",
                             documents->path, documents->line + 1, MAX_BYTES >> 20);
        if (searched >= MAX_BYTES)
            return error_set(
                "tokenize: %s: %d MB without a space or newline to cut at; is it text?",
                documents->path, MAX_BYTES >> 20);
        if (read_more(documents)) return -1;
    }
    *piece = documents->text + documents->begin;
    documents->begin += *bytes;
    return 1;
}

/* ---- JSON ---- */

/* Returns true if a string in this JSON contains \u0000, at which cJSON's strings would end. */
static bool has_zero(const char *json, size_t length) {
    if (memchr(json, 0, length)) return true;
    for (const char *at = json; (at = strchr(at, '\\')) && at[1]; at += 2)
        if (strncmp(at + 1, "u0000", 5) == 0) return true;
    return false;
}

static int refuse_line(const Documents *documents, const char *what) {
    return error_set("tokenize: %s: line %zu %s", documents->path, documents->line, what);
}

static int parse_line(Documents *documents, const char *line, size_t length, const char **text,
                      size_t *bytes) {
    if (has_zero(line, length)) return refuse_line(documents, "has a zero character; remove it");
    cJSON_Delete(documents->object);
    documents->object = cJSON_ParseWithLengthOpts(line, length + 1, NULL, 1);
    if (!documents->object) return refuse_line(documents, "is not JSON");
    const cJSON *field = cJSON_GetObjectItemCaseSensitive(documents->object, "text");
    if (!cJSON_IsString(field)) return refuse_line(documents, "has no string \"text\"");
    *text = field->valuestring;
    *bytes = strlen(field->valuestring);
    return 1;
}

static int next_object(Documents *documents, const char **text, size_t *bytes) {
    char *line;
    size_t length;
    int found;
    while ((found = next_piece(documents, &line, &length)) > 0) {
        documents->line++;
        length -= line[length - 1] == '\n';
        line[length] = 0;
        if (strspn(line, " \t\r") < length) /* blank lines are no documents */
            return parse_line(documents, line, length, text, bytes);
    }
    return found;
}

int documents_next(Documents *documents, const char **text, size_t *bytes, bool *starts) {
    *starts = documents->lines || !documents->started;
    documents->started = true;
    if (documents->lines) return next_object(documents, text, bytes);
    char *piece = NULL;
    const int found = next_piece(documents, &piece, bytes);
    *text = piece;
    return found;
}
