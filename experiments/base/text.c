#include "text.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

Text text_of(const char *format, ...) {
    Text text;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text.text, sizeof text.text, format, arguments);
    va_end(arguments);
    return text;
}

void text_add(Text *text, const char *format, ...) {
    size_t used = strlen(text->text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text->text + used, sizeof text->text - used, format, arguments);
    va_end(arguments);
}

bool is_terminal(FILE *out) {
    static const char *const ranks[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"};
    const char *kind = getenv("TERM");
    for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++)
        if (getenv(ranks[i])) return false;
    return kind && *kind && strcmp(kind, "dumb") && isatty(fileno(out));
}

void print_wrapped(FILE *out, const char *text, int left, int right) {
    const int max = right - left;
    while (strlen(text) > (size_t)max) {
        int length = max, end;
        while (length > 0 && text[length] != ' ') length--;
        if (!length) length = max;
        for (end = length; end > 0 && text[end - 1] == ' ';) end--;
        fprintf(out, "%.*s\n%*s", end, text, left, "");
        text += length;
        text += strspn(text, " ");
    }
    fprintf(out, "%s\n", text);
}

Text format_time(double seconds) {
    long s = (long)(seconds + 0.5);
    if (s >= 3600) return text_of("%ld h %02ld min", s / 3600, s / 60 % 60);
    if (s >= 60) return text_of("%ld min %02ld s", s / 60, s % 60);
    return text_of("%ld s", s);
}

/* What would be rounded up to a whole unit is one: 999960 is 1.0M, not 1000.0k. */
static Text scaled(double value, double base, const char *const units[4]) {
    int unit = 0;
    while (value >= base - (unit ? 0.05 : 0.5) && unit < 3) {
        value /= base;
        unit++;
    }
    return text_of(unit == 0 ? "%.0f%s" : "%.1f%s", value, units[unit]);
}

Text format_count(double count) {
    static const char *const units[] = {"", "k", "M", "B"};
    return scaled(count, 1000, units);
}

Text format_bytes(double bytes) {
    static const char *const units[] = {" B", " KiB", " MiB", " GiB"};
    return scaled(bytes, 1024, units);
}

/* The loss of a training that diverges has up to 300 digits, or is a NaN, which x86 makes with a
 * sign. */
Text format_loss(double loss) {
    return text_of(loss < 1e6 ? "%.4f" : "%.2g", isnan(loss) ? NAN : loss);
}
