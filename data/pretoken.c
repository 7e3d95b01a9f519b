#include "pretoken.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

#include "../ref/base/error.h"

#define SPACES                                                             \
    "\\t-\\r \\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}" \
    "\\x{202f}\\x{205f}\\x{3000}"

static const char pattern[] = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\p{L}\\p{N}" SPACES
                              "]+"
                              "|[" SPACES "]+(?![^" SPACES "])|[" SPACES "]+";

struct Pretokenizer {
    pcre2_code *code;
    pcre2_match_data *match;
};

Pretokenizer *pretokenizer_create(void) {
    int reason;
    PCRE2_SIZE where;
    Pretokenizer *pretokenizer = calloc(1, sizeof *pretokenizer);
    if (pretokenizer)
        pretokenizer->code = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED,
                                           PCRE2_UTF | PCRE2_UCP, &reason, &where, NULL);
    if (pretokenizer && pretokenizer->code)
        pretokenizer->match = pcre2_match_data_create_from_pattern(pretokenizer->code, NULL);
    if (!pretokenizer || !pretokenizer->match) {
        pretokenizer_free(pretokenizer);
        return error_null("gpt2: no memory for the pattern of words, or PCRE2 without Unicode");
    }
    /* This makes matching ten times faster, and may fail without changing results. */
    pcre2_jit_compile(pretokenizer->code, PCRE2_JIT_COMPLETE);
    return pretokenizer;
}

void pretokenizer_free(Pretokenizer *pretokenizer) {
    if (!pretokenizer) return;
    pcre2_match_data_free(pretokenizer->match);
    pcre2_code_free(pretokenizer->code);
    free(pretokenizer);
}

/* Matches at a byte of the text, and checks that the rest of it is UTF-8 unless `options` say
 * otherwise.  Returns a number below 0 as PCRE2 does. */
static int match_at(const Pretokenizer *pretokenizer, const char *text, size_t bytes, size_t at,
                    uint32_t options) {
    return pcre2_match(pretokenizer->code, (PCRE2_SPTR)text, bytes, at, options | PCRE2_ANCHORED,
                       pretokenizer->match, NULL);
}

/* Returns the text itself if it is valid UTF-8, or else a copy, for the caller to free through
 * *copy, in which every invalid byte is a control character, which is neither letter, number nor
 * space.  NULL and an error when memory runs out. */
static const char *valid_subject(const Pretokenizer *pretokenizer, const char *text, size_t bytes,
                                 char **copy) {
    const char *subject = text;
    size_t at = 0;
    for (;;) {
        const int found = match_at(pretokenizer, subject, bytes, at, 0);
        if (found > PCRE2_ERROR_UTF8_ERR1 || found < PCRE2_ERROR_UTF8_ERR21) return subject;
        if (!*copy) {
            subject = *copy = malloc(bytes);
            if (!*copy) return error_null("gpt2: no memory for %zu bytes of text", bytes);
            memcpy(*copy, text, bytes);
        }
        at = pcre2_get_startchar(pretokenizer->match);
        (*copy)[at] = 1;
    }
}

int pretokenize(const Pretokenizer *pretokenizer, const char *text, size_t bytes,
                void (*word)(void *context, const char *word, size_t bytes), void *context) {
    char *copy = NULL;
    const char *subject = valid_subject(pretokenizer, text, bytes, &copy);
    int failed = subject ? 0 : -1;
    for (size_t start = 0; !failed && start < bytes;) {
        const int found = match_at(pretokenizer, subject, bytes, start, PCRE2_NO_UTF_CHECK);
        const size_t end = pcre2_get_ovector_pointer(pretokenizer->match)[1];
        if (found < 0) /* every character begins a word, so this is a limit of the library */
            failed = error_set("gpt2: PCRE2 error %d at byte %zu of the text", found, start);
        else
            word(context, text + start, end - start);
        start = end;
    }
    free(copy);
    return failed;
}
