#include "json.h"

#include <stdlib.h>
#include <string.h>

#include "../../data/file.h"
#include "../../ref/base/error.h"

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
