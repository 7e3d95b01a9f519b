/* The parts of a training that other commands open alone: model, data, partition. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../../data/tokens.h"
#include "../../ref/base/error.h"
#include "../../ref/blocks/models.h"
#include "../convert/convert.h"
#include "../store/rundir.h"
#include "setup.h"

/* Appends ",key=value", or ":key=value" to the bare name of a preset, unless the key is there. */
static void add_key(Text *spec, const char *key, int value) {
    const char *settings = strchr(spec->text, ':');
    if (value <= 0 || (settings && strstr(settings, key))) return;
    text_add(spec, "%s%s=%d", settings ? "," : ":", key, value);
}

Model *setup_model(const char *spec, int outputs, int context) {
    Model *model = model_create(spec);
    if (!model) return NULL;
    Text whole = text_of("%s", spec);
    if (outputs != model->outputs)
        add_key(&whole, model->tokens ? "vocabulary" : "classes", outputs);
    if (model->tokens && context != model->input.w) add_key(&whole, "context", context);
    model_free(model);
    model = model_create(whole.text);
    if (!model || !context || (model->tokens && model->input.w == context)) return model;
    if (model->tokens)
        error_set("--context %d: %s sets context=%d itself; give one of them", context, spec,
                  model->input.w);
    else
        error_set("--context is for models that read tokens; %s reads images", spec);
    model_free(model);
    return NULL;
}

static int check_sizes(const Model *model, const Dataset *data) {
    Shape want = model->input, have = data->input;
    const bool flat = want.h * want.w == 1 && shape_count(want) == shape_count(have); /* an MLP */
    if (!model->tokens && !flat && (want.h != have.h || want.w != have.w || want.c != have.c))
        return error_set("the model %s reads images of %d x %d x %d, %s has %d x %d x %d",
                         model->name, want.h, want.w, want.c, data->name, have.h, have.w, have.c);
    if (data->classes > model->outputs)
        return error_set("the model %s has %d %s, %s has %d", model->name, model->outputs,
                         model->tokens ? "tokens" : "classes", data->name, data->classes);
    if (data->samples < 1) return error_set("%s: no samples", data->name);
    return 0;
}

/* Checks that a tokenizer of the model's directory made the tokens, where both are known; sets
 * *own_tokens if it did. */
static int check_maker(bool *own_tokens, const char *dir, const Dataset *data) {
    const char *made = data->tokenizer;
    const bool gpt2 = strcmp(made, "gpt2") == 0;
    const bool known =
        gpt2 || !strncmp(made, "gpt2:", 5) || !strcmp(made, "bytes") || !strncmp(made, "hf:", 3);
    char path[PATH_BYTES], own[TOKENIZER_NAME] = "";
    for (int i = 0; i < TOKENIZER_FILES && known; i++) {
        if (path_join(path, dir, tokenizer_files[i])) return -1;
        if (access(path, F_OK)) continue;
        if (tokenizer_fingerprint(own, path)) return -1;
        *own_tokens = strcmp(own, made) == 0;
        if (*own_tokens) return 0;
    }
    /* The older files say by their merges alone whether they are GPT-2's. */
    const bool older = known && !*own && dir_has(dir, "vocab.json");
    bool same = !*own && !older;
    if (gpt2 && !same && convert_is_gpt2_tokenizer(&same, dir)) return -1;
    if (same) return 0;
    if (older && tokenizer_of_model(own, dir))
        return error_set("%s was made with the tokenizer %s; %s", data->name, made,
                         error_message());
    return error_set(
        "%s was made with the tokenizer %s, and that of %s is %s; make it again with bcd tokenize "
        "--tokenizer %s",
        data->name, made, dir, own, quoted(dir).text);
}

/* Returns true for a training that goes on: its data have been checked, and have a checksum. */
static bool has_begun(const Options *o) {
    return *o->resume && access(rundir_path(o->resume, "checkpoint.h5").text, F_OK) == 0;
}

int setup_check_data(const Setup *s, const Dataset *data) {
    const char *init = s->model->tokens && !has_begun(&s->options) ? s->options.init : "";
    /* A model's vocabulary may be padded: to a multiple of 128, as is usual, or by more where its
     * own tokenizer made the tokens, as Qwen's are. */
    const int padded = (data->classes + 127) / 128 * 128;
    bool own =
        strncmp(s->tokenizer, "hf:", 3) == 0; /* which was that of the model, when it began */
    if (check_sizes(s->model, data)) return -1;
    if (*s->tokenizer && strcmp(s->tokenizer, data->tokenizer) != 0)
        return error_set("%s was made with the tokenizer %s, the training data with %s", data->name,
                         data->tokenizer, s->tokenizer);
    if (*init && !*s->tokenizer && check_maker(&own, init, data)) return -1;
    if (*init && !own && s->model->outputs > padded)
        return error_set("the model has %d tokens, but %s was made with %s, which has %d",
                         s->model->outputs, data->name,
                         *data->tokenizer ? data->tokenizer : "another tokenizer", data->classes);
    return 0;
}

Dataset *setup_data(const Options *options, const Model *model, Split split) {
    int limit = options->limit, samples = options->eval_samples;
    const bool own = *options->valid && split != SPLIT_TRAIN;
    const char *name = own ? options->valid : options->data;
    const int tokens = data_is_tokens(name);
    if (tokens < 0) return NULL;
    if (model->tokens != tokens) {
        error_set("the model %s reads %s, %s holds %s", model->name,
                  model->tokens ? "tokens" : "images", name, tokens ? "tokens" : "images");
        return NULL;
    }
    if (split == SPLIT_VALID && samples && (!limit || samples < limit)) limit = samples;
    DataRequest request = {.name = name,
                           .dir = options->data_dir[0] ? options->data_dir : NULL,
                           .split = split,
                           .whole = *options->valid,
                           .context = model->tokens ? model->input.w : 0,
                           .augment = options->augment,
                           .seed = options->seed,
                           .limit = limit};
    return data_open(&request);
}

/* The first and the last block of a ResNet are small, and training them in each phase was the best
 * of what was tried on one (paper_repro.md).  A GPT gained little, and its embedding is large.  It
 * leaves no frozen prefix. */
int setup_default_ends(Options *o) {
    const bool own_way = options_given(o, "always-active") || *o->partition || o->cache ||
                         o->device_cache || o->placement == PLACEMENT_FIGURE2;
    if (own_way || o->submodels < 2 || data_is_tokens(o->data)) return 0;
    Model *model = setup_model(o->model, 0, 0);
    if (!model) return -1;
    if (model->blocks - 2 >= o->submodels) strcpy(o->always_active, "ends");
    model_free(model);
    return 0;
}

int setup_default_context(Options *o, int *model_context) {
    enum { TOKENS = 1024 }; /* models of 8,192 and more would need tens of times the memory */
    if (!*o->init || convert_is_tensors(o->init) || o->context) return 0;
    const int positions = convert_positions_of(o->init);
    if (positions > TOKENS) {
        if (model_context) *model_context = positions;
        o->context = TOKENS;
    }
    return positions < 0 ? -1 : 0;
}

bool setup_has_batch_norm(const Model *model) {
    bool found = false;
    for (int n = 0; n < model->nodes; n++) found |= model->node[n].kind == OP_BATCHNORM;
    return found;
}

int setup_partition(Partition *partition, const Model *model, const Options *o) {
    const char *always = o->always_active;
    if (*o->partition ? partition_parse(partition, model, o->partition, always)
                      : partition_balanced(partition, model, o->submodels, always))
        return -1;
    int failed = 0;
    if (options_given(o, "submodels") && o->submodels != partition->submodels)
        failed = error_set("--submodels %d: --partition \"%s\" has %d", o->submodels, o->partition,
                           partition->submodels);
    failed = failed || (*o->submodel_lr && partition_lr(partition, o->submodel_lr));
    if (failed) partition_free(partition);
    return failed ? -1 : 0;
}

void setup_resolve_phase(Options *o) {
    enum { UPDATES = 20 };
    const double turns = (double)o->steps / o->submodels;
    if (!*o->init || options_given(o, "switch-every")) return;
    o->switch_rule.kind = SWITCH_STEPS;
    o->switch_rule.every = fmax(1, fmin(UPDATES, floor(turns)));
}
