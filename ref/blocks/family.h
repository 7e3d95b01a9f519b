/* A family of models: its name, the settings that a specification "family:key=value,..." may give,
 * and a function that builds its blocks.  To add one: its file in this folder, its declaration
 * below, its row in the table of models.c, and a small specification in tests/ref/tiny.c, with
 * which all shared tests of models run it. */
#pragma once

#include "builder.h"

enum { MAX_KEYS = 17 };

/* A setting, its range, and its value where a specification does not give it. */
typedef struct {
    const char *name;
    double default_value, min, max;
    enum {
        KEY_REQUIRED, /* must be given */
        KEY_DEFAULT,
        KEY_OPTIONAL /* written into Model.spec only if it differs from the default */
    } kind;
    bool real; /* need not be a whole number */
} FamilyKey;

#define REQUIRED(name, min, max) \
    { name, 0, min, max, KEY_REQUIRED, false }
#define DEFAULT(name, default_value, min, max) \
    { name, default_value, min, max, KEY_DEFAULT, false }
#define OPTIONAL(name, min, max) \
    { name, 0, min, max, KEY_OPTIONAL, false }
#define OPTIONAL_REAL(name, default_value, min, max) \
    { name, default_value, min, max, KEY_OPTIONAL, true }

typedef struct Family Family;
typedef struct {
    const Family *family;
    double value[MAX_KEYS]; /* in the order of family->key; 0 if not given and without default */
} Settings;

struct Family {
    const char *name;
    /* The names of those that are not used are NULL; the compiler warns of too many.  Use
     * family_keys to count them, since none may be left. */
    FamilyKey key[MAX_KEYS];
    /* Computes derived settings, and resets those that say what the default says anyway.  May be
     * NULL. */
    void (*derive)(Settings *settings);
    /* Appends the blocks and sets the sizes of the model.  -1 and an error if the settings do not
     * fit together or memory runs out. */
    int (*build)(Model *model, const Settings *settings);
};

extern const Family family_resnet, family_bottleneck, family_gpt, family_llama, family_mistral,
    family_qwen2, family_qwen3, family_smollm3, family_olmo2, family_mlp;

/* Returns the number of a family's settings. */
int family_keys(const Family *family);
/* Returns the index of the setting with a name of `length` characters, or -1 if there is none. */
int setting_index(const Family *family, const char *name, size_t length);
/* Return a setting by name; the program aborts if the family does not have it. */
double *setting_pointer(Settings *settings, const char *name);
double setting(const Settings *settings, const char *name);
int setting_int(const Settings *settings, const char *name);
