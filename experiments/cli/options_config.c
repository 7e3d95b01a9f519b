/* --config FILE: flags in a file, one in a line. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../../ref/error.h"
#include "options_parts.h"

/* Cuts a line "--name = value  # comment" in place; *name "" where nothing is left. */
static void cut_line(char *line, char **name, char **value) {
    for (char *c = line; *c; c++)
        if (*c == '#' && (c == line || isspace((unsigned char)c[-1]))) *c = 0;
    for (size_t end = strlen(line); end && isspace((unsigned char)line[end - 1]);) line[--end] = 0;
    *name = line + strspn(line, " \t");
    if (strncmp(*name, "--", 2) == 0) *name += 2;
    *value = *name + strcspn(*name, " \t=");
    if (!**value) return;
    *(*value)++ = 0;
    *value += strspn(*value, " \t=");
}

/* given: by the command line, which goes over the file. */
static int set_line(Options *options, const bool *given, const char *name, const char *value) {
    const bool length = strcmp(name, "steps") == 0 || strcmp(name, "epochs") == 0;
    const int row = options_find(name, options->command);
    const int steps = options_find("steps", options->command),
              epochs = options_find("epochs", options->command);
    if (row < 0) return options_set(options, name, value); /* says so */
    if (strcmp(name, "config") == 0) return error_set("a file of flags names no other");
    if (given[row] || (length && ((steps >= 0 && given[steps]) || (epochs >= 0 && given[epochs]))))
        return 0;
    if (options->given[row]) return error_set("--%s is given twice", name);
    const bool flag = option_table[row].kind == OPTION_IS_FLAG;
    if (flag && *value) return error_set("--%s takes no value", name);
    if (!flag && !*value)
        return error_set("--%s needs a value: %s %s", name, name, option_table[row].argument);
    return options_set(options, name, flag ? NULL : value);
}

int options_read_config(Options *options) {
    char line[2 * OPTION_TEXT], *name, *value;
    bool given[OPTIONS_MAX];
    int failed = 0;
    FILE *file = fopen(options->config, "r");
    if (!file) return error_set("--config %s: cannot read: %s", options->config, strerror(errno));
    memcpy(given, options->given, sizeof given);
    for (int number = 1; !failed && fgets(line, sizeof line, file); number++) {
        cut_line(line, &name, &value);
        if (!*name || set_line(options, given, name, value) == 0) continue;
        failed = error_set("%s:%d: %s", options->config, number, error_message());
    }
    fclose(file);
    return failed;
}
