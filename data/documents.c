#include "documents.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "../ref/error.h"
#include "file.h"

/* A line of JSON, or text without a place to cut it, may be longer than a piece.  If it is longer
 * than this, the file is probably neither JSON lines nor text. */
enum { MAX_BYTES = 1 << 28 };

struct Documents {
    ByteStream *stream;
    char path[PATH_BYTES];
    bool lines, ended, started;
    size_t piece;                /* bytes that are read at once */
    char *buffer;                /* [capacity + 1] */
    size_t capacity, begin, end; /* [begin, end) has been read, but not returned yet */
    size_t line;                 /* the number of the last line, from 1 */
    cJSON *object;               /* the last line, which holds the returned text */
};

Documents *documents_of(ByteStream *stream, const char *path, bool lines, size_t piece) {
    Documents *documents = calloc(1, sizeof *documents);
    if (documents) {
        documents->piece = piece;
        documents->capacity = 2 * piece;
        documents->buffer = malloc(documents->capacity + 1);
    }
    if (!documents || !documents->buffer) {
        error_set("tokenize: %s: out of memory", path);
        free(documents);
        stream_close(stream);
        return NULL;
    }
    documents->stream = stream;
    documents->lines = lines;
    snprintf(documents->path, sizeof documents->path, "%s", path);
    return documents;
}

Documents *documents_open(const char *path) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    ByteStream *stream = stream_open(path);
    return stream ? documents_of(stream, path, strstr(name, ".jsonl") || strstr(name, ".ndjson"),
                                 DOCUMENTS_PIECE)
                  : NULL;
}

void documents_close(Documents *documents) {
    if (!documents) return;
    stream_close(documents->stream);
    cJSON_Delete(documents->object);
    free(documents->buffer);
    free(documents);
}

uint64_t documents_bytes_read(const Documents *documents) {
    return stream_bytes_read(documents->stream);
}

/* Reads up to another piece behind [begin, end), after making room for it. */
static int read_more(Documents *documents) {
    const size_t held = documents->end - documents->begin;
    if (documents->begin > 0)
        memmove(documents->buffer, documents->buffer + documents->begin, held);
    documents->begin = 0;
    documents->end = held;
    if (documents->capacity - held < documents->piece) {
        char *grown = realloc(documents->buffer, documents->capacity * 2 + 1);
        if (!grown) return error_set("tokenize: %s: out of memory", documents->path);
        documents->buffer = grown;
        documents->capacity *= 2;
    }
    while (!documents->ended && documents->end < held + documents->piece) {
        long count = stream_read(documents->stream, documents->buffer + documents->end,
                                 held + documents->piece - documents->end);
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

/* Returns the last place in [begin, end) at which a text can be cut, 0 if there is none. */
static size_t last_cut(const unsigned char *text, size_t begin, size_t end) {
    for (size_t i = end; i-- > begin;)
        if (can_cut(text, i)) return i;
    return 0;
}

static int next_text(Documents *documents, const char **text, size_t *bytes) {
    size_t cut = 0, searched = 1; /* there is no place to cut at before this byte */
    for (;;) {
        const size_t held = documents->end - documents->begin;
        const char *start = documents->buffer + documents->begin;
        cut = documents->ended ? held : 0;
        if (!documents->ended && held >= documents->piece) {
            cut = last_cut((const unsigned char *)start, searched, held);
            searched = held;
        }
        if (cut > 0 || documents->ended) break;
        if (held >= MAX_BYTES)
            return error_set(
                "tokenize: %s: %d MB without a space or newline to cut at; is it text?",
                documents->path, MAX_BYTES >> 20);
        if (read_more(documents)) return -1;
    }
    *text = documents->buffer + documents->begin;
    *bytes = cut;
    documents->begin += cut;
    return cut > 0;
}

/* Finds the next line, replaces its newline by a zero byte, and returns 1; 0 at the end. */
static int next_line(Documents *documents, char **line, size_t *length) {
    size_t searched = 0;
    for (;;) {
        char *start = documents->buffer + documents->begin;
        const size_t held = documents->end - documents->begin;
        char *newline = memchr(start + searched, '\n', held - searched);
        if (newline || (documents->ended && held > 0)) {
            *line = start;
            *length = newline ? (size_t)(newline - start) : held;
            documents->begin += *length + (newline != NULL);
            start[*length] = 0;
            documents->line++;
            return 1;
        }
        if (documents->ended) return 0;
        if (held >= MAX_BYTES)
            return error_set("tokenize: %s: line %zu is longer than %d MB; is it JSON lines?",
                             documents->path, documents->line + 1, MAX_BYTES >> 20);
        searched = held;
        if (read_more(documents)) return -1;
    }
}

/* Returns true if a string in this JSON contains \u0000, at which cJSON's strings would end. */
static bool has_zero(const char *json, size_t length) {
    if (memchr(json, 0, length)) return true;
    for (const char *at = json; (at = strchr(at, '\\')) && at[1]; at += 2)
        if (strncmp(at + 1, "u0000", 5) == 0) return true;
    return false;
}

static int parse_line(Documents *documents, const char *line, size_t length, const char **text,
                      size_t *bytes) {
    if (has_zero(line, length))
        return error_set("tokenize: %s: line %zu has a zero character; remove it", documents->path,
                         documents->line);
    cJSON_Delete(documents->object);
    documents->object = cJSON_ParseWithLengthOpts(line, length + 1, NULL, 1);
    if (!documents->object)
        return error_set("tokenize: %s: line %zu is not JSON", documents->path, documents->line);
    const cJSON *field = cJSON_GetObjectItemCaseSensitive(documents->object, "text");
    if (!cJSON_IsString(field))
        return error_set("tokenize: %s: line %zu has no string \"text\"", documents->path,
                         documents->line);
    *text = field->valuestring;
    *bytes = strlen(field->valuestring);
    return 1;
}

static int next_object(Documents *documents, const char **text, size_t *bytes) {
    char *line = NULL;
    size_t length = 0;
    for (;;) {
        const int found = next_line(documents, &line, &length);
        if (found <= 0) return found;
        if (strspn(line, " \t\r") < length) /* blank lines are no documents */
            return parse_line(documents, line, length, text, bytes);
    }
}

int documents_next(Documents *documents, const char **text, size_t *bytes, bool *starts) {
    *starts = documents->lines || !documents->started;
    documents->started = true;
    return documents->lines ? next_object(documents, text, bytes)
                            : next_text(documents, text, bytes);
}
