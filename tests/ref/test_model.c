/* Models as tables: published parameter counts, consistency of the tables, and the errors of wrong
 * specifications. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/blocks/models.h"
#include "../../ref/model.h"
#include "../test.h"
#include "presets.h"

typedef struct {
    const char *spec;
    size_t params;
} Count;

/* ResNet-14: paper Table 10.  ResNet-50 and -101: torchvision's 25,557,032 and 44,549,160 with a
 * 3x3 stem for a 7x7 one and 10 or 100 classes for 1000.  gpt2: as published.  G and L: paper Table
 * 8, 12LH^2 + 13LH + (V + 1024)H + 2H and L(4H^2 + 3HF + 2H) + 2VH + H.  The others: as many as
 * the tensors of their published weights hold. */
static const Count counts[] = {
    {"resnet8", 78042},          {"resnet14", 175258},
    {"resnet20", 272474},        {"resnet:depth=20,fused=0", 272474},
    {"resnet50", 23520842},      {"resnet101", 42697380},
    {"gpt2", 124439808},         {"gpt2-0.15B", 152791296},
    {"G-1.6B", 1615775744},      {"G-5.4B", 5495263360},
    {"G-10B", 10787035776},      {"G-20B", 20992596864},
    {"L-1.5B", 1565329408},      {"L-6.0B", 6027481088},
    {"L-11B", 11792814080},      {"L-23B", 23323480064},
    {"L-7B", 6738415616},        {"L-70B", 68976648192},
    {"L-405B", 405853388800},    {"tinyllama", 1100048384},
    {"mistral-7B", 7241732096},  {"llama3-8B", 8030261248},
    {"llama3.2-1B", 1235814400}, {"llama3.2-3B", 3212749824},
    {"qwen2.5-0.5B", 494032768}, {"qwen2.5-7B", 7615616512},
    {"qwen3-0.6B", 596049920},   {"qwen3-8B", 8190735360},
    {"smollm3-3B", 3075098624},  {"olmo2-7B", 7298617344},
};

static void parameters_are_as_published(const void *argument) {
    const Count *row = argument;
    Model *m = model_create(row->spec);
    if (!CHECK(m, "%s", error_message())) return;
    CHECK(m->param_count == row->params, "%zu parameters, not %zu", m->param_count, row->params);
    model_free(m);
}

#define QWEN2 "qwen2:layers=1,width=40,heads=6,groups=2,head_size=8,ffn=24,context=4,vocabulary=11"
#define GPT "gpt:layers=1,width=8,heads=2,context=4,vocabulary=11"

/* An optimizer like Muon treats matrices in a way of their own.  The tensors that a packed tensor
 * contains are as many as the names in Hugging Face's files. */
static void parameters_say_what_they_are(void) {
    static const struct {
        const char *spec, *name;
        ParamKind kind;
        int parts, rows[PARAM_PARTS];
    } rows[] = {{QWEN2, "block1.attention.qkv.weight", PARAM_MATRIX, 3, {48, 16, 16}},
                {QWEN2, "block1.attention.qkv.bias", PARAM_VECTOR, 3, {48, 16, 16}},
                {QWEN2, "block1.mlp.gate_up.weight", PARAM_MATRIX, 2, {24, 24}},
                {QWEN2, "block1.mlp.down.weight", PARAM_MATRIX, 1, {40}},
                {QWEN2, "block1.norm1.weight", PARAM_VECTOR, 1, {40}},
                {QWEN2, "embedding.token.weight", PARAM_EMBEDDING, 1, {11}},
                {QWEN2, "head.weight", PARAM_EMBEDDING, 1, {11}},
                {GPT, "embedding.token.weight", PARAM_EMBEDDING, 1, {11}},
                {GPT, "embedding.position.weight", PARAM_EMBEDDING, 1, {4}},
                {"resnet8", "stem.conv.weight", PARAM_MATRIX, 1, {16}},
                {"resnet8", "head.weight", PARAM_EMBEDDING, 1, {10}}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Model *m = model_create(rows[i].spec);
        if (!CHECK(m, "%s", error_message())) return;
        const Param *p = m->param;
        while (p < m->param + m->params && strcmp(p->name, rows[i].name)) p++;
        if (CHECK(p < m->param + m->params, "no %s", rows[i].name))
            CHECK(p->kind == rows[i].kind && p->parts == rows[i].parts &&
                      !memcmp(p->part_rows, rows[i].rows, sizeof rows[i].rows),
                  "%s: kind %d, %d parts", p->name, (int)p->kind, p->parts);
        model_free(m);
    }
}

static void every_preset_exists(void) {
    for (const Preset *p = model_presets; p->name; p++) {
        Model *by_name = model_create(p->name), *by_spec = model_create(p->spec);
        if (!CHECK(by_name && by_spec, "%s: %s", p->name, error_message())) continue;
        CHECK(strcmp(by_name->name, p->name) == 0, "%s is called %s", p->name, by_name->name);
        CHECK(strcmp(by_name->spec, by_spec->spec) == 0, "%s: %s and %s", p->name, by_name->spec,
              by_spec->spec);
        model_free(by_name);
        model_free(by_spec);
    }
}

static void a_preset_may_be_changed(void) {
    Model *m = model_create("gpt2:context=64,vocabulary=256");
    if (!CHECK(m, "%s", error_message())) return;
    CHECK(m->input.w == 64 && m->outputs == 256 && m->targets == 64 && m->blocks == 14, "%s",
          m->spec);
    model_free(m);
    m = model_create("gpt2:eps=0.00001");
    if (!CHECK(m, "%s", error_message())) return;
    CHECK(!strstr(m->spec, "eps"), "%s tells the usual epsilon", m->spec);
    model_free(m);
}

static const char *const specs[] = {
    "resnet:depth=8,width=4,size=9,classes=3",
    "resnet:depth=14,fused=0",
    "bottleneck:depth=26,width=8",
    "gpt:layers=2,width=16,heads=4,context=8",
    "llama:layers=2,width=16,heads=4,context=8",
    "gpt:layers=2,width=16,heads=4,context=8,eps=1.25e-06",
    "llama:layers=2,width=16,heads=4,context=8,eps=9.999999974752427e-07",
    "llama:layers=2,width=16,heads=4,context=8,rope_base=10000.000000000002",
    "L-23B",
    "llama:layers=2,width=16,heads=4,context=8,groups=2,head_size=6,tied=1,rope_base=500000",
    "llama3.2-3B",
    "mistral:layers=2,width=16,heads=4,context=8,window=5",
    "qwen2:layers=2,width=16,heads=4,context=8,tied=1",
    "qwen3:layers=2,width=16,heads=4,context=8,head_size=8,attention_bias=1",
    "smollm3:layers=4,width=16,heads=4,context=8,rope_skip=2",
    "smollm3:layers=4,width=16,heads=4,context=8,rope_skip=9",
    "olmo2:layers=2,width=16,heads=4,context=8",
    /* The smallest model of each family. */
    "gpt:layers=1,width=1,heads=1,context=1,vocabulary=2",
    "llama:layers=1,width=2,heads=1,ffn=1,context=1,vocabulary=2,groups=1,head_size=2",
    "resnet:depth=8,width=1,classes=2,size=4",
    "bottleneck:depth=14,width=1,classes=2,size=8",
    "mlp:inputs=1,layers=1,width=1,classes=2",
};

static void sizes_are_set(void) {
    Model *m = model_create("llama3.2-3B");
    if (!CHECK(m, "%s", error_message())) return;
    const TransformerSizes *s = &m->transformer;
    CHECK(!strcmp(m->family, "llama") && s->layers == 28 && s->width == 3072 && s->ffn == 8192 &&
              s->context == 8192 && s->vocabulary == 128256 && s->tied && s->eps == 1e-5,
          "%s: %s of width %d", m->spec, m->family, s->width);
    CHECK(s->attention.heads == 24 && s->attention.groups == 8 && s->attention.d == 128 &&
              s->attention.rope.base == 500000 && s->attention.rope.factor == 32,
          "%d heads, %d groups, %d each", s->attention.heads, s->attention.groups, s->attention.d);
    model_free(m);
    m = model_create("gpt2");
    if (!CHECK(m, "%s", error_message())) return;
    CHECK(!strcmp(m->family, "gpt") && m->transformer.ffn == 3072 && m->transformer.tied &&
              m->transformer.attention.groups == 12 && m->transformer.attention.d == 64,
          "%s: feed-forward of %d", m->spec, m->transformer.ffn);
    model_free(m);
    m = model_create("llama:layers=1,width=48,heads=2,context=8");
    if (!CHECK(m, "%s", error_message())) return;
    CHECK(m->transformer.ffn == 128, "%s: feed-forward of %d", m->spec, m->transformer.ffn);
    model_free(m);
    m = model_create("resnet101:fused=0");
    if (!CHECK(m, "%s", error_message())) return;
    CHECK(!strcmp(m->spec, "bottleneck:depth=101,width=64,classes=100,size=32,fused=0") &&
              !strcmp(m->family, "bottleneck") && m->transformer.layers == 0,
          "%s: a %s", m->spec, m->family);
    model_free(m);
}

static bool same_shape(Shape a, Shape b) { return a.h == b.h && a.w == b.w && a.c == b.c; }

static void check_node(const Model *m, const Block *block, const Node *node, bool *used) {
    static const int none = -1;
    CHECK(same_shape(node->in_shape, m->value[node->in].shape) &&
              same_shape(node->out_shape, m->value[node->out].shape),
          "%s: a node's shapes are not those of its values", block->name);
    const int reads[] = {node->in, node->skip};
    for (int i = 0; i < 2; i++) {
        int v = reads[i];
        CHECK(v == none || v == block->in || (v >= block->first_value && v < node->out),
              "%s: reads value %d, which is neither the block's input nor made before", block->name,
              v);
    }
    CHECK(node->out >= block->first_value && node->out < block->end_value, "%s: writes value %d",
          block->name, node->out);
    const int params[] = {node->weight, node->bias};
    for (int i = 0; i < 2; i++)
        if (params[i] >= 0) used[params[i]] = true;
    CHECK((node->kind == OP_BATCHNORM) == (node->running >= 0), "%s: running statistics",
          block->name);
}

/* A network can be cut between any two blocks only if no node reads across. */
static void tables_are_consistent(const void *spec) {
    Model *m = model_create(spec);
    if (!CHECK(m, "%s", error_message())) return;
    bool *used = calloc((size_t)m->params, sizeof *used);
    if (!used) abort();
    int in = 0, node = 0, param = 0, value = 1;
    size_t total = 0;
    for (int b = 0; b < m->blocks; b++) {
        const Block *block = &m->block[b];
        CHECK(
            block->first_node == node && block->first_param == param && block->first_value == value,
            "%s does not begin where the last block ends", block->name);
        CHECK(block->in == in && block->out == block->end_value - 1, "%s: input and output",
              block->name);
        for (int i = block->first_node; i < block->end_node; i++)
            check_node(m, block, &m->node[i], used);
        for (int p = block->first_param; p < block->end_param; p++)
            CHECK(m->param[p].block == b, "%d", p);
        for (int v = block->first_value; v < block->end_value; v++)
            CHECK(m->value[v].block == b, "%d", v);
        in = block->out;
        node = block->end_node;
        param = block->end_param;
        value = block->end_value;
    }
    CHECK(node == m->nodes && param == m->params && value == m->values,
          "blocks leave something out");
    for (int p = 0; p < m->params; p++) {
        size_t count = 1;
        for (int i = 0; i < m->param[p].rank; i++) count *= (size_t)m->param[p].dim[i];
        CHECK(used[p], "%s is used by no node", m->param[p].name);
        CHECK(count == m->param[p].count, "%s: %zu numbers", m->param[p].name, count);
        for (int q = 0; q < p && m->params < 500; q++)
            CHECK(strcmp(m->param[p].name, m->param[q].name), "two are called %s",
                  m->param[p].name);
        total += count;
    }
    CHECK(total == m->param_count, "%zu parameters", total);
    free(used);
    model_free(m);
}

static void the_canonical_specification_gives_the_same(const void *spec) {
    Model *m = model_create(spec), *again = m ? model_create(m->spec) : NULL;
    if (CHECK(m && again, "%s", error_message()))
        CHECK(strcmp(m->spec, again->spec) == 0 && m->nodes == again->nodes &&
                  m->param_count == again->param_count &&
                  m->transformer.eps == again->transformer.eps &&
                  m->transformer.attention.rope.base == again->transformer.attention.rope.base,
              "%s became %s", m->spec, again->spec);
    model_free(m);
    model_free(again);
}

/* Settings with their default values are left out of the canonical specification, so that
 * checkpoints from before a setting existed name the same model. */
static void defaults_are_left_out(void) {
    Model *plain = model_create("llama:layers=2,width=16,heads=4,context=8");
    Model *explicit = model_create(
        "llama:layers=2,width=16,heads=4,context=8,groups=4,head_size=4,"
        "tied=0,rope_base=10000,rope_factor=1");
    if (CHECK(plain && explicit, "%s", error_message()))
        CHECK(strcmp(plain->spec, explicit->spec) == 0 && !strstr(explicit->spec, "groups"), "%s",
              explicit->spec);
    model_free(plain);
    model_free(explicit);
}

/* The longest possible specification is not cut off. */
static void long_specifications_are_whole(void) {
    Model *m = model_create(
        "smollm3:layers=4096,width=65536,heads=1024,ffn=1048576,context=1048576,vocabulary="
        "16777216,"
        "eps=9.9999999747524271e-07,groups=512,head_size=1022,tied=1,rope_base=1234567.8901234567,"
        "rope_factor=12.345678901234567,rope_low=1.2345678901234567,rope_high=4.5678901234567811,"
        "rope_original=16777216,attention_bias=1,rope_skip=4095");
    if (!CHECK(m, "%s", error_message())) return;
    Model *again = model_create(m->spec);
    CHECK(again && again->param_count == m->param_count && strcmp(m->name, m->spec) == 0 &&
              strstr(m->spec, "rope_skip=4095"),
          "%s", m->spec);
    model_free(again);
    model_free(m);
}

/* In each pass every weight is multiplied once per token. */
static void flops_are_two_per_weight_and_token(void) {
    Model *m = model_create("gpt2:context=64");
    if (!CHECK(m, "%s", error_message())) return;
    double weights = 12.0 * 12 * 768 * 768 + 50257.0 * 768, attention = 12.0 * 64 * 64 * 768;
    static const double attention_factor[] = {2, 5, 0};
    for (Pass phase = 0; phase < PASSES; phase++) {
        double sum = 0, expected = 2 * weights * 64 + attention_factor[phase] * attention;
        for (int i = 0; i < m->nodes; i++) sum += node_flops(&m->node[i], phase);
        CHECK(sum == expected, "phase %d: %.0f, not %.0f", phase, sum, expected);
    }
    model_free(m);
}

/* With 2 groups the projections of keys and values are narrower, but attention has as many
 * products. The width is 24, with 6 heads of 8. */
static void grouped_flops(void) {
    Model *m = model_create(
        "llama:layers=3,width=24,heads=6,head_size=8,groups=2,ffn=40,context=10,"
        "vocabulary=50,tied=1");
    if (!CHECK(m, "%s", error_message())) return;
    double weights = 3.0 * (24 * (6 + 2 * 2) * 8 + 48 * 24 + 3 * 24 * 40) + 50 * 24,
           attention = 3.0 * 10 * 10 * 48;
    static const double attention_factor[] = {2, 5, 0};
    for (Pass phase = 0; phase < PASSES; phase++) {
        double sum = 0, expected = 2 * weights * 10 + attention_factor[phase] * attention;
        for (int i = 0; i < m->nodes; i++) sum += node_flops(&m->node[i], phase);
        CHECK(sum == expected, "phase %d: %.0f, not %.0f", phase, sum, expected);
    }
    model_free(m);
}

typedef struct {
    const char *spec, *says[3]; /* pieces of the line */
} Refusal;

/* clang-format off */
static const Refusal refusals[] = {
    {"", {"no model \"\"", "resnet8 resnet14", " mlp:"}},
    {"resnet21", {"no model \"resnet21\"", " presets: resnet8 ", " olmo2-7B; families: resnet: "}},
    {"resnet:", {"resnet needs depth="}},
    {"resnet:depth=21", {"depth 21 is not 6n+2", "8, 14, 20"}},
    {"resnet:depth=7", {"depth=7 is not in 8.."}},
    {"bottleneck:depth=51", {"no bottleneck ResNet of depth 51", "50, 101"}},
    {"gpt:layers=2", {"gpt needs width="}},
    {"gpt:layers=2,width=10,heads=3,context=4", {"width 10 is not a multiple of 3 heads"}},
    {"llama:layers=2,width=6,heads=2,context=4", {"even head size, not 3"}},
    {"gpt:layers=2,widht=10", {"gpt has no setting \"widht\"", "layers width heads context vocabulary"}},
    {"gpt:layers=2,layers=3", {"layers is given twice"}},
    {"gpt:layers", {"\"layers\" is not key=value"}},
    {"gpt:layers,width=4", {"\"layers\" is not key=value"}},
    {"gpt:layers=,width=4", {"model: layers= is not a whole number"}},
    {"gpt:layers=2.5,width=4", {"model: layers=2.5 is not a whole number"}},
    {"gpt:layers=2,width=1e3,heads", {"model: width=1e3 is not a whole number"}},
    {"gpt:layers=0", {"layers=0 is not in 1.."}},
    {"gpt:layers=-3", {"layers=-3 is not in 1.."}},
    {"gpt:layers=99999999999999999999", {"is not in 1.."}},
    {"gpt:layers=1000000", {"layers=1000000 is not in 1.."}},
    {"gpt:layers=1,width=1000000,heads=1,context=4", {"width=1000000 is not in 1.."}},
    {"gpt2:layers=", {"is not a whole number"}},
    {"gpt2:eps=0", {"eps=0 is not in 1e-12..1"}},
    {"gpt2:eps=nan", {"eps=nan is not in 1e-12..1"}},
    {"gpt2:eps=", {"eps= is not a number"}},
    {"smollm3:rope_skips=2", {"smollm3 has no setting \"rope_skips\"", "it has layers width", " attention_bias rope_skip"}},
    {"resnet8:eps=1e-5", {"resnet has no setting \"eps\""}},
    {"L-7B:groups=0", {"groups=0 is not in 1.."}},
    {"L-7B:groups=5", {"32 heads are not a multiple of 5 groups"}},
    {"L-7B:groups=64", {"32 heads are not a multiple of 64 groups"}},
    {"L-7B:head_size=3", {"even head size, not 3"}},
    {"L-7B:heads=3", {"width 4096 is not a multiple of 3 heads; give head_size"}},
    {"L-7B:tied=2", {"tied=2 is not in 0..1"}},
    {"L-7B:rope_base=0", {"rope_base=0 is not in 1.."}},
    {"L-7B:rope_base=nan", {"rope_base=nan is not in 1.."}},
    {"L-7B:rope_factor=0.5", {"rope_factor=0.5 is not in 1.."}},
    {"L-7B:rope_factor=8,rope_low=1", {"rope_low, rope_high and rope_original go together"}},
    {"L-7B:rope_low=1,rope_high=4,rope_original=64", {"with a rope_factor above 1"}},
    {"L-7B:rope_factor=8,rope_low=4,rope_high=4,rope_original=64", {"rope_low=4 is not below rope_high=4"}},
    {"gpt2:groups=4", {"gpt has no setting \"groups\""}},
    {"resnet8:classes=1", {"classes=1 is not in 2.."}},
    {"resnet:depth=8,size=100000000", {"size=100000000 is not in"}},
};
/* clang-format on */

static void a_wrong_specification_is_refused(const void *argument) {
    const Refusal *row = argument;
    Model *m = model_create(row->spec);
    if (!CHECK(!m, "\"%s\" is accepted", row->spec)) model_free(m);
    for (int i = 0; i < 3 && row->says[i] && !m; i++)
        CHECK(strstr(error_message(), row->says[i]), "\"%s\" does not say \"%s\"", error_message(),
              row->says[i]);
}

void test_model(void) {
    RUN(sizes_are_set);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        RUN_ROW(counts[i].spec, parameters_are_as_published, &counts[i]);
    RUN(every_preset_exists);
    RUN(presets_are_as_published);
    RUN(parameters_say_what_they_are);
    RUN(a_preset_may_be_changed);
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        RUN_ROW(specs[i], tables_are_consistent, specs[i]);
        RUN_ROW(specs[i], the_canonical_specification_gives_the_same, specs[i]);
    }
    RUN(flops_are_two_per_weight_and_token);
    RUN(grouped_flops);
    RUN(defaults_are_left_out);
    RUN(long_specifications_are_whole);
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++)
        RUN_ROW(refusals[i].spec, a_wrong_specification_is_refused, &refusals[i]);
}
