/* How numbers are written for a reader: times, counts and bytes at the limits of their units. */
#include <string.h>

#include "../../experiments/base/text.h"
#include "../test.h"

typedef struct {
    double number;
    const char *text;
} Row;

static void check(const Row *rows, size_t count, Text (*format)(double)) {
    for (size_t i = 0; i < count; i++) {
        const Text text = format(rows[i].number);
        CHECK(!strcmp(text.text, rows[i].text), "%.17g is \"%s\", not \"%s\"", rows[i].number,
              text.text, rows[i].text);
    }
}

static void times(void) {
    static const Row rows[] = {{0, "0 s"},
                               {0.5, "1 s"},
                               {59.4, "59 s"},
                               {59.5, "1 min 00 s"},
                               {61, "1 min 01 s"},
                               {3599.4, "59 min 59 s"},
                               {3599.5, "1 h 00 min"},
                               {2 * 3600 + 5 * 60 + 59, "2 h 05 min"},
                               {100 * 3600, "100 h 00 min"}};
    check(rows, sizeof rows / sizeof *rows, format_time);
}

static void counts(void) {
    static const Row rows[] = {
        {0, "0"},        {999, "999"},       {1000, "1.0k"},   {1949, "1.9k"}, {999.4, "999"},
        {999.6, "1.0k"}, {999940, "999.9k"}, {999960, "1.0M"}, {1e6, "1.0M"},  {35.2e6, "35.2M"},
        {1e9, "1.0B"},   {405e9, "405.0B"},  {2e12, "2000.0B"}};
    check(rows, sizeof rows / sizeof *rows, format_count);
}

static void bytes(void) {
    static const Row rows[] = {{0, "0 B"},
                               {1000, "1000 B"},
                               {1023, "1023 B"},
                               {1024, "1.0 KiB"},
                               {(1 << 20) - 1, "1.0 MiB"},
                               {1 << 20, "1.0 MiB"},
                               {12.3 * (1 << 20), "12.3 MiB"},
                               {1 << 30, "1.0 GiB"},
                               {5000.0 * (1 << 30), "5000.0 GiB"}};
    check(rows, sizeof rows / sizeof *rows, format_bytes);
}

void test_text(void) {
    RUN(times);
    RUN(counts);
    RUN(bytes);
}
