/* Hugging Face's names of our parameters. */
#include <stdio.h>
#include <string.h>

#include "convert.h"

const char convert_positions[] = "transformer.wpe.weight";

typedef struct {
    const char *ours, *theirs[CONVERT_PARTS];
    bool transposed;
} NamePair;

/* GPT-2 stores its linear layers as [in][out]. */
static const NamePair gpt_layer[] = {
    {"norm1.weight", {"ln_1.weight"}, false},
    {"norm1.bias", {"ln_1.bias"}, false},
    {"attention.qkv.weight", {"attn.c_attn.weight"}, true},
    {"attention.qkv.bias", {"attn.c_attn.bias"}, false},
    {"attention.out.weight", {"attn.c_proj.weight"}, true},
    {"attention.out.bias", {"attn.c_proj.bias"}, false},
    {"norm2.weight", {"ln_2.weight"}, false},
    {"norm2.bias", {"ln_2.bias"}, false},
    {"mlp.up.weight", {"mlp.c_fc.weight"}, true},
    {"mlp.up.bias", {"mlp.c_fc.bias"}, false},
    {"mlp.down.weight", {"mlp.c_proj.weight"}, true},
    {"mlp.down.bias", {"mlp.c_proj.bias"}, false},
    {NULL, {NULL}, false},
};
static const NamePair gpt_rest[] = {
    {"embedding.token.weight", {"transformer.wte.weight"}, false},
    {"embedding.position.weight", {convert_positions}, false},
    {"head.norm.weight", {"transformer.ln_f.weight"}, false},
    {"head.norm.bias", {"transformer.ln_f.bias"}, false},
    {NULL, {NULL}, false},
};

static const NamePair llama_layer[] = {
    {"norm1.weight", {"input_layernorm.weight"}, false},
    {"attention.qkv.weight",
     {"self_attn.q_proj.weight", "self_attn.k_proj.weight", "self_attn.v_proj.weight"},
     false},
    {"attention.out.weight", {"self_attn.o_proj.weight"}, false},
    {"norm2.weight", {"post_attention_layernorm.weight"}, false},
    {"mlp.gate_up.weight", {"mlp.gate_proj.weight", "mlp.up_proj.weight"}, false},
    {"mlp.down.weight", {"mlp.down_proj.weight"}, false},
    {NULL, {NULL}, false},
};
static const NamePair llama_rest[] = {
    {"embedding.token.weight", {"model.embed_tokens.weight"}, false},
    {"head.norm.weight", {"model.norm.weight"}, false},
    {"head.weight", {"lm_head.weight"}, false},
    {NULL, {NULL}, false},
};

/* By the name of our family. */
typedef struct {
    const char *family, *layers;
    const NamePair *layer, *rest;
} Naming;
static const Naming namings[] = {
    {"gpt", "transformer.h", gpt_layer, gpt_rest},
    {"llama", "model.layers", llama_layer, llama_rest},
};

static const Naming *naming_of(const Model *model) {
    for (size_t i = 0; i < sizeof namings / sizeof *namings; i++)
        if (strcmp(namings[i].family, model->family) == 0) return &namings[i];
    return NULL;
}

bool convert_knows(const Model *model) { return naming_of(model); }

void convert_layer_name(char name[CONVERT_NAME], const Model *model, int layer) {
    const Naming *naming = naming_of(model);
    snprintf(name, CONVERT_NAME, "%s.%d.%s", naming->layers, layer, naming->layer->theirs[0]);
}

/* Divides the rows of a parameter into its parts, which are equal but for queries, keys and
 * values. */
static void divide_rows(TheirName *theirs, const Model *model, int param) {
    const size_t rows = (size_t)model->param[param].dim[0];
    theirs->columns = model->param[param].count / rows;
    for (int i = 0; i < theirs->parts; i++) theirs->rows[i] = rows / (size_t)theirs->parts;
    if (theirs->parts < 3) return; /* not q, k, v */
    const Attention a = model->transformer.attention;
    theirs->rows[0] = (size_t)(a.heads * a.d);
    theirs->rows[1] = theirs->rows[2] = (size_t)(a.groups * a.d);
}

void convert_name(TheirName *theirs, const Model *model, int param) {
    const Naming *naming = naming_of(model);
    const char *name = model->param[param].name;
    Text prefix = {""};
    int layer, skip = 0;
    const NamePair *pair = naming->rest;
    if (sscanf(name, "block%d.%n", &layer, &skip) == 1 && skip) {
        pair = naming->layer;
        prefix = text_of("%s.%d.", naming->layers, layer - 1);
    }
    *theirs = (TheirName){.parts = 0};
    while (pair->ours && strcmp(pair->ours, name + skip)) pair++;
    theirs->transposed = pair->transposed;
    for (int i = 0; i < CONVERT_PARTS && pair->theirs[i]; i++)
        snprintf(theirs->name[theirs->parts++], CONVERT_NAME, "%s%s", prefix.text, pair->theirs[i]);
    divide_rows(theirs, model, param);
}
