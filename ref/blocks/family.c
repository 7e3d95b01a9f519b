/* Settings of a family by name. */
#include "family.h"

#include <stdlib.h>
#include <string.h>

int family_keys(const Family *family) {
    int keys = 0;
    while (keys < MAX_KEYS && family->key[keys].name) keys++;
    return keys;
}

int setting_index(const Family *family, const char *name, size_t length) {
    for (int k = 0; k < family_keys(family); k++) {
        const char *known = family->key[k].name;
        if (strlen(known) == length && strncmp(known, name, length) == 0) return k;
    }
    return -1;
}

static int known_index(const Settings *settings, const char *name) {
    const int k = setting_index(settings->family, name, strlen(name));
    if (k < 0) abort();
    return k;
}

double *setting_pointer(Settings *settings, const char *name) {
    return &settings->value[known_index(settings, name)];
}

double setting(const Settings *settings, const char *name) {
    return settings->value[known_index(settings, name)];
}

int setting_int(const Settings *settings, const char *name) { return (int)setting(settings, name); }
