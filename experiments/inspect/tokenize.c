/* `bcd tokenize`: text into a token file. */
#include "../../data/tokenize.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../../data/data.h"
#include "../../ref/error.h"
#include "../commands.h"
#include "../train/interrupt.h"
#include "../train/progress.h"

static int show(void *context, const TokenizeStats *stats) {
    double *shown = context, now = clock_seconds();
    if (interrupt_signal()) return 1;
    if (!isatty(STDOUT_FILENO) || now - *shown < 0.2) return 0;
    *shown = now;
    char tokens[32];
    printf("\r\033[K%.0f %%  %s tokens",
           stats->total ? 100.0 * (double)stats->taken / (double)stats->total : 0.0,
           format_count((double)stats->tokens, tokens));
    fflush(stdout);
    return 0;
}

/* The input's name without its endings, plus .tokens. */
static int name_output(char out[OPTION_TEXT], const char *input) {
    if (strlen(input) + sizeof ".tokens" > OPTION_TEXT)
        return error_set("%.60s...: the name is too long", input);
    strcpy(out, input);
    const char *name = strrchr(out, '/');
    char *dot = strchr(name ? name + 1 : out, '.');
    if (dot) *dot = 0;
    strcat(out, ".tokens");
    return 0;
}

int command_tokenize(const Options *o) {
    char out[OPTION_TEXT];
    strcpy(out, o->out);
    if (!out[0] && name_output(out, o->positional[0])) return -1;
    if (strlen(out) < 8 || strcmp(out + strlen(out) - 7, ".tokens") != 0)
        return error_set(
            "--out %s: the name must end in .tokens, by which bcd train --data knows "
            "it",
            out);
    Tokenizer *tokenizer = data_tokenizer(o->tokenizer == TOKENIZER_GPT2 ? "wikitext2" : "text",
                                          o->data_dir[0] ? o->data_dir : NULL);
    if (!tokenizer) return -1;
    TokenizeStats stats;
    double shown = 0;
    interrupt_catch();
    int result = tokenize_file(out, o->positional, o->positionals, tokenizer, &stats, show, &shown);
    if (shown > 0) printf("\r\033[K");
    if (result == 0)
        printf(
            "%s: %llu tokens (%s) of %llu bytes in %llu documents\n"
            "train on it with: bcd train --data %s --model gpt:layers=6,width=384,heads=6,"
            "context=256\n",
            out, (unsigned long long)stats.tokens, tokenizer->name,
            (unsigned long long)stats.text_bytes, (unsigned long long)stats.documents, out);
    tokenizer_free(tokenizer);
    if (result == 1) return interrupt_status();
    return result;
}
