/* Hugging Face's names of our parameters. */
#include <stdio.h>
#include <string.h>

#include "convert.h"

const char convert_positions[] = "transformer.wpe.weight";

/* A module.  Its tensors are called weight and bias in both. */
typedef struct {
    const char *ours, *theirs[CONVERT_PARTS];
} Module;

/* Those of a layer come first. */
static const Module gpt_modules[] = {
    {"norm1", {"ln_1"}},
    {"attention.qkv", {"attn.c_attn"}},
    {"attention.out", {"attn.c_proj"}},
    {"norm2", {"ln_2"}},
    {"mlp.up", {"mlp.c_fc"}},
    {"mlp.down", {"mlp.c_proj"}},
    {"embedding.token", {"transformer.wte"}},
    {"embedding.position", {"transformer.wpe"}},
    {"head.norm", {"transformer.ln_f"}},
    {NULL, {NULL}},
};
static const Module llama_modules[] = {
    {"norm1", {"input_layernorm"}},
    {"attention.qkv", {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"}},
    {"attention.out", {"self_attn.o_proj"}},
    {"norm2", {"post_attention_layernorm"}},
    {"mlp.gate_up", {"mlp.gate_proj", "mlp.up_proj"}},
    {"mlp.down", {"mlp.down_proj"}},
    {"embedding.token", {"model.embed_tokens"}},
    {"head.norm", {"model.norm"}},
    {"head", {"lm_head"}},
    {NULL, {NULL}},
};

/* By the name of our family. */
typedef struct {
    const char *family, *layers;
    const Module *module;
    bool transposed; /* linear layers are stored as [in][out] */
} Naming;
static const Naming namings[] = {
    {"gpt", "transformer.h", gpt_modules, true},
    {"llama", "model.layers", llama_modules, false},
};

static const Naming *naming_of(const Model *model) {
    for (size_t i = 0; i < sizeof namings / sizeof *namings; i++)
        if (strcmp(namings[i].family, model->family) == 0) return &namings[i];
    return NULL;
}

bool convert_knows(const Model *model) { return naming_of(model); }

void convert_layer_name(char name[CONVERT_NAME], const Model *model, int layer) {
    const Naming *naming = naming_of(model);
    snprintf(name, CONVERT_NAME, "%s.%d.%s.weight", naming->layers, layer,
             naming->module->theirs[0]);
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
    const Param *p = &model->param[param];
    const char *tensor = strrchr(p->name, '.'); /* ".weight" */
    Text prefix = {""};
    int layer, skip = 0;
    if (sscanf(p->name, "block%d.%n", &layer, &skip) == 1 && skip)
        prefix = text_of("%s.%d.", naming->layers, layer - 1);
    const Text ours = text_of("%.*s", (int)(tensor - p->name) - skip, p->name + skip);
    const Module *module = naming->module;
    while (module->ours && strcmp(module->ours, ours.text)) module++;
    *theirs = (TheirName){.transposed = naming->transposed && skip && p->rank == 2};
    for (int i = 0; i < CONVERT_PARTS && module->theirs[i]; i++)
        snprintf(theirs->name[theirs->parts++], CONVERT_NAME, "%s%s%s", prefix.text,
                 module->theirs[i], tensor);
    divide_rows(theirs, model, param);
}
