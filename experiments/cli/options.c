/* Reading the command line, and flags from a file. */

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../../ref/base/error.h"
#include "command_line.h"

void options_defaults(Options *options, Command command) {
    memset(options, 0, sizeof *options);
    options->command = command;
    for (int row = 0; option_table[row].name; row++)
        if (option_table[row].default_text && (option_table[row].commands & command))
            option_assign(options, row, option_table[row].default_text);
}

void command_line_defaults(CommandLine *line, Command command) {
    memset(line, 0, sizeof *line);
    options_defaults(&line->options, command);
}

int options_find(const char *name, Command command) {
    for (int row = 0; option_table[row].name; row++)
        if ((option_table[row].commands & command) && strcmp(option_table[row].name, name) == 0)
            return row;
    return -1;
}

bool options_given(const Options *options, const char *name) {
    int row = options_find(name, options->command);
    return row >= 0 && options->given[row];
}

static int refuse_name(const char *name, Command command) {
    const char *command_name = command_find(command)->name;
    for (int i = 0; i < COMMANDS; i++)
        if (options_find(name, command_table[i].command) >= 0)
            return error_set("bcd %s has no flag --%s; it is a flag of bcd %s", command_name, name,
                             command_table[i].name);
    const char *near = nearest_name(name, command);
    if (near)
        return error_set("bcd %s has no flag --%.60s; did you mean --%s?", command_name, name,
                         near);
    return error_set("bcd %s has no flag --%.60s; bcd %s --help lists them", command_name, name,
                     command_name);
}

/* --steps and --epochs both set the length of a training.  Returns the row of the other one; -1 for
 * any other flag. */
static int other_length(const char *name, Command command) {
    if (strcmp(name, "steps") == 0) return options_find("epochs", command);
    return strcmp(name, "epochs") == 0 ? options_find("steps", command) : -1;
}

int options_set(Options *options, const char *name, const char *value) {
    int row = options_find(name, options->command), other = other_length(name, options->command);
    if (row < 0) return refuse_name(name, options->command);
    if (option_assign(options, row, value ? value : "1")) return -1;
    options->given[row] = true;
    if (other < 0) return 0;
    options->given[other] = false; /* the last one set counts */
    if (strcmp(name, "steps") == 0)
        options->epochs = 0;
    else
        options->steps = 0;
    return 0;
}

int options_take(Options *to, const Options *from, const char *const *names, bool only_named) {
    for (int row = 0; option_table[row].name; row++) {
        const char *name = option_table[row].name;
        const char *const *named = names;
        while (*named && strcmp(*named, name)) named++;
        if (from->given[row] && only_named == (*named != NULL) &&
            options_find(name, to->command) >= 0 &&
            options_set(to, name, options_format(from, row).text))
            return -1;
    }
    return 0;
}

/* Finds the row of a flag; -1 when there is none.  "no-NAME" is the flag NAME turned off, if that
 * takes no value. */
static int find_flag(const char *name, Command command, bool *off) {
    int row = options_find(name, command);
    *off = row < 0 && strncmp(name, "no-", 3) == 0;
    if (!*off) return row;
    row = options_find(name + 3, command);
    return row >= 0 && option_table[row].kind == OPTION_IS_FLAG ? row : -1;
}

/* Sets a flag that a user typed, which may be done once, or turns it off.  value NULL: there was
 * none. */
static int set_once(Options *options, int row, const char *value, bool off) {
    const Option *option = &option_table[row];
    const char *name = option->name;
    const int other = other_length(name, options->command);
    if (options->given[row]) return error_set("--%s is given twice", name);
    if (other >= 0 && options->given[other])
        return error_set("--steps and --epochs both say how long to train; give one");
    if (option->kind == OPTION_IS_FLAG)
        return value ? error_set("--%s takes no value", name)
                     : options_set(options, name, off ? "0" : NULL);
    if (!value)
        return error_set("--%s needs a value: --%s %s", name, name, option_argument(option).text);
    /* An empty value is often an unset variable of the shell; only a prompt may be empty. */
    if (!*value && option->kind == OPTION_IS_TEXT && strcmp(name, "prompt") != 0)
        return error_set("--%s \"\": the value is empty; it takes %s", name, option->argument);
    return options_set(options, name, value);
}

/* Returns true for an argument that is a flag of the command, "--lr" or "--lr=1": a flag before it
 * has no value. */
static bool is_flag(const char *argument, Command command) {
    bool off;
    if (strncmp(argument, "--", 2) != 0) return false;
    return find_flag(text_of("%.*s", (int)strcspn(argument + 2, "="), argument + 2).text, command,
                     &off) >= 0;
}

/* Parses the flag at argv[*at], with its value there or in the next argument; moves *at behind
 * it. */
static int parse_flag(Options *options, int argc, char **argv, int *at) {
    const char *flag = argv[*at] + 2, *equals = strchr(flag, '=');
    const Text name = text_of("%.*s", (int)strcspn(flag, "="), flag);
    bool off;
    const int row = find_flag(name.text, options->command, &off);
    if (row < 0) return refuse_name(name.text, options->command);
    ++*at;
    const char *value = equals ? equals + 1 : NULL;
    if (!equals && *at < argc && option_table[row].kind != OPTION_IS_FLAG &&
        !is_flag(argv[*at], options->command))
        value = argv[(*at)++];
    return set_once(options, row, value, off);
}

static int parse_command(CommandLine *line, const char *name) {
    for (int i = 0; i < COMMANDS; i++)
        if (strcmp(command_table[i].name, name) == 0) {
            command_line_defaults(line, command_table[i].command);
            return 0;
        }
    const char *near = nearest_name(name, 0);
    if (near && strcmp(near, name) == 0)
        return error_set("bcd %s is the program bcd-%s, which is not next to bcd; make builds it",
                         name, name);
    if (near) return error_set("no command \"%.60s\"; did you mean bcd %s?", name, near);
    return error_set("no command \"%.60s\"; bcd --help lists them", name);
}

static bool asks_help(const char *argument) {
    return strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0;
}

/* ---- --config: flags in a file, one in a line ------------------------------------------------ */

/* Cuts a line "--name = value  # comment" in place; *name is "" if the line holds no flag. */
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

/* Sets a flag of the file, unless the command line has it, as given[] tells. */
static int set_line(Options *options, const bool *given, const char *name, const char *value) {
    bool off;
    const int row = find_flag(name, options->command, &off);
    const int other = other_length(name, options->command);
    if (row < 0) return refuse_name(name, options->command);
    if (strcmp(name, "config") == 0)
        return error_set("--config cannot be given in a file of flags");
    if (given[row] || (other >= 0 && given[other])) return 0;
    return set_once(options, row, *value ? value : NULL, off);
}

/* Editors on Windows begin a file in UTF-8 with it. */
static const char byte_order_mark[] = "\xef\xbb\xbf";

/* Reads a line as fgets does, and returns its bytes, of which some may be zero. */
static size_t read_line(char *line, size_t size, FILE *file) {
    size_t bytes = 0;
    int c = 0;
    while (bytes + 1 < size && c != '\n' && (c = getc(file)) != EOF) line[bytes++] = (char)c;
    line[bytes] = 0;
    return bytes;
}

static int read_config(Options *options) {
    char line[2 * OPTION_TEXT], *name, *value;
    bool given[OPTIONS_MAX];
    size_t bytes;
    int failed = 0;
    FILE *file = fopen(options->config, "r");
    if (!file) return error_set("--config %s: cannot read: %s", options->config, strerror(errno));
    memcpy(given, options->given, sizeof given);
    for (int number = 1; !failed && (bytes = read_line(line, sizeof line, file)) > 0; number++) {
        const bool whole = line[bytes - 1] == '\n' || feof(file), zero = memchr(line, 0, bytes);
        const size_t mark = number == 1 && strncmp(line, byte_order_mark, 3) == 0 ? 3 : 0;
        cut_line(line + mark, &name, &value);
        if (zero)
            failed = error_set("%s:%d: the line has a zero byte; is the file text in UTF-8?",
                               options->config, number);
        else if (!whole)
            failed = error_set("%s:%d: the line is longer than %zu characters", options->config,
                               number, sizeof line - 2);
        else if (*name && (*value == '"' || *value == '\''))
            failed = error_set("%s:%d: the value begins with a quote; values have none",
                               options->config, number);
        else if (*name && set_line(options, given, name, value))
            failed = error_set("%s:%d: %s", options->config, number, error_message());
    }
    if (ferror(file)) /* a directory, for example */
        failed = error_set("--config %s: cannot read: %s", options->config, strerror(errno));
    fclose(file);
    return failed;
}

/* ---- the command line ------------------------------------------------------------------------ */

static int check_positionals(const CommandLine *line) {
    const CommandInfo *info = command_find(line->options.command);
    if (line->positionals < info->min)
        return error_set("bcd %s needs %s; see bcd %s --help", info->name, info->arguments,
                         info->name);
    if (line->positionals > info->max)
        return error_set("unexpected argument \"%.60s\" of bcd %s; flags start with --",
                         line->positional[info->max], info->name);
    return 0;
}

int command_line_parse(CommandLine *line, int argc, char **argv) {
    memset(line, 0, sizeof *line);
    if (argc < 2 || asks_help(argv[1]) || strcmp(argv[1], "help") == 0) {
        int failed = argc > 2 && !asks_help(argv[1]) ? parse_command(line, argv[2]) : 0;
        line->help = true;
        return failed;
    }
    if (parse_command(line, argv[1])) return -1;
    for (int at = 2; at < argc; at++)
        if (asks_help(argv[at])) line->help = true;
    for (int at = 2; at < argc && !line->help;) {
        if (strncmp(argv[at], "--", 2) == 0 && argv[at][2]) {
            if (parse_flag(&line->options, argc, argv, &at)) return -1;
        } else if (argv[at][0] == '-' && argv[at][1]) {
            return error_set("\"%.60s\": flags start with two dashes", argv[at]);
        } else if (!*argv[at]) {
            return error_set("\"\": the name of a file is empty");
        } else if (strlen(argv[at]) >= OPTION_TEXT) {
            return error_set("\"%.40s...\": longer than %d characters", argv[at], OPTION_TEXT - 1);
        } else if (line->positionals == POSITIONAL_MAX) {
            return error_set("more than %d files", POSITIONAL_MAX);
        } else {
            line->positional[line->positionals++] = argv[at++];
        }
    }
    if (line->help) return 0;
    return *line->options.config && read_config(&line->options) ? -1 : check_positionals(line);
}
