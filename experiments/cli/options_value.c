/* Values of flags, from text and back. */
#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/base/error.h"
#include "options.h"

/* Returns true for a text that begins with a digit, or a point and one.  The functions of C also
 * read blanks and signs before a number, and hexadecimal ones. */
static bool is_plain(const char *text) {
    return isdigit((unsigned char)text[*text == '.']) && !strpbrk(text, "xX");
}

/* "from 1 up" or "from 0 to 1"; of what is above it also a maximum that is that of the type */
static int refuse(const Option *option, const char *value, const char *wants) {
    const bool large = option->max >= 2147483647, above = strtod(value, NULL) > option->max;
    Text to = text_of(!large ? "to %.9g" : above ? "to %.0f" : "up", option->max);
    return error_set("--%s \"%.60s\": it takes %s from %.9g %s", option->name, value, wants,
                     option->min, to.text);
}

static int parse_real(const Option *option, const char *text, double *value) {
    char *end;
    errno = 0;
    *value = strtod(text, &end);
    if (!is_plain(text) || *end || !(*value >= option->min && *value <= option->max))
        return refuse(option, text, "a number");
    if (errno) return error_set("--%s \"%.60s\": it is too small a number", option->name, text);
    return 0;
}

static int parse_whole(const Option *option, const char *text, uint64_t *value) {
    char *end;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    *value = number;
    if (is_plain(text) && !*end && !errno && (double)number >= option->min &&
        (double)number <= option->max)
        return 0;
    return refuse(option, text, "a whole number");
}

/* 2G, 512M, 64K or plain bytes; the units are powers of 1024. */
static int parse_bytes(const Option *option, const char *text, size_t *value) {
    char *end;
    double number = strtod(text, &end);
    static const char units[] = "KMGT";
    const bool has_number = is_plain(text); /* "G" is often an unset variable of the shell */
    const char *unit = *end ? strchr(units, *end) : NULL;
    if (unit) {
        number *= pow(1024, (double)(unit - units + 1));
        end++;
    }
    const bool allowed = number == 0 || (number >= 1 && number <= option->max);
    if (!has_number || *end || !allowed)
        return error_set("--%s \"%.60s\": it takes bytes, as in 2G, 512M or 65536", option->name,
                         text);
    *value = (size_t)number;
    return 0;
}

static int parse_choice(const Option *option, const char *text, int *value) {
    for (int i = 0; i < option->choice_count; i++)
        if (strcmp(option->choices[i], text) == 0) {
            *value = i;
            return 0;
        }
    Text known = text_of("%s", option->choices[0]);
    for (int i = 1; i < option->choice_count; i++)
        text_add(&known, i + 1 < option->choice_count ? ", %s" : " or %s", option->choices[i]);
    return error_set("--%s \"%.60s\": it takes %s", option->name, text, known.text);
}

/* How the rules of --switch-every are written, and read out. */
static const struct {
    bool counts, whole;  /* a number says how many; it is a whole one */
    const char *written; /* behind the number, or without one */
    const char *words;   /* what is counted, or when the rule switches */
} switch_rules[] = {
    [SWITCH_STEPS] = {true, true, "", "step"},
    [SWITCH_EPOCHS] = {true, false, "e", "epoch"},
    [SWITCH_AUTO] = {false, false, "auto", "when the loss stops falling"},
};
static_assert(sizeof switch_rules / sizeof *switch_rules == SWITCH_KINDS, "a row for every rule");

/* Returns true if a text is how a rule is written, and overwrites *number with its number, or 0. */
static bool is_rule(double *number, size_t kind, const char *text) {
    char *end;
    *number = strtod(text, &end);
    const bool counts = is_plain(text);
    if (counts != switch_rules[kind].counts ||
        strcmp(counts ? end : text, switch_rules[kind].written) != 0)
        return false;
    return !counts || (*number > 0 && *number < 1e9 &&
                       (!switch_rules[kind].whole || floor(*number) == *number));
}

static int parse_switch(Options *options, const char *text) {
    for (size_t kind = 0; kind < SWITCH_KINDS; kind++) {
        double number;
        if (!is_rule(&number, kind, text)) continue;
        options->switch_rule.kind = (SwitchKind)kind;
        options->switch_rule.every = number;
        return 0;
    }
    return error_set("--switch-every \"%.60s\": it takes steps (500), epochs (2e, 0.5e) or auto",
                     text);
}

static int assign_text(const Option *option, const char *text, char *value) {
    if ((double)strlen(text) > option->max)
        return error_set("--%s \"%.40s...\": longer than %.0f characters", option->name, text,
                         option->max);
    strcpy(value, text);
    return 0;
}

/* Returns the number that "none" or "all" stands for, where --help shows it as the default. */
static const char *number_of(const Option *option, const char *text) {
    const char *words = option->default_words;
    const size_t length = strlen(text);
    if (strcmp(text, "none") && strcmp(text, "all")) return text;
    const bool shown = words && option->default_text && strncmp(words, text, length) == 0 &&
                       (words[length] == 0 || words[length] == ';');
    return shown ? option->default_text : text;
}

int option_assign(Options *options, int row, const char *text) {
    const Option *option = &option_table[row];
    void *field = (char *)options + option->offset;
    uint64_t whole;
    if (option->kind != OPTION_IS_TEXT) text = number_of(option, text);
    /* No block is the empty list, also in files. */
    if (field == (void *)options->always_active && !strcmp(text, "none")) text = "";
    switch (option->kind) {
        case OPTION_IS_TEXT:
            return assign_text(option, text, field);
        case OPTION_IS_COUNT:
            return parse_whole(option, text, field);
        case OPTION_IS_REAL:
            return parse_real(option, text, field);
        case OPTION_IS_BYTES:
            return parse_bytes(option, text, field);
        case OPTION_IS_CHOICE:
            return parse_choice(option, text, field);
        case OPTION_IS_SWITCH:
            return parse_switch(options, text);
        case OPTION_IS_INT:
            if (parse_whole(option, text, &whole)) return -1;
            *(int *)field = (int)whole;
            return 0;
        case OPTION_IS_FLAG:
            if (parse_whole(option, text, &whole)) return -1;
            *(bool *)field = whole != 0;
            return 0;
    }
    return 0;
}

/* Writes the fewest digits that read back as the same number: 0.1, not 0.10000000000000001. */
static Text format_real(double number) {
    int digits = 15;
    while (digits < 17 && strtod(text_of("%.*g", digits, number).text, NULL) != number) digits++;
    return text_of("%.*g", digits, number);
}

static Text format_switch(const SwitchRule *rule) {
    const Text number = switch_rules[rule->kind].counts ? format_real(rule->every) : (Text){""};
    return text_of("%s%s", number.text, switch_rules[rule->kind].written);
}

Text switch_words(const SwitchRule *rule) {
    const char *words = switch_rules[rule->kind].words;
    if (!switch_rules[rule->kind].counts) return text_of("%s", words);
    return text_of("after %g %s%s", rule->every, words, rule->every == 1 ? "" : "s");
}

Text options_format(const Options *options, int row) {
    const Option *option = &option_table[row];
    const void *field = (const char *)options + option->offset;
    switch (option->kind) {
        case OPTION_IS_TEXT:
            return text_of("%s", (const char *)field);
        case OPTION_IS_INT:
            return text_of("%d", *(const int *)field);
        case OPTION_IS_COUNT:
            return text_of("%llu", (unsigned long long)*(const uint64_t *)field);
        case OPTION_IS_REAL:
            return format_real(*(const double *)field);
        case OPTION_IS_BYTES:
            return text_of("%zu", *(const size_t *)field);
        case OPTION_IS_CHOICE:
            return text_of("%s", option->choices[*(const int *)field]);
        case OPTION_IS_FLAG:
            return text_of("%d", *(const bool *)field);
        case OPTION_IS_SWITCH:
            return format_switch(&options->switch_rule);
    }
    return (Text){""};
}

Text option_argument(const Option *option) {
    Text text = text_of("%s", option->argument ? option->argument : "");
    for (int i = 0; i < option->choice_count; i++)
        text_add(&text, "%s%s", i ? "|" : "", option->choices[i]);
    return text;
}

double option_of_optimizer(const Option *option, const OptimizerSettings *settings) {
    const size_t first = offsetof(Options, optimizer);
    double value = NAN;
    if (option->kind == OPTION_IS_REAL && !option->default_text && option->offset >= first &&
        option->offset < first + sizeof *settings)
        memcpy(&value, (const char *)settings + (option->offset - first), sizeof value);
    return value;
}

Quoted quoted(const char *name) {
    static const char plain_characters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:=,+@%-";
    const bool plain = *name && !name[strspn(name, plain_characters)];
    Quoted quoted;
    char *to = quoted.text;
    if (!plain) *to++ = '\'';
    for (; *name && to < quoted.text + sizeof quoted.text - 6; name++) {
        *to++ = *name;
        if (*name != '\'') continue;
        memcpy(to, "\\''", 3); /* '\'' ends the quotes, adds one, and begins them again */
        to += 3;
    }
    if (!plain) *to++ = '\'';
    *to = 0;
    return quoted;
}
