/* From a specification to a model: "preset" or "family:key=value,...". */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "blocks/builder.h"
#include "error.h"

#define LLAMA_3 "vocabulary=128256,rope_base=500000"
#define LLAMA_3_2 LLAMA_3 ",tied=1,rope_factor=32,rope_low=1,rope_high=4,rope_original=8192"

const Preset model_presets[] = {
    {"resnet8", "resnet:depth=8", "paper Table 2"},
    {"resnet14", "resnet:depth=14", "paper Tables 2, 10"},
    {"resnet20", "resnet:depth=20", "paper Table 2"},
    {"resnet50", "bottleneck:depth=50", "paper Table 2"},
    {"resnet101", "bottleneck:depth=101,classes=100", "paper Table 2, most likely on CIFAR-100"},
    {"gpt2", "gpt:layers=12,width=768,heads=12,context=1024", "GPT-2 small, 124M"},
    {"gpt2-0.15B", "gpt:layers=16,width=768,heads=12,context=1024", "stands for the paper's 0.15B"},
    {"G-1.6B", "gpt:layers=30,width=2048,heads=16,context=1024", "paper Table 8"},
    {"G-5.4B", "gpt:layers=28,width=3968,heads=32,context=1024", "paper Table 8"},
    {"G-10B", "gpt:layers=56,width=3968,heads=32,context=1024", "paper Table 8"},
    {"G-20B", "gpt:layers=110,width=3968,heads=32,context=1024", "paper Table 8"},
    {"L-1.5B", "llama:layers=30,width=2048,heads=16,ffn=5050,context=1024", "paper Table 8"},
    {"L-6.0B", "llama:layers=32,width=4096,heads=32,ffn=9200,context=1024", "paper Table 8"},
    {"L-11B", "llama:layers=64,width=4096,heads=32,ffn=9200,context=1024", "paper Table 8"},
    {"L-23B", "llama:layers=128,width=4096,heads=32,ffn=9200,context=1024", "paper Table 8"},
    {"L-7B", "llama:layers=32,width=4096,heads=32,ffn=11008,context=1024", "LLaMA 7B"},
    {"L-70B", "llama:layers=80,width=8192,heads=64,groups=8,ffn=28672,context=1024", "Llama 2 70B"},
    {"L-405B",
     "llama:layers=126,width=16384,heads=128,groups=8,ffn=53248,context=1024," LLAMA_3
     ",rope_factor=8,rope_low=1,rope_high=4,rope_original=8192",
     "Llama 3.1 405B"},
    {"tinyllama", "llama:layers=22,width=2048,heads=32,groups=4,ffn=5632,context=2048",
     "TinyLlama 1.1B"},
    {"mistral-7B",
     "llama:layers=32,width=4096,heads=32,groups=8,ffn=14336,context=4096,rope_base=1000000",
     "Mistral 7B v0.2, by its shapes a LLaMA"},
    {"llama3-8B", "llama:layers=32,width=4096,heads=32,groups=8,ffn=14336,context=8192," LLAMA_3,
     "Llama 3 8B"},
    {"llama3.2-1B", "llama:layers=16,width=2048,heads=32,groups=8,ffn=8192,context=8192," LLAMA_3_2,
     "Llama 3.2 1B"},
    {"llama3.2-3B", "llama:layers=28,width=3072,heads=24,groups=8,ffn=8192,context=8192," LLAMA_3_2,
     "Llama 3.2 3B"},
    {NULL, NULL, NULL},
};

typedef enum { FAMILY_RESNET, FAMILY_BOTTLENECK, FAMILY_GPT, FAMILY_LLAMA } Family;

enum { MAX_KEYS = 15 };

/* A setting of a family: its range, and its default (0: required or derived). */
typedef struct {
    const char *name;
    double fallback, least, most;
    bool real;   /* not only whole numbers */
    bool seldom; /* other than the default, and only then told */
} Key;

#define WHOLE(name, fallback, least, most) \
    { name, fallback, least, most, false, false }
#define SELDOM(name, least, most) \
    { name, 0, least, most, false, true }
#define SELDOM_REAL(name, fallback, least, most) \
    { name, fallback, least, most, true, true }
#define NORM_EPS SELDOM_REAL("eps", 1e-5, 1e-12, 1)

static const struct {
    const char *name;
    Key key[MAX_KEYS + 1];
} families[] = {
    [FAMILY_RESNET] = {"resnet",
                       {WHOLE("depth", 0, 8, 1202), WHOLE("width", 16, 1, 4096),
                        WHOLE("classes", 10, 2, 100000), WHOLE("size", 32, 4, 1024),
                        WHOLE("fused", 1, 0, 1)}},
    [FAMILY_BOTTLENECK] = {"bottleneck",
                           {WHOLE("depth", 0, 14, 152), WHOLE("width", 64, 1, 4096),
                            WHOLE("classes", 10, 2, 100000), WHOLE("size", 32, 8, 1024),
                            WHOLE("fused", 1, 0, 1)}},
    [FAMILY_GPT] = {"gpt",
                    {WHOLE("layers", 0, 1, 4096), WHOLE("width", 0, 1, 65536),
                     WHOLE("heads", 0, 1, 1024), WHOLE("context", 0, 1, 1 << 20),
                     WHOLE("vocabulary", 50257, 2, 1 << 24), NORM_EPS}},
    [FAMILY_LLAMA] = {"llama",
                      {WHOLE("layers", 0, 1, 4096), WHOLE("width", 0, 2, 65536),
                       WHOLE("heads", 0, 1, 1024), WHOLE("ffn", 0, 1, 1 << 20),
                       WHOLE("context", 0, 1, 1 << 20), WHOLE("vocabulary", 32000, 2, 1 << 24),
                       NORM_EPS, SELDOM("groups", 1, 1024), SELDOM("head_size", 2, 1024),
                       SELDOM("tied", 0, 1), SELDOM_REAL("rope_base", 10000, 1, 1e12),
                       SELDOM_REAL("rope_factor", 1, 1, 1e6), SELDOM_REAL("rope_low", 0, 1e-6, 1e6),
                       SELDOM_REAL("rope_high", 0, 1e-6, 1e6),
                       SELDOM("rope_original", 1, 1 << 24)}},
};
enum { FAMILIES = sizeof families / sizeof *families };

static int refuse_name(const char *spec) {
    char known[512] = "";
    for (const Preset *p = model_presets; p->name; p++) {
        if (p != model_presets) strcat(known, " ");
        strcat(known, p->name);
    }
    return error_set(
        "model: no model \"%.40s\"; presets: %s; families: resnet: bottleneck: gpt: "
        "llama:",
        spec, known);
}

/* -1: the family has no such setting. */
static int key_at(Family family, const char *name, size_t length) {
    for (int k = 0; families[family].key[k].name; k++) {
        const char *known = families[family].key[k].name;
        if (strlen(known) == length && strncmp(known, name, length) == 0) return k;
    }
    return -1;
}

/* 0 where the family has no such setting. */
static double setting(Family family, const double *value, const char *name) {
    const int k = key_at(family, name, strlen(name));
    return k < 0 ? 0 : value[k];
}

static int refuse_key(Family family, const char *name, size_t length) {
    char names[192] = "";
    for (int k = 0; families[family].key[k].name; k++) {
        strcat(names, " ");
        strcat(names, families[family].key[k].name);
    }
    return error_set("model: %s has no setting \"%.*s\"; it has%s", families[family].name,
                     (int)(length < 40 ? length : 40), name, names);
}

/* Reads "key=value,key=value" into value[]; 0 marks what was not given. */
static int parse_settings(Family family, const char *text, double *value, bool *given) {
    while (*text) {
        size_t length = strcspn(text, "=,");
        if (text[length] != '=') return error_set("model: \"%.40s\" is not key=value", text);
        int k = key_at(family, text, length);
        if (k < 0) return refuse_key(family, text, length);
        const Key *key = &families[family].key[k];
        if (given[k]) return error_set("model: %s is given twice", key->name);
        const char *number = text + length + 1;
        char *end;
        double parsed = key->real ? strtod(number, &end) : (double)strtol(number, &end, 10);
        if (end == number || (*end && *end != ','))
            return error_set("model: %s=%.20s is not a %s", key->name, number,
                             key->real ? "number" : "whole number");
        if (!(parsed >= key->least && parsed <= key->most))
            return error_set("model: %s=%.15g is not in %.15g..%.15g", key->name, parsed,
                             key->least, key->most);
        value[k] = parsed;
        given[k] = true;
        text = *end ? end + 1 : end;
    }
    return 0;
}

static int set_defaults(Family family, double *value, const bool *given) {
    for (int k = 0; families[family].key[k].name; k++) {
        const Key *key = &families[family].key[k];
        if (given[k]) continue;
        if (key->fallback == 0 && !key->seldom && strcmp(key->name, "ffn") != 0)
            return error_set("model: %s needs %s=...", families[family].name, key->name);
        value[k] = key->fallback;
    }
    return 0;
}

/* The feed-forward's default is 8/3 of the width (Touvron et al. 2023), rounded up; and what is as
 * it would be by default is not told. */
static void derive_llama(double *value) {
    const Family family = FAMILY_LLAMA;
    const int width = (int)setting(family, value, "width"),
              heads = (int)setting(family, value, "heads");
    double *ffn = value + key_at(family, "ffn", 3), *groups = value + key_at(family, "groups", 6),
           *size = value + key_at(family, "head_size", 9);
    if (*ffn == 0) *ffn = (8 * width / 3 + 31) / 32 * 32;
    if ((int)*groups == heads) *groups = 0;
    if ((int)*size * heads == width) *size = 0;
}

/* -1 and an error where the heads or the scaling of positions cannot be. */
static int check_attention(const Attention *a, int width, bool given_size) {
    const Rope *r = &a->rope;
    const int given = (r->low > 0) + (r->high > 0) + (r->original > 0);
    if (!given_size && width % a->heads)
        return error_set("model: width %d is not a multiple of %d heads%s", width, a->heads,
                         r->base > 0 ? "; give head_size" : "");
    if (a->heads % a->groups)
        return error_set("model: %d heads are not a multiple of %d groups", a->heads, a->groups);
    if (r->base > 0 && a->d % 2)
        return error_set("model: rotary positions need an even head size, not %d", a->d);
    if (given % 3 || (given && !(r->factor > 1)))
        return error_set(
            "model: rope_low, rope_high and rope_original go together, with a rope_factor above 1");
    if (given && !(r->low < r->high))
        return error_set("model: rope_low=%g is not below rope_high=%g", r->low, r->high);
    return 0;
}

static int build_transformer(Builder *b, Family family, const double *v) {
    const bool llama = family == FAMILY_LLAMA;
    const int width = (int)setting(family, v, "width"), heads = (int)setting(family, v, "heads"),
              groups = (int)setting(family, v, "groups"), d = (int)setting(family, v, "head_size");
    const TransformerSizes s = {
        .layers = (int)setting(family, v, "layers"),
        .width = width,
        .ffn = llama ? (int)setting(family, v, "ffn") : 4 * width,
        .context = (int)setting(family, v, "context"),
        .vocabulary = (int)setting(family, v, "vocabulary"),
        .attention = {.heads = heads,
                      .groups = groups ? groups : heads,
                      .d = d ? d : width / heads,
                      .rope = {.base = setting(family, v, "rope_base"),
                               .factor = setting(family, v, "rope_factor"),
                               .low = setting(family, v, "rope_low"),
                               .high = setting(family, v, "rope_high"),
                               .original = setting(family, v, "rope_original")},
                      .causal = true},
        .tied = !llama || setting(family, v, "tied") > 0,
        .eps = setting(family, v, "eps")};
    if (check_attention(&s.attention, width, d > 0)) return -1;
    if (llama)
        build_llama(b, s);
    else
        build_gpt(b, s);
    return 0;
}

static int build_family(Builder *b, Family family, const double *v) {
    if (family == FAMILY_GPT || family == FAMILY_LLAMA) return build_transformer(b, family, v);
    ResnetSizes s = {(int)v[0], (int)v[1], (int)v[2], (int)v[3], .fused = v[4] != 0};
    return family == FAMILY_RESNET ? build_resnet(b, s) : build_bottleneck(b, s);
}

static void write_spec(Model *model, Family family, const double *value) {
    int used = snprintf(model->spec, sizeof model->spec, "%s:", families[family].name);
    for (int k = 0; families[family].key[k].name; k++) {
        const Key *key = &families[family].key[k];
        if (key->seldom && value[k] == key->fallback) continue;
        used += snprintf(model->spec + used, sizeof model->spec - (size_t)used, "%s%s=%.15g",
                         k ? "," : "", key->name, value[k]);
    }
}

/* `over` holds settings that replace those of `settings`: a preset's, changed by hand. */
static Model *build(Family family, const char *settings, const char *over) {
    double value[MAX_KEYS] = {0};
    bool given[MAX_KEYS] = {false}, given_over[MAX_KEYS] = {false};
    if (parse_settings(family, settings, value, given) ||
        parse_settings(family, over, value, given_over))
        return NULL;
    for (int k = 0; k < MAX_KEYS; k++) given[k] = given[k] || given_over[k];
    if (set_defaults(family, value, given)) return NULL;
    if (family == FAMILY_LLAMA) derive_llama(value);
    Model *model = calloc(1, sizeof *model);
    if (!model) {
        error_set("model: out of memory");
        return NULL;
    }
    write_spec(model, family, value);
    Builder builder = {model, false};
    if (build_family(&builder, family, value)) {
        model_free(model);
        return NULL;
    }
    if (builder.failed) {
        error_set("model: out of memory for the tables of %s", model->spec);
        model_free(model);
        return NULL;
    }
    model->outputs = model->value[model->values - 1].shape.c;
    return model;
}

static Model *build_named(const char *spec, const char *over) {
    for (int family = 0; family < FAMILIES; family++) {
        size_t length = strlen(families[family].name);
        if (strncmp(spec, families[family].name, length) == 0 && spec[length] == ':')
            return build((Family)family, spec + length + 1, over);
    }
    refuse_name(spec);
    return NULL;
}

Model *model_create(const char *spec) {
    for (const Preset *p = model_presets; p->name; p++) {
        size_t length = strlen(p->name);
        if (strncmp(spec, p->name, length) || (spec[length] && spec[length] != ':')) continue;
        Model *model = build_named(p->spec, spec[length] ? spec + length + 1 : "");
        if (model) snprintf(model->name, sizeof model->name, "%s", spec);
        return model;
    }
    Model *model = build_named(spec, "");
    if (model) strcpy(model->name, model->spec);
    return model;
}
