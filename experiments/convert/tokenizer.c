/* Which tokenizer a model's directory has. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../data/checksum.h"
#include "../../data/file.h"
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

int convert_is_gpt2_tokenizer(bool *is, const char *dir) {
    /* Of the 50,000 lines of vocab.bpe (Radford et al. 2019) but the first, computed from that. */
    static const uint64_t gpt2 = 0xE9CB995B5ED1931E;
    uint64_t sum = CHECKSUM_START;
    char path[PATH_BYTES];
    size_t bytes;
    *is = false;
    if (path_join(path, dir, "tokenizer.json")) return -1;
    if (access(path, F_OK)) return 0;
    char *text = (char *)file_read("init", path, "it belongs to the model", &bytes);
    if (!text) return -1;
    cJSON *root = cJSON_ParseWithLength(text, bytes);
    const cJSON *model = cJSON_GetObjectItemCaseSensitive(root, "model"), *merge;
    cJSON_ArrayForEach(merge, cJSON_GetObjectItemCaseSensitive(model, "merges")) {
        sum = add_merge(sum, merge);
    }
    *is = sum == gpt2;
    cJSON_Delete(root);
    free(text);
    return 0;
}
