#include "settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/base/error.h"
#include "../base/alloc.h"

static const char group[] = "/settings";
static const char undecided[] = "undecided";
static const char *const of_length[] = {"switch-every", "schedule", "warmup"};

static bool stored_in_a_run(const Option *option) {
    return (option->commands & COMMAND_TRAIN) && option->role != OPTION_LOCAL;
}

/* How an option is stored: numbers as numbers, the rest as text. */
static H5Kind kind_of(const Option *option) {
    static const H5Kind kinds[] = {
        [OPTION_IS_REAL] = H5_DOUBLE,  [OPTION_IS_INT] = H5_UINT64,  [OPTION_IS_COUNT] = H5_UINT64,
        [OPTION_IS_BYTES] = H5_UINT64, [OPTION_IS_FLAG] = H5_UINT64, [OPTION_IS_TEXT] = H5_LINE,
        [OPTION_IS_CHOICE] = H5_TEXT,  [OPTION_IS_SWITCH] = H5_TEXT};
    return kinds[option->kind];
}

/* A value as it is stored. */
typedef union {
    double number;
    uint64_t whole;
    char text[H5_PATH];
} Stored;

static void to_stored(Stored *value, H5Kind kind, const char *text) {
    memset(value, 0, h5_kind_size(kind));
    if (kind == H5_DOUBLE)
        value->number = strtod(text, NULL);
    else if (kind == H5_UINT64)
        value->whole = strtoull(text, NULL, 10);
    else
        snprintf(value->text, h5_kind_size(kind), "%s", text);
}

/* The value as it would be typed. */
static Text to_typed(H5Kind kind, const Stored *value) {
    if (kind == H5_DOUBLE) return text_of("%.17g", value->number);
    if (kind == H5_UINT64) return text_of("%llu", (unsigned long long)value->whole);
    return text_of("%.*s", OPTION_TEXT - 1, value->text);
}

static void write_setting(H5File *file, const Options *options, int row) {
    const Option *option = &option_table[row];
    Stored value;
    to_stored(&value, kind_of(option), options_format(options, row).text);
    h5_set(file, group, option->name, kind_of(option), &value);
}

static bool has_no_length(const Options *options) {
    return !options->steps && !(options->epochs > 0);
}

/* Of a run of no updates, which of these flags were not given: a resume that has updates finds
 * their defaults again. */
static void write_undecided(H5File *file, const Options *options) {
    Text names = {""};
    for (size_t i = 0; i < sizeof of_length / sizeof *of_length; i++)
        if (!options_given(options, of_length[i]))
            text_add(&names, "%s%s", *names.text ? " " : "", of_length[i]);
    h5_set_text(file, "/", undecided, names.text);
}

void settings_write(H5File *file, const Options *options, OptionRole min_role) {
    for (int row = 0; option_table[row].name; row++)
        if (stored_in_a_run(&option_table[row]) && option_table[row].role >= min_role)
            write_setting(file, options, row);
    if (has_no_length(options)) write_undecided(file, options);
}

void settings_write_given(H5File *file, const CommandLine *line) {
    for (int row = 0; option_table[row].name; row++)
        if (line->options.given[row]) write_setting(file, &line->options, row);
}

/* Sets a flag from a file. */
static int set_from_file(const H5File *file, Options *options, const Option *option,
                         const Stored *value) {
    /* A length that was given in steps is stored with 0 epochs. */
    if (strcmp(option->name, "epochs") == 0 && value->number == 0) return 0;
    if (options_set(options, option->name, to_typed(kind_of(option), value).text) == 0) return 0;
    return error_set("%s: %s: %s", file->path, group, error_message());
}

static int read_undecided(const H5File *file, Options *options) {
    char names[H5_NAME];
    if (h5_get_text(file, "/", undecided, names, sizeof names)) return -1;
    for (char *name = strtok(names, " "); name; name = strtok(NULL, " ")) {
        const int row = options_find(name, options->command);
        if (row < 0) return h5_refuse(file, undecided, "names what is no flag");
        options->given[row] = false;
    }
    return 0;
}

int settings_read(const H5File *file, Options *options) {
    Stored value;
    for (int row = 0; option_table[row].name; row++) {
        const Option *option = &option_table[row];
        if (!stored_in_a_run(option) || !h5_has(file, group, option->name)) continue;
        if (h5_get(file, group, option->name, kind_of(option), &value) ||
            set_from_file(file, options, option, &value))
            return -1;
    }
    return h5_has(file, "/", undecided) ? read_undecided(file, options) : 0;
}

int settings_read_file(const char *path, Options *options) {
    H5File file;
    if (h5_open(&file, path)) return -1;
    char data[OPTION_TEXT];
    int failed = settings_read(&file, options);
    /* An older checkpoint has only the name of its data, which is cut where it is long. */
    if (!failed && !h5_has(&file, group, "data") && h5_has(&file, "/data", "name"))
        failed = h5_get_text(&file, "/data", "name", data, sizeof data) ||
                 options_set(options, "data", data);
    h5_close(&file);
    return failed ? -1 : 0;
}

int settings_compare(const Options *a, const Options *b, const char *where) {
    for (int row = 0; option_table[row].name; row++) {
        const Option *option = &option_table[row];
        if (!stored_in_a_run(option) || option->role != OPTION_FIXED) continue;
        if (!a->given[row] || !b->given[row]) continue;
        const Text one = options_format(a, row), other = options_format(b, row);
        if (strcmp(one.text, other.text) != 0)
            return error_set(
                "%s: run.h5 says --%s %s, checkpoint.h5 %s; they are of different runs", where,
                option->name, one.text, other.text);
    }
    return 0;
}

/* Returns true for --steps and --epochs if one of them is given. */
static bool length_known(const Options *options, const Option *option) {
    return option->role == OPTION_EXTENDS &&
           (options_given(options, "steps") || options_given(options, "epochs"));
}

int settings_resume(Options *stored, const Options *asked) {
    Options resumed = *asked;
    for (int row = 0; option_table[row].name; row++) {
        const Option *option = &option_table[row];
        if (!stored_in_a_run(option)) continue;
        const Text before = options_format(stored, row), now = options_format(asked, row);
        if (asked->given[row] && option->role == OPTION_FIXED && strcmp(before.text, now.text) != 0)
            return error_set(
                "--%s %s: this run was started with %s, and a resume must give the same result; "
                "start a new run with --out for another",
                option->name, *now.text ? now.text : "none", *before.text ? before.text : "none");
        if (stored->given[row] && !asked->given[row] && !length_known(asked, option) &&
            options_set(&resumed, option->name, before.text))
            return -1;
    }
    *stored = resumed;
    return 0;
}
