/* Command lines: whatever the words are (separated by zeros), they are refused with one line, or
 * every value is in its range and its text gives the same value again. */
#include <stdlib.h>
#include <string.h>

#include "../../experiments/cli/command_line.h"
#include "../../ref/base/error.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

static void check_values(const CommandLine *line) {
    const Options *options = &line->options;
    for (int row = 0; option_table[row].name; row++) {
        if (!options->given[row]) continue;
        const Text text = options_format(options, row);
        CommandLine copy = *line;
        if (options_set(&copy.options, option_table[row].name, text.text) ||
            strcmp(options_format(&copy.options, row).text, text.text) != 0)
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
    enum { WORDS = 100 };
    char *text = malloc(count + 1), *argv[WORDS] = {(char[]){"bcd"}};
    int argc = 1;
    memcpy(text, bytes, count);
    text[count] = 0;
    for (size_t at = 0; at < count && argc < WORDS; at += strlen(text + at) + 1)
        argv[argc++] = text + at;
    CommandLine line;
    if (command_line_parse(&line, argc, argv)) {
        if (!*error_message() || strlen(error_message()) > 511) abort();
    } else if (!line.help) {
        check_values(&line);
    }
    free(text);
    return 0;
}
