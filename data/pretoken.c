#include "pretoken.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

#include "../ref/error.h"

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
        error_set("gpt2: no memory for the pattern of words, or PCRE2 without Unicode");
        return NULL;
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

int utf8_length(const unsigned char *text, size_t bytes) {
    const unsigned lead = text[0];
    if (lead < 0x80) return 1;
    const int length = lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 0;
    if (length == 0 || bytes < (size_t)length) return 0;
    /* The second byte rules out overlong forms, surrogates, and what is above U+10FFFF. */
    const unsigned low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    const unsigned high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    if (text[1] < low || text[1] > high) return 0;
    for (int i = 2; i < length; i++)
        if (text[i] < 0x80 || text[i] > 0xBF) return 0;
    return length;
}

/* Returns the text itself if it is valid UTF-8, or else a copy, for the caller to free through
 * *copy, in which every invalid byte is a control character, which is neither letter, number nor
 * space.  NULL and an error when memory runs out. */
static const char *valid_subject(const char *text, size_t bytes, char **copy) {
    for (size_t i = 0; i < bytes;) {
        int length = utf8_length((const unsigned char *)text + i, bytes - i);
        if (length == 0 && !*copy) {
            *copy = malloc(bytes);
            if (!*copy) {
                error_set("gpt2: no memory for %zu bytes of text", bytes);
                return NULL;
            }
            memcpy(*copy, text, bytes);
        }
        if (length == 0) (*copy)[i] = 1;
        i += length ? (size_t)length : 1;
    }
    return *copy ? *copy : text;
}

int pretokenize(const Pretokenizer *pretokenizer, const char *text, size_t bytes,
                int (*word)(void *context, const char *word, size_t bytes), void *context) {
    char *copy = NULL;
    const char *subject = valid_subject(text, bytes, &copy);
    int result = subject ? 0 : -1;
    for (size_t start = 0; result == 0 && start < bytes;) {
        int found = pcre2_match(pretokenizer->code, (PCRE2_SPTR)subject, bytes, start,
                                PCRE2_NO_UTF_CHECK | PCRE2_ANCHORED, pretokenizer->match, NULL);
        if (found < 0) { /* every character begins a word, so this is a limit of the library */
            result = error_set("gpt2: PCRE2 error %d at byte %zu of the text", found, start);
            break;
        }
        const size_t end = pcre2_get_ovector_pointer(pretokenizer->match)[1];
        result = word(context, text + start, end - start);
        start = end;
    }
    free(copy);
    return result;
}
