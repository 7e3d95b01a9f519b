/* `bcd tokenize`: text into a token file. */
#include "../../data/tokenize.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../../data/data.h"
#include "../../data/file.h"
#include "../../data/pieces.h"
#include "../../ref/base/clock.h"
#include "../../ref/base/error.h"
#include "../cli/commands.h"
#include "../train/interrupt.h"
#include "python.h"

static int show(void *context, const TokenizeStats *stats) {
    double *shown = context, now = clock_seconds();
    if (interrupt_signal()) return 1;
    if (!is_terminal(stdout) || now - *shown < 0.2) return 0;
    *shown = now;
    printf(
        "\r\033[K%.0f %%  %s bytes of text",
        stats->total_bytes ? 100.0 * (double)stats->bytes_read / (double)stats->total_bytes : 0.0,
        format_count((double)stats->text_bytes).text);
    fflush(stdout);
    return 0;
}

/* Overwrites `out` with the input's name, its ending replaced by .tokens: b.c.tokens for b.c.jsonl
 * and for b.c.jsonl.zst. */
static int name_output(char out[OPTION_TEXT], const char *input) {
    if (strlen(input) + sizeof ".tokens" > OPTION_TEXT)
        return error_set("%.60s...: the path is too long; give --out", input);
    strcpy(out, input);
    out[pieces_unpacked(input)] = 0;
    char *slash = strrchr(out, '/'), *name = slash ? slash + 1 : out, *dot = strrchr(name, '.');
    if (dot && dot > name) *dot = 0;
    strcat(out, ".tokens");
    return 0;
}

/* ---- by a model's own tokenizer ---- */

typedef struct {
    const char *input;
    TokenizeStats *stats;
    double shown;
} Feed;

/* Also when an earlier Python did not read it. */
static int write_input(void *context, FILE *to) {
    Feed *feed = context;
    TokenizeStats before = *feed->stats;
    const int result = tokenize_feed(to, feed->input, feed->stats, show, &feed->shown);
    if (ferror(to)) *feed->stats = before;
    return result;
}

/* Runs data/encode.py for each input, whose output goes to encoded[]. */
static int encode_files(FILE **encoded, const CommandLine *line, TokenizeStats *stats) {
    Feed feed = {.stats = stats};
    int failed = 0;
    for (int i = 0; i < line->positionals && !failed; i++) {
        const char *arguments[] = {line->options.tokenizer, line->positional[i]};
        const PythonInput in = {write_input, &feed};
        feed.input = line->positional[i];
        encoded[i] = tmpfile();
        if (!encoded[i])
            failed = error_set("tokenize: no temporary file: %s", strerror(errno));
        else
            failed = python_run("data/encode.py", arguments, 2, &in, encoded[i]);
    }
    if (feed.shown > 0) printf("\r\033[K");
    return failed;
}

/* Inputs of different endings have the same name without. */
static int check_new(const char *out, const CommandLine *line) {
    if (*line->options.out || access(out, F_OK)) return 0;
    return error_set("%s: is there already; to replace it, give --out %s", out, quoted(out).text);
}

static int tokenize_by_model(const char *out, const CommandLine *line, TokenizeStats *stats) {
    const char *dir = line->options.tokenizer;
    char name[TOKENIZER_NAME];
    FILE *encoded[POSITIONAL_MAX] = {NULL};
    if (access(dir, F_OK))
        return error_set(
            "--tokenizer \"%s\": there is no such directory; it takes bytes, gpt2, or the "
            "directory of a model",
            dir);
    if (tokenizer_of_model(name, dir)) return -1;
    /* What cannot be written, or another process writes, is not found out after hours of work. */
    AtomicFile claim;
    double shown = 0;
    interrupt_catch();
    if (atomic_open(&claim, out)) return -1;
    int failed = encode_files(encoded, line, stats);
    atomic_abandon(&claim);
    failed = failed || interrupt_signal() || check_new(out, line) ||
             tokenize_encoded(out, name, encoded, line->positionals, line->options.context, stats,
                              show, &shown);
    if (shown > 0) printf("\r\033[K");
    for (int i = 0; i < line->positionals && encoded[i]; i++) fclose(encoded[i]);
    if (failed) return interrupt_signal() ? interrupt_status() : -1;
    const int context = line->options.context;
    printf("%s: %llu tokens\n", out, (unsigned long long)stats->tokens);
    if (stats->cut)
        printf("of more than %d tokens, and cut: %llu of the records\n", context,
               (unsigned long long)stats->cut);
    printf("%s%strain on it with: bcd train --init %s --data %s%s\n", stats->note,
           *stats->note ? "\n" : "", quoted(dir).text, quoted(out).text,
           context ? text_of(" --context %d", context).text : "");
    return 0;
}

int command_tokenize(const CommandLine *line) {
    char out[OPTION_TEXT];
    const char *name = line->options.tokenizer;
    strcpy(out, line->options.out);
    if (!out[0] && name_output(out, line->positional[0])) return -1;
    if (strlen(out) < 8 || strcmp(out + strlen(out) - 7, ".tokens") != 0)
        return error_set(
            "--out %s: the name must end in .tokens, by which bcd train --data knows it", out);
    for (int i = 0; i < line->positionals; i++)
        if (strcmp(out, line->positional[i]) == 0)
            return error_set("--out %s: it is one of the inputs; give another name", out);
    TokenizeStats stats = {0};
    if (check_new(out, line) ||
        tokenize_measure(&stats.total_bytes, line->positional, line->positionals))
        return -1;
    if (strcmp(name, "bytes") != 0 && strcmp(name, "gpt2") != 0)
        return tokenize_by_model(out, line, &stats);
    if (line->options.context)
        return error_set("--context %d: it goes with --tokenizer DIR", line->options.context);
    Tokenizer *tokenizer =
        data_named_tokenizer(name, line->options.data_dir[0] ? line->options.data_dir : NULL);
    if (!tokenizer) return -1;
    double shown = 0;
    interrupt_catch();
    int result =
        tokenize_file(out, line->positional, line->positionals, tokenizer, &stats, show, &shown);
    if (shown > 0) printf("\r\033[K");
    if (result == 0)
        printf(
            "%s: %llu tokens (%s) of %llu bytes in %llu document%s%s\n"
            "train on it with: bcd train --data %s --model gpt:layers=6,width=384,heads=6,"
            "context=256\n",
            out, (unsigned long long)stats.tokens, tokenizer->name,
            (unsigned long long)stats.text_bytes, (unsigned long long)stats.documents,
            stats.documents == 1 ? "" : "s",
            stats.documents > 1 && tokenizer->end_of_text < 0 ? ", with nothing between them" : "",
            quoted(out).text);
    tokenizer_free(tokenizer);
    if (result == 1) return interrupt_status();
    return result;
}
