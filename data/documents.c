#include "documents.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "../ref/base/error.h"
#include "utf8.h"

struct Documents {
    Pieces *pieces;
    bool started;
    size_t lines;  /* of plain text so far */
    cJSON *object; /* the last one, which holds the returned text */
};

/* Checks a piece, in which no character is cut.  Zeros are escaped in JSON, and have no place in
 * text. */
static int check_utf8(Documents *documents, const char *text, size_t bytes) {
    static const char advice[] = "is not in UTF-8; convert the file first, for example with iconv";
    const Pieces *pieces = documents->pieces;
    size_t valid = utf8_valid(text, bytes);
    if (valid < bytes && pieces_unit(pieces)) return pieces_refuse(pieces, advice);
    const char *zero = pieces_unit(pieces) ? NULL : memchr(text, 0, valid);
    if (zero) valid = (size_t)(zero - text);
    for (size_t i = 0; i < valid; i++) documents->lines += text[i] == '\n';
    if (valid == bytes) return 0;
    return error_set("tokenize: %s: line %zu %s", pieces_path(pieces), documents->lines + 1,
                     zero ? "has a zero byte; is it text?" : advice);
}

/* Returns the number that four hexadecimal digits stand for, -1 if they are none. */
static int four_digits(const char *text) {
    int number = 0;
    for (int i = 0; i < 4; i++) {
        const char *digits = "0123456789abcdef0123456789ABCDEF";
        const char *digit = text[i] ? strchr(digits, text[i]) : NULL;
        if (!digit) return -1;
        number = number * 16 + (int)(digit - digits) % 16;
    }
    return number;
}

/* Returns true if JSON has an escaped half of a surrogate pair without the other. */
static bool has_half_pair(const char *json) {
    for (const char *at = json; (at = strchr(at, '\\')) && at[1]; at += 2) {
        const int unit = at[1] == 'u' ? four_digits(at + 2) : -1;
        if (unit < 0xD800 || unit > 0xDFFF) continue;
        const bool pair = unit < 0xDC00 && at[6] == '\\' && at[7] == 'u';
        const int other = pair ? four_digits(at + 8) : -1;
        if (other < 0xDC00 || other > 0xDFFF) return true;
        at += 6;
    }
    return false;
}

/* Returns true if text[bytes] is an object with fields, and nothing else but blanks. */
static bool is_object(const char *text, size_t bytes) {
    const char *end = NULL;
    cJSON *value = cJSON_ParseWithLengthOpts(text, bytes, &end, 0);
    bool whole = cJSON_IsObject(value) && value->child;
    for (; whole && end < text + bytes; end++) whole = (unsigned char)*end <= ' ';
    cJSON_Delete(value);
    return whole;
}

/* Refuses a line that begins an object which does not end with it. */
static int check_whole_object(const Documents *documents, const char *json, size_t bytes) {
    while (bytes > 0 && (unsigned char)json[bytes - 1] <= ' ') bytes--;
    if (json[strspn(json, " \t\r")] != '{' || json[bytes - 1] == '}') return 0;
    if (json[bytes - 1] == ',' && is_object(json, bytes - 1))
        return pieces_refuse(documents->pieces,
                             "has a comma behind the object; remove it, or write all objects in "
                             "an array");
    return pieces_refuse(documents->pieces,
                         "has only a part of an object; write each object on one line, or all "
                         "of them in an array");
}

/* Returns true if a string in this JSON has a control character as it is, which some readers take
 * and others refuse.  Zero is looked for later. */
static bool has_raw_control(const char *json, size_t bytes) {
    bool inside = false;
    for (size_t i = 0; i < bytes; i++) {
        const unsigned char c = (unsigned char)json[i];
        if (inside && c == '\\')
            i++;
        else if (c == '"')
            inside = !inside;
        else if (inside && c && c < ' ')
            return true;
    }
    return false;
}

/* Refuses plain text that begins with a line of JSON: only the name tells what a file has, and all
 * of the JSON would be trained on as it is written. */
static int check_plain(const Documents *documents, const char *text, size_t bytes) {
    const char *newline = memchr(text, '\n', bytes);
    if (!bytes || *text != '{' || !is_object(text, newline ? (size_t)(newline - text) : bytes))
        return 0;
    return error_set(
        "tokenize: %s: looks like JSON lines; give it a name that ends in .jsonl, or if it is text "
        "an empty line at its beginning",
        pieces_path(documents->pieces));
}

int documents_record(Documents *documents, char **text, size_t *bytes) {
    Pieces *pieces = documents->pieces;
    const int found = pieces_next(pieces, text, bytes);
    if (found == 1 && check_utf8(documents, *text, *bytes)) return -1;
    if (found == 1 && pieces_unit(pieces) && has_half_pair(*text))
        return pieces_refuse(pieces,
                             "has half of a surrogate pair, which is no character; remove it");
    if (found == 1 && pieces_unit(pieces) && check_whole_object(documents, *text, *bytes))
        return -1;
    if (found == 1 && pieces_unit(pieces) && has_raw_control(*text, *bytes))
        return pieces_refuse(
            pieces, "has a control character in a string; JSON writes it as \\n or \\u000a");
    if (found == 1 && !pieces_unit(pieces) && !documents->started &&
        check_plain(documents, *text, *bytes))
        return -1;
    documents->started = true;
    return found;
}

/* Returns true if a string in this JSON contains \u0000, at which cJSON's strings would end. */
static bool has_zero(const char *json, size_t length) {
    if (memchr(json, 0, length)) return true;
    for (const char *at = json; (at = strchr(at, '\\')) && at[1]; at += 2)
        if (strncmp(at + 1, "u0000", 5) == 0) return true;
    return false;
}

/* The field that is the text; NULL and an error: there is none, or two, of which readers take
 * different ones. */
static const cJSON *text_field(const Documents *documents) {
    const cJSON *item, *text = NULL;
    cJSON_ArrayForEach(item, documents->object) {
        if (!item->string || strcmp(item->string, "text") != 0) continue;
        if (text) {
            pieces_refuse(documents->pieces, "has \"text\" twice");
            return NULL;
        }
        text = item;
    }
    if (cJSON_IsString(text)) return text;
    pieces_refuse(documents->pieces,
                  "has no string \"text\"; prompts and chats need --tokenizer with a model");
    return NULL;
}

static int next_object(Documents *documents, const char **text, size_t *bytes) {
    char *json;
    size_t length;
    const int found = documents_record(documents, &json, &length);
    if (found <= 0) return found;
    if (has_zero(json, length))
        return pieces_refuse(documents->pieces, "has a zero character; remove it");
    cJSON_Delete(documents->object);
    documents->object = cJSON_ParseWithLengthOpts(json, length + 1, NULL, 1);
    if (!documents->object) return pieces_refuse(documents->pieces, "is not JSON");
    const cJSON *field = text_field(documents);
    if (!field) return -1;
    *text = field->valuestring;
    *bytes = strlen(field->valuestring);
    return 1;
}

int documents_next(Documents *documents, const char **text, size_t *bytes, bool *starts) {
    *starts = pieces_unit(documents->pieces) || !documents->started;
    if (pieces_unit(documents->pieces)) return next_object(documents, text, bytes);
    char *piece = NULL;
    const int found = documents_record(documents, &piece, bytes);
    *text = piece;
    return found;
}

/* ---- files ---- */

Documents *documents_of(Pieces *pieces) {
    Documents *documents = pieces ? calloc(1, sizeof *documents) : NULL;
    if (documents) documents->pieces = pieces;
    if (documents || !pieces) return documents;
    pieces_close(pieces);
    return error_null("tokenize: out of memory");
}

Documents *documents_open(const char *path) { return documents_of(pieces_open(path)); }

void documents_close(Documents *documents) {
    if (!documents) return;
    pieces_close(documents->pieces);
    cJSON_Delete(documents->object);
    free(documents);
}

const Pieces *documents_pieces(const Documents *documents) { return documents->pieces; }
