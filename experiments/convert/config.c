/* config.json of any family. */
#include <stdlib.h>
#include <string.h>

#include "../../data/file.h"
#include "../../ref/base/error.h"
#include "../../ref/blocks/models.h"
#include "families.h"
#include "json.h"

/* ---- reading --------------------------------------------------------------------------------- */

/* Weights that are stored as fewer bits, by transformers, by older versions or by MLX. */
static int refuse_quantised(Config *c) {
    static const char *const keys[] = {"quantization_config", "compression_config", "quantization"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (config_find(c, keys[i]))
            return error_set(
                "%s: %s: the weights are quantised; get the original, unquantised model", c->path,
                keys[i]);
    return 0;
}

/* What all families have switched off. */
static int check_common(Config *c) {
    return config_must_be(c, "is_encoder_decoder", "false", NULL) ||
           config_must_be(c, "add_cross_attention", "false", NULL) ||
           config_must_be(c, "pruned_heads", "{}", NULL);
}

static const char *model_type(Config *config) {
    const cJSON *type = config_find(config, "model_type");
    return cJSON_IsString(type) ? type->valuestring : "not given";
}

static int refuse_type(Config *config) {
    Text known = {""};
    for (const HfFamily *f = hf_families; f->model_type; f++)
        text_add(&known, "%s%s",
                 f == hf_families  ? ""
                 : f[1].model_type ? ", "
                                   : " and ",
                 f->model_type);
    return error_set("%s: model_type is %.60s; supported are %s", config->path, model_type(config),
                     known.text);
}

int convert_spec(char spec[OPTION_TEXT], const char *dir, int context) {
    char path[PATH_BYTES];
    if (convert_is_tensors(dir))
        return error_set("%s: holds only tensors; bcd train --init takes it, together with --model",
                         dir);
    if (convert_check_foreign(dir) || path_join(path, dir, "config.json")) return -1;
    cJSON *root = json_read(path, "a model directory has one");
    if (!root) return -1;
    Config config = {.path = path, .inside = "", .root = root};
    const HfFamily *family = hf_families;
    while (family->model_type && strcmp(family->model_type, model_type(&config))) family++;
    int failed = !family->model_type
                     ? refuse_type(&config)
                     : refuse_quantised(&config) || family->read(spec, &config, context, family) ||
                           check_common(&config) || config_check_rest(&config, true);
    cJSON_Delete(root);
    /* Only the model knows the ranges of some settings. */
    Model *model = failed ? NULL : model_create(spec);
    if (!failed && !model) failed = error_set("%s: %s", path, error_message());
    model_free(model);
    return failed ? -1 : 0;
}

Model *convert_model(const char *dir, int context) {
    char spec[OPTION_TEXT];
    return convert_spec(spec, dir, context) ? NULL : model_create(spec);
}

int convert_positions_of(const char *dir) {
    Model *whole = convert_model(dir, 0);
    const int positions = whole ? whole->input.w : -1;
    model_free(whole);
    return positions;
}

/* Returns the family of a specification, and those of its settings that another one does not have.
 * How long the texts are is no property of the weights. */
static Text apart(const char *spec, const char *other) {
    const char *setting = strchr(spec, ':') + 1, *comma = " with ";
    const Text others = text_of(",%s,", strchr(other, ':') + 1);
    Text text = text_of("%.*s", (int)strcspn(spec, ":"), spec);
    for (int length; *setting; setting += length + (setting[length] == ',')) {
        length = (int)strcspn(setting, ",");
        const bool shared = strstr(others.text, text_of(",%.*s,", length, setting).text);
        if (shared || strncmp(setting, "context=", 8) == 0) continue;
        text_add(&text, "%s%.*s", comma, length, setting);
        comma = ", ";
    }
    return text;
}

int convert_check_config(const Model *model, const char *dir) {
    if (!dir_has(dir, "config.json") && !dir_has(dir, "adapter_config.json")) return 0;
    Model *whole = convert_model(dir, 0);
    if (!whole) return -1;
    const Text theirs = apart(whole->spec, model->spec), ours = apart(model->spec, whole->spec);
    model_free(whole);
    if (strcmp(theirs.text, ours.text) == 0) return 0;
    return error_set("%s: config.json says %s, --model %s; leave out --model", dir, theirs.text,
                     ours.text);
}

/* ---- writing --------------------------------------------------------------------------------- */

static cJSON *describe(const Model *model) {
    cJSON *root = cJSON_CreateObject();
    const HfFamily *family = hf_family_of(model);
    cJSON_AddStringToObject(root, "model_type", family->model_type);
    cJSON_AddItemToArray(cJSON_AddArrayToObject(root, "architectures"),
                         cJSON_CreateString(family->architecture));
    family->write(root, model);
    if (family->write_more) family->write_more(root, model->transformer);
    cJSON_AddNumberToObject(root, "vocab_size", model->transformer.vocabulary);
    return root;
}

/* Writes the config.json of a model of ours. */
static int write_described(const char *path, const Model *model, const char *kind) {
    cJSON *root = describe(model);
    cJSON_AddStringToObject(root, "torch_dtype", kind);
    char *text = cJSON_Print(root);
    cJSON_Delete(root);
    if (!text) return error_set("%s: out of memory", path);
    const size_t length = strlen(text);
    text[length] = '\n'; /* in place of the zero behind it */
    int failed = file_write(path, text, length + 1);
    cJSON_free(text);
    return failed;
}

/* Writes a copy of a config.json for weights of another kind.  All else stays as it is written: to
 * transformers 1.0 is not the same as 1. */
static int write_copied(const char *path, const char *init, const char *kind) {
    static const char *const keys[] = {"dtype",
                                       "torch_dtype"}; /* its newer name, and its older one */
    char from[PATH_BYTES];
    size_t bytes;
    if (path_join(from, init, "config.json")) return -1;
    char *text = (char *)file_read("export", from, "it belongs to the model", &bytes);
    if (!text) return -1;
    Text value = text_of("\"%s\"", kind), entry = text_of("\"torch_dtype\": %s,", value.text);
    bool found = false;
    for (int i = 0; i < 2; i++) found |= json_replace(&text, keys[i], value.text);
    if (!found) json_insert(&text, entry.text);
    const int failed = file_write(path, text, strlen(text));
    free(text);
    return failed;
}

int convert_write_config(const char *path, const Model *model, NumberKind numbers,
                         const char *init) {
    const char *kind = numbers == NUMBER_BF16 ? "bfloat16" : "float32";
    return init ? write_copied(path, init, kind) : write_described(path, model, kind);
}
