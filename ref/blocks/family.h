/* A family of models is a row: a name, the settings that a specification "family:key=value,..." may
 * give, and how its blocks are built.  Each file of this folder has one, or two kin.  To add one:
 * its file, and its line in the table of model.c. */
#ifndef REF_BLOCKS_FAMILY_H
#define REF_BLOCKS_FAMILY_H

#include "builder.h"

enum { MAX_KEYS = 15 };

/* A setting: its range, and what it is where it is not given. */
typedef struct {
    const char *name;
    double default_value, min, max;
    enum { KEY_REQUIRED, KEY_DEFAULT, KEY_DERIVED, KEY_OPTIONAL } kind;
    bool real; /* not only whole numbers */
} FamilyKey;

/* REQUIRED has no default; DERIVED is worked out from the others; OPTIONAL is written only where it
 * is other than its default. */
#define REQUIRED(name, min, max) \
    { name, 0, min, max, KEY_REQUIRED, false }
#define DEFAULT(name, default_value, min, max) \
    { name, default_value, min, max, KEY_DEFAULT, false }
#define DERIVED(name, min, max) \
    { name, 0, min, max, KEY_DERIVED, false }
#define OPTIONAL(name, min, max) \
    { name, 0, min, max, KEY_OPTIONAL, false }
#define OPTIONAL_REAL(name, default_value, min, max) \
    { name, default_value, min, max, KEY_OPTIONAL, true }

typedef struct Family Family;
typedef struct {
    const Family *family;
    double value[MAX_KEYS]; /* of its keys; each in its range, or 0 where it was left out */
} Settings;

struct Family {
    const char *name;
    FamilyKey key[MAX_KEYS + 1]; /* a NULL name ends */
    /* Works out DERIVED settings, and drops what is as it would be anyway.  NULL: nothing to do. */
    void (*derive)(Settings *settings);
    /* Appends the blocks, and puts the sizes into the model.  -1 and an error. */
    int (*build)(Builder *builder, const Settings *settings);
};

extern const Family family_resnet, family_bottleneck, family_gpt, family_llama;

/* Where a setting is, or -1: the family has none of that name, of so many letters. */
int setting_at(const Family *family, const char *name, size_t length);
/* A setting of the family, which must have it. */
double *setting_in(Settings *settings, const char *name);
double setting(const Settings *settings, const char *name);
int whole(const Settings *settings, const char *name);

#endif
