/* Builds a model from its specification, "preset", "preset:key=value,..." or
 * "family:key=value,...". */
#include "models.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/error.h"
#include "builder.h"
#include "family.h"

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
     "mistral:layers=32,width=4096,heads=32,groups=8,ffn=14336,context=4096,rope_base=1000000",
     "Mistral 7B v0.2"},
    {"llama3-8B", "llama:layers=32,width=4096,heads=32,groups=8,ffn=14336,context=8192," LLAMA_3,
     "Llama 3 8B"},
    {"llama3.2-1B", "llama:layers=16,width=2048,heads=32,groups=8,ffn=8192,context=8192," LLAMA_3_2,
     "Llama 3.2 1B"},
    {"llama3.2-3B", "llama:layers=28,width=3072,heads=24,groups=8,ffn=8192,context=8192," LLAMA_3_2,
     "Llama 3.2 3B"},
    {"qwen2.5-0.5B",
     "qwen2:layers=24,width=896,heads=14,groups=2,ffn=4864,context=32768,vocabulary=151936,"
     "eps=1e-6,tied=1,rope_base=1000000",
     "Qwen2.5 0.5B"},
    {"qwen2.5-7B",
     "qwen2:layers=28,width=3584,heads=28,groups=4,ffn=18944,context=32768,vocabulary=152064,"
     "eps=1e-6,rope_base=1000000",
     "Qwen2.5 7B"},
    {"qwen3-0.6B",
     "qwen3:layers=28,width=1024,heads=16,groups=8,head_size=128,ffn=3072,context=32768,"
     "vocabulary=151936,eps=1e-6,tied=1,rope_base=1000000",
     "Qwen3 0.6B"},
    {"qwen3-8B",
     "qwen3:layers=36,width=4096,heads=32,groups=8,head_size=128,ffn=12288,context=32768,"
     "vocabulary=151936,eps=1e-6,rope_base=1000000",
     "Qwen3 8B"},
    {"smollm3-3B",
     "smollm3:layers=36,width=2048,heads=16,groups=4,ffn=11008,context=65536,vocabulary=128256,"
     "eps=1e-6,tied=1,rope_base=5000000",
     "SmolLM3 3B"},
    {"olmo2-7B",
     "olmo2:layers=32,width=4096,heads=32,ffn=11008,context=4096,vocabulary=100352,eps=1e-6,"
     "rope_base=500000",
     "OLMo 2 7B"},
    {NULL, NULL, NULL},
};

static const Family *const families[] = {
    &family_resnet, &family_bottleneck, &family_gpt,     &family_llama, &family_mistral,
    &family_qwen2,  &family_qwen3,      &family_smollm3, &family_olmo2, &family_mlp};
enum { FAMILIES = sizeof families / sizeof *families };

/* Names for an error, each after a space; what has no room is left out. */
typedef struct {
    char text[512];
} NameList;

static void add_name(NameList *names, const char *name, const char *end) {
    const size_t used = strlen(names->text), left = sizeof names->text - used;
    const int length = snprintf(names->text + used, left, " %s%s", name, end);
    if (length < 0 || (size_t)length >= left) names->text[used] = 0;
}

static int refuse_name(const char *spec) {
    NameList known = {""}, names = {""};
    for (const Preset *p = model_presets; p->name; p++) add_name(&known, p->name, "");
    for (int f = 0; f < FAMILIES; f++) add_name(&names, families[f]->name, ":");
    return error_set("model: no model \"%.40s\"; presets:%s; families:%s", spec, known.text,
                     names.text);
}

/* Returns how many characters an error shows of a text that one of `ends` ends. */
static int shown(const char *text, const char *ends) {
    const size_t length = strcspn(text, ends);
    return (int)(length < 40 ? length : 40);
}

static int refuse_key(const Family *family, const char *name) {
    NameList names = {""};
    for (int k = 0; k < family_keys(family); k++) add_name(&names, family->key[k].name, "");
    return error_set("model: %s has no setting \"%.*s\"; it has%s", family->name, shown(name, "="),
                     name, names.text);
}

/* Parses "key=value,key=value" and sets given[k] for each key k that it finds. */
static int parse_settings(Settings *settings, const char *text, bool *given) {
    const Family *family = settings->family;
    while (*text) {
        size_t length = strcspn(text, "=,");
        if (text[length] != '=')
            return error_set("model: \"%.*s\" is not key=value", shown(text, ","), text);
        int k = setting_index(family, text, length);
        if (k < 0) return refuse_key(family, text);
        const FamilyKey *key = &family->key[k];
        if (given[k]) return error_set("model: %s is given twice", key->name);
        const char *number = text + length + 1;
        char *end;
        double parsed = key->real ? strtod(number, &end) : (double)strtol(number, &end, 10);
        if (end == number || (*end && *end != ','))
            return error_set("model: %s=%.*s is not a %s", key->name, shown(number, ","), number,
                             key->real ? "number" : "whole number");
        if (!(parsed >= key->min && parsed <= key->max))
            return error_set("model: %s=%.15g is not in %.15g..%.15g", key->name, parsed, key->min,
                             key->max);
        settings->value[k] = parsed;
        given[k] = true;
        text = *end ? end + 1 : end;
    }
    return 0;
}

static int set_defaults(Settings *settings, const bool *given) {
    const Family *family = settings->family;
    for (int k = 0; k < family_keys(family); k++) {
        const FamilyKey *key = &family->key[k];
        if (given[k]) continue;
        if (key->kind == KEY_REQUIRED)
            return error_set("model: %s needs %s=...", family->name, key->name);
        settings->value[k] = key->default_value;
    }
    if (family->derive) family->derive(settings);
    return 0;
}

/* Returns how many digits tell a number from all others: 15 do for what people write. */
static int digits_of(double value) {
    char text[32];
    snprintf(text, sizeof text, "%.15g", value);
    return strtod(text, NULL) == value ? 15 : 17;
}

static void write_spec(Model *model, const Settings *settings) {
    const Family *family = settings->family;
    int used = snprintf(model->spec, sizeof model->spec, "%s:", family->name);
    for (int k = 0; k < family_keys(family); k++) {
        const FamilyKey *key = &family->key[k];
        if (key->kind == KEY_OPTIONAL && settings->value[k] == key->default_value) continue;
        const double value = settings->value[k];
        used += snprintf(model->spec + used, sizeof model->spec - (size_t)used, "%s%s=%.*g",
                         k ? "," : "", key->name, digits_of(value), value);
    }
}

/* Builds a model of a family from the settings in `text`; those in `over` replace them. */
static Model *build(const Family *family, const char *text, const char *over) {
    Settings settings = {.family = family};
    bool given[MAX_KEYS] = {false}, given_over[MAX_KEYS] = {false};
    if (parse_settings(&settings, text, given) || parse_settings(&settings, over, given_over))
        return NULL;
    for (int k = 0; k < MAX_KEYS; k++) given[k] = given[k] || given_over[k];
    if (set_defaults(&settings, given)) return NULL;
    Model *model = calloc(1, sizeof *model);
    if (!model) return error_null("model: out of memory");
    model->family = family->name;
    write_spec(model, &settings);
    if (family->build(model, &settings)) {
        model_free(model);
        return NULL;
    }
    build_end(model);
    return model;
}

static Model *build_named(const char *spec, const char *over) {
    for (int f = 0; f < FAMILIES; f++) {
        size_t length = strlen(families[f]->name);
        if (strncmp(spec, families[f]->name, length) == 0 && spec[length] == ':')
            return build(families[f], spec + length + 1, over);
    }
    refuse_name(spec);
    return NULL;
}

Model *model_create(const char *spec) {
    for (const Preset *p = model_presets; p->name; p++) {
        size_t length = strlen(p->name);
        if (strncmp(spec, p->name, length) || (spec[length] && spec[length] != ':')) continue;
        Model *model = build_named(p->spec, spec[length] ? spec + length + 1 : "");
        /* A name that is too long gives way to the specification. */
        if (model) strcpy(model->name, strlen(spec) < sizeof model->name ? spec : model->spec);
        return model;
    }
    Model *model = build_named(spec, "");
    if (model) strcpy(model->name, model->spec);
    return model;
}
