#include "settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../data/checksum.h"
#include "../../ref/error.h"

static bool stored_in_a_run(const Option *option) {
    return (option->commands & COMMAND_TRAIN) && option->role != OPTION_LOCAL;
}

static bool is_real(const Option *option) { return option->kind == OPTION_IS_REAL; }
static bool is_whole(const Option *option) {
    return option->kind == OPTION_IS_INT || option->kind == OPTION_IS_COUNT ||
           option->kind == OPTION_IS_BYTES || option->kind == OPTION_IS_FLAG;
}

/* Independent of the order of the table, which may change. */
static uint64_t setting_checksum(const char *name, const char *text) {
    uint64_t sum = checksum_bytes(CHECKSUM_START, (const unsigned char *)name, strlen(name));
    return checksum_bytes(checksum_add(sum, '='), (const unsigned char *)text, strlen(text));
}

static void write_setting(H5File *file, const char *group, const Options *options, int row) {
    const Option *option = &option_table[row];
    char text[OPTION_TEXT];
    options_format(options, row, text);
    if (is_real(option))
        h5_set_real(file, group, option->name, strtod(text, NULL));
    else if (is_whole(option))
        h5_set_count(file, group, option->name, strtoull(text, NULL, 10));
    else
        h5_set_text(file, group, option->name, text);
}

void settings_write(H5File *file, const char *group, const Options *options, OptionRole min_role) {
    char text[OPTION_TEXT];
    uint64_t sum = 0;
    for (int row = 0; option_table[row].name; row++) {
        const Option *option = &option_table[row];
        if (!stored_in_a_run(option) || option->role < min_role) continue;
        write_setting(file, group, options, row);
        sum += setting_checksum(option->name, options_format(options, row, text));
    }
    h5_set_count(file, group, "checksum", sum);
}

void settings_write_given(H5File *file, const char *group, const Options *options) {
    for (int row = 0; option_table[row].name; row++)
        if (options->given[row]) write_setting(file, group, options, row);
}

/* The attribute as the text that would be typed. */
static int read_text(const H5File *file, const char *group, const Option *option,
                     char text[OPTION_TEXT]) {
    if (is_real(option)) {
        double value;
        if (h5_get_real(file, group, option->name, &value)) return -1;
        snprintf(text, OPTION_TEXT, "%.17g", value);
        return 0;
    }
    if (is_whole(option)) {
        uint64_t value;
        if (h5_get_count(file, group, option->name, &value)) return -1;
        snprintf(text, OPTION_TEXT, "%llu", (unsigned long long)value);
        return 0;
    }
    return h5_get_text(file, group, option->name, text, OPTION_TEXT);
}

/* Sets what a file says. */
static int take(const H5File *file, const char *group, Options *options, const char *name,
                const char *text) {
    char cause[256];
    /* The length was given in steps or in epochs, which are then 0; steps come first. */
    if (strcmp(name, "epochs") == 0 && strtod(text, NULL) == 0) return 0;
    if (options_set(options, name, text) == 0) return 0;
    snprintf(cause, sizeof cause, "%s", error_message());
    return error_set("%s: %s: %s", file->path, group, cause);
}

int settings_read(const H5File *file, const char *group, Options *options) {
    char text[OPTION_TEXT];
    uint64_t sum = 0, stored;
    for (int row = 0; option_table[row].name; row++) {
        const Option *option = &option_table[row];
        if (!stored_in_a_run(option) || !h5_has(file, group, option->name)) continue;
        if (read_text(file, group, option, text) || take(file, group, options, option->name, text))
            return -1;
        sum += setting_checksum(option->name, text);
    }
    if (!h5_has(file, group, "checksum")) return 0;
    if (h5_get_count(file, group, "checksum", &stored)) return -1;
    return stored == sum ? 0
                         : error_set("%s: %s: its checksum does not match; the file is damaged",
                                     file->path, group);
}

int settings_compare(const Options *a, const Options *b, const char *where) {
    char one[OPTION_TEXT], other[OPTION_TEXT];
    for (int row = 0; option_table[row].name; row++) {
        const Option *option = &option_table[row];
        if (!stored_in_a_run(option) || option->role != OPTION_FIXED) continue;
        if (!a->given[row] || !b->given[row]) continue;
        options_format(a, row, one);
        options_format(b, row, other);
        if (strcmp(one, other) != 0)
            return error_set("%s: run.h5 says --%s %s, checkpoint.h5 %s; one is of another run",
                             where, option->name, one, other);
    }
    return 0;
}

/* Of the length, which is said in steps or in epochs, the file said one. */
static bool length_known(const Options *options, const Option *option) {
    return option->role == OPTION_EXTENDS &&
           (options_given(options, "steps") || options_given(options, "epochs"));
}

int settings_missing(char *text, size_t size, const Options *options, const char *path) {
    size_t used = 0;
    *text = 0;
    for (int row = 0; option_table[row].name; row++) {
        const Option *option = &option_table[row];
        const char *taken = option->default_words ? option->default_words : option->default_text;
        if (!stored_in_a_run(option) || options->given[row]) continue;
        if (length_known(options, option)) continue;
        if (!option->default_text)
            return error_set("%s: /settings has no %s, which has no default: damaged", path,
                             option->name);
        if (used < size)
            used += (size_t)snprintf(text + used, size - used, "%s--%s (taken as %s)",
                                     used ? ", " : "", option->name, *taken ? taken : "none");
    }
    return 0;
}

/* ---- of many runs ---------------------------------------------------------------------------- */

static H5Kind column_kind(const Option *option) {
    return is_real(option)                  ? H5_DOUBLE
           : is_whole(option)               ? H5_UINT64
           : option->kind == OPTION_IS_TEXT ? H5_LINE
                                            : H5_TEXT;
}

/* One element of a column, from text and to it. */
static void text_to_element(char *element, H5Kind kind, const char *text) {
    double number = kind == H5_DOUBLE ? strtod(text, NULL) : 0;
    uint64_t whole = kind == H5_UINT64 ? strtoull(text, NULL, 10) : 0;
    if (kind == H5_DOUBLE)
        memcpy(element, &number, sizeof number);
    else if (kind == H5_UINT64)
        memcpy(element, &whole, sizeof whole);
    else
        snprintf(element, h5_kind_size(kind), "%s", text);
}

static void element_to_text(char text[OPTION_TEXT], H5Kind kind, const char *element) {
    double number;
    uint64_t whole;
    memcpy(&number, element, sizeof number);
    memcpy(&whole, element, sizeof whole);
    if (kind == H5_DOUBLE)
        snprintf(text, OPTION_TEXT, "%.17g", number);
    else if (kind == H5_UINT64)
        snprintf(text, OPTION_TEXT, "%llu", (unsigned long long)whole);
    else
        snprintf(text, OPTION_TEXT, "%.*s", OPTION_TEXT - 1, element);
}

void settings_write_columns(H5File *file, const char *group, const char *scale,
                            const Options *first, size_t stride, size_t rows) {
    char text[OPTION_TEXT], name[2 * H5_NAME], *values = malloc(rows * H5_PATH + 1);
    H5Dim dim = {"row", rows, scale};
    for (int o = 0; option_table[o].name && values; o++) {
        const Option *option = &option_table[o];
        H5Kind kind = column_kind(option);
        if (!stored_in_a_run(option)) continue;
        memset(values, 0, rows * h5_kind_size(kind));
        for (size_t r = 0; r < rows; r++) {
            const void *options = (const char *)first + r * stride;
            text_to_element(values + r * h5_kind_size(kind), kind,
                            options_format(options, o, text));
        }
        snprintf(name, sizeof name, "%s/%s", group, option->name);
        h5_write(file, name, kind, values, 1, &dim, NULL);
    }
    if (!values) h5_fail(file, group);
    free(values);
}

static int read_column(const H5File *file, const char *group, const Option *option, Options *first,
                       size_t stride, size_t rows, char *values) {
    char text[OPTION_TEXT], name[2 * H5_NAME];
    H5Kind kind = column_kind(option);
    size_t size = h5_kind_size(kind);
    snprintf(name, sizeof name, "%s/%s", group, option->name);
    if (!h5_exists(file, name)) return 0;
    if (h5_read(file, name, kind, values, 1, &rows)) return -1;
    for (size_t r = 0; r < rows; r++) {
        element_to_text(text, kind, values + r * size);
        if (take(file, group, (Options *)(void *)((char *)first + r * stride), option->name, text))
            return -1;
    }
    return 0;
}

int settings_read_columns(const H5File *file, const char *group, Options *first, size_t stride,
                          size_t rows) {
    char *values = malloc(rows * H5_PATH + 1);
    int failed = values ? 0 : error_set("%s: out of memory", file->path);
    for (int o = 0; option_table[o].name && !failed; o++)
        if (stored_in_a_run(&option_table[o]))
            failed = read_column(file, group, &option_table[o], first, stride, rows, values);
    free(values);
    return failed;
}

/* ---- a resume -------------------------------------------------------------------------------- */

static int refuse_change(const Option *option, const char *stored, const char *asked) {
    return error_set(
        "--%s %s: this run was started with %s, and a resume must give the same "
        "result; start a new run with --out for another",
        option->name, asked, *stored ? stored : "none");
}

int settings_resume(Options *stored, const Options *asked) {
    char before[OPTION_TEXT], now[OPTION_TEXT];
    for (int row = 0; option_table[row].name; row++) {
        const Option *option = &option_table[row];
        if (!asked->given[row] || !stored_in_a_run(option)) continue;
        options_format(stored, row, before);
        options_format(asked, row, now);
        if (option->role == OPTION_FIXED) {
            if (strcmp(before, now) != 0) return refuse_change(option, before, now);
        } else if (options_set(stored, option->name, now)) {
            return -1;
        }
    }
    snprintf(stored->out, sizeof stored->out, "%s", asked->out);
    snprintf(stored->resume, sizeof stored->resume, "%s", asked->resume);
    snprintf(stored->log_samples, sizeof stored->log_samples, "%s", asked->log_samples);
    stored->quiet = asked->quiet;
    stored->brief = asked->brief;
    stored->go_on = asked->go_on;
    stored->world = asked->world;
    snprintf(stored->pipeline, sizeof stored->pipeline, "%s", asked->pipeline);
    stored->placement = asked->placement;
    stored->pipeline_schedule = asked->pipeline_schedule;
    stored->replicas = asked->replicas;
    stored->timeout = asked->timeout;
    return 0;
}
