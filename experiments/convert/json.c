#include "json.h"

#include <stdlib.h>
#include <string.h>

#include "../../data/file.h"
#include "../../ref/base/error.h"
#include "../base/alloc.h"

/* Says where a text stops being JSON.  Python also writes NaN and Infinity, which JSON lacks. */
static int refuse_text(const char *path, const char *text, const char *end) {
    int line = 1;
    for (const char *c = text; c < end; c++) line += *c == '\n';
    const int rest = (int)strcspn(end, "\r\n");
    return error_set("%s: line %d: not JSON: %.*s", path, line, rest < 40 ? rest : 40, end);
}

/* Returns a key that an object inside `item` has twice, or NULL. */
static const char *double_key(const cJSON *item) {
    for (const cJSON *a = item->child; a; a = a->next) {
        for (const cJSON *b = cJSON_IsObject(item) ? a->next : NULL; b; b = b->next)
            if (strcmp(a->string, b->string) == 0) return a->string;
        const char *inside = double_key(a);
        if (inside) return inside;
    }
    return NULL;
}

static int check(const char *path, const cJSON *root) {
    if (!cJSON_IsObject(root)) return error_set("%s: not a JSON object", path);
    const char *twice = double_key(root);
    return twice ? error_set("%s: has \"%.60s\" twice", path, twice) : 0;
}

cJSON *json_read(const char *path, const char *hint) {
    size_t bytes;
    const char *end;
    char *text = (char *)file_read("init", path, hint, &bytes);
    if (!text) return NULL;
    cJSON *root = cJSON_ParseWithLengthOpts(text, bytes + 1, &end, true);
    if (!root) refuse_text(path, text, end);
    free(text);
    if (!root || check(path, root) == 0) return root;
    cJSON_Delete(root);
    return NULL;
}

/* ---- changing a text ------------------------------------------------------------------------- */

/* Returns what is behind a string that begins at `quote`. */
static const char *behind_string(const char *quote) {
    const char *c = quote + 1;
    while (*c && *c != '"') c += *c == '\\' && c[1] ? 2 : 1;
    return *c ? c + 1 : c;
}

static const char *behind_blanks(const char *c) { return c + strspn(c, " \t\r\n"); }

/* Returns the value of a key of the outermost object, or NULL. */
static const char *find_value(const char *text, const char *key) {
    const size_t length = strlen(key);
    int depth = 0;
    for (const char *c = text; *c;) {
        if (*c != '"') {
            depth += (*c == '{' || *c == '[') - (*c == '}' || *c == ']');
            c++;
            continue;
        }
        const char *end = behind_string(c), *colon = behind_blanks(end);
        if (depth == 1 && *colon == ':' && end == c + length + 2 && !strncmp(c + 1, key, length))
            return behind_blanks(colon + 1);
        c = end;
    }
    return NULL;
}

/* Replaces `count` bytes at `place`. */
static void splice(char **text, const char *place, size_t count, const char *by) {
    const size_t before = (size_t)(place - *text), length = strlen(*text);
    char *changed = xmalloc(length + strlen(by) + 1);
    memcpy(changed, *text, before);
    strcpy(changed + before, by);
    strcat(changed, place + count);
    free(*text);
    *text = changed;
}

bool json_replace(char **text, const char *key, const char *value) {
    const char *place = find_value(*text, key);
    if (!place) return false;
    const char *end = *place == '"' ? behind_string(place) : place + strcspn(place, ",} \t\r\n");
    splice(text, place, (size_t)(end - place), value);
    return true;
}

void json_insert(char **text, const char *entry) { splice(text, strchr(*text, '{') + 1, 0, entry); }
