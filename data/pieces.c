#include "pieces.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "../ref/base/error.h"

/* A line of JSON, or text without a place to cut it, may be longer than a piece.  If it is longer
 * than this, the file is probably neither JSON lines nor text. */
enum { MAX_BYTES = 1 << 28 };

/* An array is cut behind each comma between its elements, and before the bracket at its end. */
typedef struct {
    int depth;
    bool in_string, escaped, ended;
} ArrayScan;

typedef enum { PLAIN, LINES, ARRAY } Form;

struct Pieces {
    TextFile *file;
    Form form;
    ArrayScan scan;
    bool ended;
    size_t piece;                /* bytes of text that are read at once */
    char *text;                  /* [capacity + 1] */
    size_t capacity, begin, end; /* [begin, end) has been read, but not returned yet */
    size_t number;               /* of the last line or element, from 1 */
};

/* Reads up to another piece behind [begin, end), after making room for it. */
static int read_more(Pieces *pieces) {
    const size_t held = pieces->end - pieces->begin;
    if (pieces->begin > 0) memmove(pieces->text, pieces->text + pieces->begin, held);
    pieces->begin = 0;
    pieces->end = held;
    if (pieces->capacity - held < pieces->piece) {
        char *grown = realloc(pieces->text, pieces->capacity * 2 + 1);
        if (!grown) return error_set("tokenize: %s: out of memory", textfile_path(pieces->file));
        pieces->text = grown;
        pieces->capacity *= 2;
    }
    while (!pieces->ended && pieces->end < held + pieces->piece) {
        char *to = pieces->text + pieces->end;
        const size_t wanted = held + pieces->piece - pieces->end;
        const long count = textfile_read(pieces->file, to, wanted);
        if (count < 0) return -1;
        pieces->ended = count == 0;
        pieces->end += (size_t)count;
    }
    return 0;
}

/* Returns true if the last character of text[length] is visible: neither white space nor a control
 * character. */
static bool ends_visible(const unsigned char *text, size_t length) {
    static const char *const spaces[] = {"\xC2\x85",     "\xC2\xA0",     "\xE1\x9A\x80",
                                         "\xE2\x80\xA8", "\xE2\x80\xA9", "\xE2\x80\xAF",
                                         "\xE2\x81\x9F", "\xE3\x80\x80"};
    const unsigned char *last = text + length;
    do last--;
    while (last > text && (*last & 0xC0) == 0x80);
    const size_t bytes = (size_t)(text + length - last);
    if (*last < 0x80) return bytes == 1 && *last > ' ' && *last <= '~';
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++)
        if (bytes == strlen(spaces[i]) && memcmp(last, spaces[i], bytes) == 0) return false;
    /* U+2000 to U+200A */
    return !(bytes == 3 && last[0] == 0xE2 && last[1] == 0x80 && last[2] <= 0x8A);
}

/* Returns true if white space begins at text[i], i >= 1, so that a word ends before it. */
static bool can_cut(const unsigned char *text, size_t i) {
    return (text[i] == ' ' || text[i] == '\n' || text[i] == '\r') && ends_visible(text, i);
}

/* Finds the end of the array's next element, as piece_length does; the scan goes on where it was.
 */
static size_t element_length(Pieces *pieces, size_t searched) {
    const char *start = pieces->text + pieces->begin;
    const size_t held = pieces->end - pieces->begin;
    ArrayScan *scan = &pieces->scan;
    for (size_t i = searched; i < held; i++) {
        const char c = start[i];
        if (scan->in_string) {
            scan->in_string = c != '"' || scan->escaped;
            scan->escaped = c == '\\' && !scan->escaped;
        } else if (c == '"') {
            scan->in_string = true;
        } else if (c == '[' || c == '{') {
            scan->depth++;
        } else if (scan->depth > 0) {
            scan->depth -= c == ']' || c == '}';
        } else if (c == ',' || c == ']') {
            scan->ended = c == ']';
            return i + 1;
        }
    }
    return 0;
}

/* Returns the length of the next piece, 0 if its end has not been read yet.  It does not end before
 * byte `searched`. */
static size_t piece_length(Pieces *pieces, size_t searched) {
    const char *start = pieces->text + pieces->begin;
    const size_t held = pieces->end - pieces->begin;
    if (pieces->form == ARRAY) return element_length(pieces, searched);
    if (pieces->form == LINES) {
        const char *newline = memchr(start + searched, '\n', held - searched);
        if (newline) return (size_t)(newline - start) + 1;
    }
    if (pieces->ended) return held;
    if (pieces->form == LINES) return 0;
    for (size_t i = held; i-- > 1 && i >= searched;)
        if (can_cut((const unsigned char *)start, i)) return i;
    return 0;
}

/* Finds the next piece and returns 1; 0 at the end. */
static int next_piece(Pieces *pieces, char **piece, size_t *bytes) {
    size_t searched = 0;
    while (!(*bytes = piece_length(pieces, searched))) {
        if (pieces->ended) return 0;
        searched = pieces->end - pieces->begin;
        if (searched >= MAX_BYTES && pieces->form != PLAIN)
            return error_set("tokenize: %s: %s %zu is longer than %d MB; is it JSON lines?",
                             textfile_path(pieces->file), pieces_unit(pieces), pieces->number + 1,
                             MAX_BYTES >> 20);
        if (searched >= MAX_BYTES)
            return error_set(
                "tokenize: %s: %d MB without a space or line end to cut at; is it text?",
                textfile_path(pieces->file), MAX_BYTES >> 20);
        if (read_more(pieces)) return -1;
    }
    *piece = pieces->text + pieces->begin;
    pieces->begin += *bytes;
    return 1;
}

/* ---- JSON ---- */

static bool is_blank(const char *text, size_t length) {
    size_t i = 0;
    while (i < length && strchr(" \t\r\n", text[i]) && text[i]) i++;
    return i == length;
}

/* Finds out whether the file is an array, whose first byte is a bracket. */
static int find_array(Pieces *pieces) {
    size_t blanks = 0, held;
    do {
        if (read_more(pieces)) return -1;
        held = pieces->end - pieces->begin;
        while (blanks < held && is_blank(pieces->text + pieces->begin + blanks, 1)) blanks++;
    } while (blanks == held && !pieces->ended);
    if (blanks < held && pieces->text[pieces->begin + blanks] == '[') {
        pieces->form = ARRAY;
        pieces->begin += blanks + 1;
    }
    return 0;
}

/* After the array's end there may only be white space. */
static int check_array_end(Pieces *pieces) {
    if (!pieces->scan.ended)
        return error_set("tokenize: %s: the array has no end; get the file again",
                         textfile_path(pieces->file));
    do {
        if (!is_blank(pieces->text + pieces->begin, pieces->end - pieces->begin))
            return error_set("tokenize: %s: something follows the end of the array",
                             textfile_path(pieces->file));
        pieces->begin = pieces->end;
        if (read_more(pieces)) return -1;
    } while (pieces->begin < pieces->end);
    return 0;
}

/* Returns the next line or element that is not blank. */
static int next_record(Pieces *pieces, char **text, size_t *bytes) {
    int found;
    bool blank = true;
    if (pieces->scan.ended) return check_array_end(pieces);
    while (blank && (found = next_piece(pieces, text, bytes)) > 0) {
        pieces->number++;
        *bytes -= pieces->form == ARRAY || (*text)[*bytes - 1] == '\n';
        (*text)[*bytes] = 0;
        blank = is_blank(*text, *bytes);
        if (blank && pieces->form == ARRAY) break;
    }
    if (found < 0) return -1;
    const bool empty_array = blank && pieces->number == 1 && pieces->scan.ended;
    if (found == 0 || empty_array) return pieces->form == ARRAY ? check_array_end(pieces) : 0;
    return blank ? pieces_refuse(pieces, "is not JSON") : 1;
}

int pieces_next(Pieces *pieces, char **text, size_t *bytes) {
    return pieces->form == PLAIN ? next_piece(pieces, text, bytes)
                                 : next_record(pieces, text, bytes);
}

/* ---- files ---- */

/* Returns the length of a path without the first of these endings that it has, in any case. */
static size_t without_ending(const char *path, size_t length, const char *const *endings) {
    for (; *endings; endings++) {
        const size_t ending = strlen(*endings);
        if (length > ending && strncasecmp(path + length - ending, *endings, ending) == 0)
            return length - ending;
    }
    return length;
}

size_t pieces_unpacked(const char *path) {
    static const char *const packed[] = {".gz", ".gzip", ".zst", ".zstd", NULL};
    return without_ending(path, strlen(path), packed);
}

static bool names_json(const char *path) {
    static const char *const json[] = {".jsonl", ".jsonlines", ".jl", ".ndjson", ".json", NULL};
    const size_t length = pieces_unpacked(path);
    return without_ending(path, length, json) < length;
}

Pieces *pieces_of(TextFile *file, bool json, size_t piece) {
    if (!file) return NULL;
    Pieces *pieces = calloc(1, sizeof *pieces);
    char *text = malloc(2 * piece + 1);
    if (!pieces || !text) {
        error_set("tokenize: %s: out of memory", textfile_path(file));
        textfile_close(file);
        free(pieces);
        free(text);
        return NULL;
    }
    *pieces = (Pieces){.file = file,
                       .form = json ? LINES : PLAIN,
                       .piece = piece,
                       .text = text,
                       .capacity = 2 * piece};
    if (!json || find_array(pieces) == 0) return pieces;
    pieces_close(pieces);
    return NULL;
}

Pieces *pieces_open(const char *path) {
    return pieces_of(textfile_open(path), names_json(path), PIECE_BYTES);
}

void pieces_close(Pieces *pieces) {
    if (!pieces) return;
    textfile_close(pieces->file);
    free(pieces->text);
    free(pieces);
}

uint64_t pieces_bytes_read(const Pieces *pieces) { return textfile_bytes_read(pieces->file); }

const char *pieces_path(const Pieces *pieces) { return textfile_path(pieces->file); }

const char *pieces_unit(const Pieces *pieces) {
    return pieces->form == ARRAY ? "element" : pieces->form == LINES ? "line" : NULL;
}

size_t pieces_number(const Pieces *pieces) { return pieces->number; }

int pieces_refuse(const Pieces *pieces, const char *what) {
    return error_set("tokenize: %s: %s %zu %s", textfile_path(pieces->file), pieces_unit(pieces),
                     pieces->number, what);
}
