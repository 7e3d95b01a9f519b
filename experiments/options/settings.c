#include "settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/error.h"

static bool stored_in_a_run(const Option *option) {
    return (option->commands & COMMAND_TRAIN) && option->role != OPTION_LOCAL;
}

static bool is_real(const Option *option) { return option->kind == OPTION_IS_REAL; }
static bool is_whole(const Option *option) {
    return option->kind == OPTION_IS_INT || option->kind == OPTION_IS_COUNT ||
           option->kind == OPTION_IS_BYTES || option->kind == OPTION_IS_FLAG;
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

void settings_write(H5File *file, const char *group, const Options *options, OptionRole least) {
    for (int row = 0; option_table[row].name; row++) {
        const Option *option = &option_table[row];
        if (stored_in_a_run(option) && option->role >= least)
            write_setting(file, group, options, row);
    }
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

int settings_read(const H5File *file, const char *group, Options *options) {
    char text[OPTION_TEXT], cause[256];
    for (int row = 0; option_table[row].name; row++) {
        const Option *option = &option_table[row];
        if (!stored_in_a_run(option) || !h5_has(file, group, option->name)) continue;
        if (read_text(file, group, option, text)) return -1;
        /* A run trained for a number of steps holds 0 epochs. */
        if (strcmp(option->name, "epochs") == 0 && strtod(text, NULL) == 0) continue;
        if (options_set(options, option->name, text)) {
            snprintf(cause, sizeof cause, "%s", error_message());
            return error_set("%s: %s: %s", file->path, group, cause);
        }
    }
    return 0;
}

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
