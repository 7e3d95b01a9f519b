/* Which tokenizer a model's directory has. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../data/file.h"
#include "../../ref/base/checksum.h"
#include "convert.h"
#include "json.h"

/* Adds the two parts of a merge to a checksum, as a line of merges.txt has them.  Newer files have
 * a list of two. */
static uint64_t add_merge(uint64_t sum, const cJSON *merge) {
    const cJSON *second = cJSON_GetArrayItem(merge, 1);
    const cJSON *part[] = {cJSON_IsArray(merge) ? merge->child : merge, second};
    for (int i = 0; i < 2; i++) {
        const char *text = cJSON_IsString(part[i]) ? part[i]->valuestring : "";
        if (i && second) sum = checksum_add(sum, ' ');
        sum = checksum_bytes(sum, (const unsigned char *)text, strlen(text));
    }
    return checksum_add(sum, '\n');
}

/* Returns the checksum of the merges in a tokenizer.json. */
static uint64_t sum_of_json(const char *text, size_t bytes) {
    uint64_t sum = CHECKSUM_START;
    cJSON *root = cJSON_ParseWithLength(text, bytes);
    const cJSON *model = cJSON_GetObjectItemCaseSensitive(root, "model"), *merge;
    cJSON_ArrayForEach(merge, cJSON_GetObjectItemCaseSensitive(model, "merges")) {
        sum = add_merge(sum, merge);
    }
    cJSON_Delete(root);
    return sum;
}

/* Returns that of a merges.txt, whose first line may name a version. */
static uint64_t sum_of_lines(const char *text) {
    uint64_t sum = CHECKSUM_START;
    if (strncmp(text, "#version", 8) == 0) text += strcspn(text, "\n");
    while (*(text += strspn(text, "\r\n"))) {
        const size_t length = strcspn(text, "\r\n");
        sum = checksum_add(checksum_bytes(sum, (const unsigned char *)text, length), '\n');
        text += length;
    }
    return sum;
}

int convert_is_gpt2_tokenizer(bool *is, const char *dir) {
    /* Of the 50,000 lines of vocab.bpe (Radford et al. 2019) but the first, computed from that. */
    static const uint64_t gpt2 = 0xE9CB995B5ED1931E;
    const bool json = dir_has(dir, "tokenizer.json");
    char path[PATH_BYTES];
    size_t bytes;
    *is = false;
    if (path_join(path, dir, json ? "tokenizer.json" : "merges.txt")) return -1;
    if (!json && access(path, F_OK)) return 0;
    char *text = (char *)file_read("init", path, "it belongs to the model", &bytes);
    if (!text) return -1;
    *is = (json ? sum_of_json(text, bytes) : sum_of_lines(text)) == gpt2;
    free(text);
    return 0;
}
