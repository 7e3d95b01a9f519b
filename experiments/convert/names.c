/* Their names of our parameters. */
#include <stdio.h>
#include <string.h>

#include "convert.h"

typedef struct {
    const char *ours, *theirs[CONVERT_PARTS];
    bool turned;
} Pair;

/* GPT-2 keeps its linear layers as [in][out]. */
static const Pair gpt_layer[] = {
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
static const Pair gpt_rest[] = {
    {"embedding.token.weight", {"transformer.wte.weight"}, false},
    {"embedding.position.weight", {"transformer.wpe.weight"}, false},
    {"head.norm.weight", {"transformer.ln_f.weight"}, false},
    {"head.norm.bias", {"transformer.ln_f.bias"}, false},
    {NULL, {NULL}, false},
};

static const Pair llama_layer[] = {
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
static const Pair llama_rest[] = {
    {"embedding.token.weight", {"model.embed_tokens.weight"}, false},
    {"head.norm.weight", {"model.norm.weight"}, false},
    {"head.weight", {"lm_head.weight"}, false},
    {NULL, {NULL}, false},
};

int convert_family(const Model *model) {
    if (strncmp(model->spec, "gpt:", 4) == 0) return 1;
    return strncmp(model->spec, "llama:", 6) == 0 ? 2 : 0;
}

static const char *layer_prefix(const Model *model) {
    return convert_family(model) == 1 ? "transformer.h" : "model.layers";
}

void convert_layer_name(char name[CONVERT_NAME], const Model *model, int layer) {
    const Pair *first = convert_family(model) == 1 ? gpt_layer : llama_layer;
    snprintf(name, CONVERT_NAME, "%s.%d.%s", layer_prefix(model), layer, first->theirs[0]);
}

/* Parts are of equal size, but for the keys and values of groups. */
static void divide_rows(TheirName *theirs, const Model *model, int param) {
    const size_t rows = (size_t)model->param[param].dim[0];
    for (int i = 0; i < theirs->parts; i++) theirs->rows[i] = rows / (size_t)theirs->parts;
    if (theirs->parts < 3) return; /* not q, k, v */
    const Attention a = convert_sizes(model).attention;
    theirs->rows[0] = (size_t)(a.heads * a.d);
    theirs->rows[1] = theirs->rows[2] = (size_t)(a.groups * a.d);
}

void convert_name(TheirName *theirs, const Model *model, int param) {
    bool gpt = convert_family(model) == 1;
    const char *name = model->param[param].name;
    char prefix[32] = "";
    int layer, skip = 0;
    const Pair *pair = gpt ? gpt_rest : llama_rest;
    if (sscanf(name, "block%d.%n", &layer, &skip) == 1 && skip) {
        pair = gpt ? gpt_layer : llama_layer;
        snprintf(prefix, sizeof prefix, "%s.%d.", layer_prefix(model), layer - 1);
    }
    *theirs = (TheirName){.parts = 0};
    while (pair->ours && strcmp(pair->ours, name + skip)) pair++;
    theirs->turned = pair->turned;
    for (int i = 0; i < CONVERT_PARTS && pair->theirs[i]; i++)
        snprintf(theirs->name[theirs->parts++], CONVERT_NAME, "%s%s", prefix, pair->theirs[i]);
    divide_rows(theirs, model, param);
}

ConvertSizes convert_sizes(const Model *m) {
    ConvertSizes s = {.layers = m->blocks - 2, .context = m->input.w, .vocabulary = m->outputs};
    s.tied = m->node[m->nodes - 1].weight == 0; /* the first parameter: the embedding's */
    s.width = m->value[m->block[0].out].shape.c;
    for (int i = m->block[1].first_node; i < m->block[1].end_node; i++) {
        if (m->node[i].kind == OP_ATTENTION) s.attention = m->node[i].attention;
        if (m->node[i].eps > 0) s.eps = m->node[i].eps;
    }
    for (int p = m->block[1].first_param; p < m->block[1].end_param; p++)
        if (strcmp(m->param[p].name, "block1.mlp.down.weight") == 0) s.ffn = m->param[p].dim[1];
    return s;
}
