/* Text, prompts and chats that are tokenized by a model's own tokenizer. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../../data/tokens.h"
#include "../../experiments/convert/convert.h"
#include "../../experiments/inspect/python.h"
#include "../../ref/base/error.h"
#include "cli.h"

/* Writes a tokenizer of whole words in the format of the tokenizers package. */
static void make_word_tokenizer(void) {
    scratch_text(
        "wordy/tokenizer.json",
        "{\"version\": \"1.0\", \"added_tokens\": [], \"normalizer\": null, "
        "\"pre_tokenizer\": {\"type\": \"WhitespaceSplit\"}, \"post_processor\": null, "
        "\"decoder\": null, \"model\": {\"type\": \"WordLevel\", \"unk_token\": \"?\", "
        "\"vocab\": {\"?\": 0, \"</s>\": 1, \"a\": 2, \"b\": 3, \"user\": 4, \"bot\": 5}}}");
    scratch_text("wordy/tokenizer_config.json",
                 "{\"eos_token\": \"</s>\", \"chat_template\": \"{% for m in messages %} "
                 "{{ 'user' if m.role == 'user' else 'bot' }} {{ m.content }}{% endfor %}"
                 "{% if add_generation_prompt %} bot {% endif %}\"}");
}

/* Reads a text, a prompt and a chat that begin with a byte order mark; tests/data/test_texts.py has
 * the other forms and errors. -1 - token: no target. */
static void text_by_the_models_own_tokenizer(void) {
    static const int expected[] = {2, 3, 0, 1, -3, -4, 3, 1, -5, -3, -6, 3, 2, -5, -4};
    enum { COUNT = sizeof expected / sizeof *expected };
    Tokens tokens;
    char name[TOKENIZER_NAME];
    make_word_tokenizer();
    scratch_text(
        "own.jsonl",
        "\xef\xbb\xbf{\"text\": \"a b c\"}\n{\"prompt\": \"a b\", \"answer\": \"b\"}\n"
        "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}, {\"role\": \"assistant\", "
        "\"content\": \"b a\"}, {\"role\": \"user\", \"content\": \"b\"}]}");
    const Printed *printed =
        program_run("tokenize own.jsonl --out own.tokens --tokenizer wordy", 0);
    if (printed->status && strstr(printed->error, "pip install")) SKIP("%s", printed->error);
    CHECK(printed->status == 0, "%s", printed->error);
    if (!CHECK(tokens_open(&tokens, scratch_path("own.tokens")) == 0, "%s", error_message()))
        return;
    CHECK(tokenizer_fingerprint(name, scratch_path("wordy/tokenizer.json")) == 0 &&
              strcmp(tokens.tokenizer, name) == 0,
          "by %s, not %s", tokens.tokenizer, name);
    CHECK((int)tokens.count == COUNT, "%zu tokens", tokens.count);
    for (size_t t = 0; t < tokens.count && t < COUNT; t++) {
        const int token = tokens_at(&tokens, t);
        CHECK((tokens_is_target(&tokens, t) ? token : -1 - token) == expected[t],
              "token %zu is %d, not %d", t, token, expected[t]);
    }
    tokens_free(&tokens);
    scratch_text("own.jsonl", "{\"text\": \"\"}\n");
    check_error(run(1, "tokenize own.jsonl --out own.tokens --tokenizer wordy"),
                "the inputs have no text");
    check_error(run(1, "tokenize own.jsonl absent.txt --out own.tokens --tokenizer wordy"),
                "bcd: tokenize: absent.txt: No such file or directory");
    check_error(run(1, "tokenize own.jsonl --out own.tokens --tokenizer ."),
                ".: neither tokenizer.json nor tokenizer.model is there");
    scratch_text("own.jsonl.zst", "\x28\xB5\x2F\xFD");
    check_error(run(1, "tokenize own.jsonl.zst --out own.tokens --tokenizer wordy"),
                "own.jsonl.zst: truncated zstd; get it again");
}

/* The code of data/README.md writes a token file with numpy. */
static void numpy_writes_one(void) {
    char said[4096];
    Tokens tokens;
    if (run_python("-c 'import numpy'", said)) SKIP("no numpy");
    scratch_text("write.py",
                 "import re, textwrap\n"
                 "page = open('" BCD_SOURCE_DIR
                 "/data/README.md').read()\n"
                 "code = re.search(r'in\\s+numpy:\\n\\n((?: {4}.*\\n)+)', page)[1]\n"
                 "code = textwrap.dedent(code).replace('3, ...]', '3] * 9')\n"
                 "exec(code, {'vocabulary': 18})\n");
    CHECK(run_python("write.py", said) == 0, "%s", said);
    if (!CHECK(tokens_open(&tokens, scratch_path("mine.tokens")) == 0, "%s", error_message()))
        return;
    CHECK(tokens.count == 27 && tokens.vocabulary == 18 && tokens_at(&tokens, 4) == 17 &&
              strcmp(tokens.tokenizer, "mine") == 0,
          "%zu tokens by %s", tokens.count, tokens.tokenizer);
    tokens_free(&tokens);
}

/* An export takes the tokenizer of its model along, which encodes the prompt and decodes the
 * sampled text. */
static void an_export_has_the_tokenizer(void) {
    size_t bytes;
    make_word_tokenizer();
    char lines[12 * 18 + 1] = "";
    for (int i = 0; i < 12; i++) strcat(lines, "{\"text\": \"a b\"}\n");
    scratch_text("own.jsonl", lines);
    const Printed *printed =
        program_run("tokenize own.jsonl --out own.tokens --tokenizer wordy", 0);
    if (printed->status && strstr(printed->error, "pip install")) SKIP("%s", printed->error);
    run(0,
        "train --model llama:layers=1,width=8,heads=1,context=4 --data own.tokens --valid "
        "own.tokens --steps 0 --quiet --out random");
    run(0, "export random --out wordy --quiet");
    scratch_text("wordy/LICENSE.txt", "its own");
    scratch_text("wordy/LICENSES/MIT.txt", "a directory, as REUSE has it");
    run(0,
        "train --init wordy --data own.tokens --valid own.tokens --lr 0.1 --steps 60 --batch 5 "
        "--quiet --out words");
    CHECK(strstr(run(0, "export words --out again")->out, "tokenizer.json, tokenizer_config.json"),
          "not said");
    char *text = read_bytes("again/tokenizer.json", &bytes);
    CHECK(strstr(text, "WordLevel"), "%s", text);
    CHECK(file_exists(scratch_path("again/LICENSE.txt")), "the licence is not handed on");
    free(text);
    printed = run(0, "sample --init again --context 4 --prompt a --tokens 4 --temperature 0");
    CHECK(strcmp(printed->out, "a b\n") == 0, "not up to the end token: \"%s\"", printed->out);
    printed = run(0, "sample words --prompt a --tokens 1 --temperature 0");
    CHECK(strcmp(printed->out, "a b\n") == 0, "of a run: \"%s\"", printed->out);
    const Text trained = text_of("%s", scratch_path("words"));
    const Text line = text_of("cd / && '%s' sample '%s' --prompt a --tokens 1 >'%s'", BCD_PROGRAM,
                              trained.text, scratch_path("elsewhere"));
    CHECK(system(line.text) == 0, "not from another directory");
    /* The template puts the message between the words user and bot, which are not printed. */
    printed = run(0, "sample words --chat --prompt a --tokens 1 --temperature 0");
    CHECK(strcmp(printed->out, "b\n") == 0, "not the answer alone: \"%s\"", printed->out);
    run(0, "train " GPT "--steps 0 --quiet --out bytes");
    check_error(run(1, "sample bytes --chat --prompt b"), "--chat: the tokenizer ");
    check_error(run(1, "eval again"), "again: a model and no run; it goes with --init");
    check_error(run(1, "eval --init again --data own.tokens --context 99"),
                "--context 99: again/config.json has only 4 positions");
    CHECK(strstr(run(0, "plan --init again --gpu a100 --batch 8")->out, "llama:layers=1"), "plan");
    check_error(run(2, "plan --init again --model gpt2"),
                "the model comes from there; leave out --model");
    remove(scratch_path("again/tokenizer.json"));
    check_error(run(1, "sample --init again"),
                "neither tokenizer.json nor tokenizer.model is there");
    scratch_text("again/vocab.json", "{}");
    check_error(run(1, "sample --init again"), "; of vocab.json one is made by: python3 -c");
    remove(scratch_path("again/vocab.json"));
    scratch_text("again/tokenizer.model", "damaged");
    printed = run(1, "sample --init again");
    CHECK(!strstr(printed->error, "neither"), "%s", printed->error);
    scratch_text("wordy/tokenizer.json", "{}"); /* replaced since */
    check_error(run(1, "sample words --prompt a"), "wordy: its tokenizer is not hf:");
    check_error(run(1, "export words --out third"), "wordy: its tokenizer is not hf:");
    remove(scratch_path("wordy/tokenizer.json"));
    run(0, "export words --out third --quiet");
}

static void write_tokens(const char *name, const char *tokenizer, int vocabulary) {
    TokenWriter writer;
    int numbers[100] = {0};
    CHECK(tokenwriter_open(&writer, scratch_path(name), tokenizer, vocabulary, false, 0) == 0 &&
              tokenwriter_add(&writer, numbers, 100) == 0 && tokenwriter_commit(&writer) == 0,
          "%s", error_message());
}

/* Writes a tokenizer.json with these merges: lines of a file, as text or as lists of two, without
 * the last `without`. */
static void write_merges(const char *dir, FILE *lines, bool lists, int without) {
    char path[128], line[1024];
    snprintf(path, sizeof path, "%s/tokenizer.json", dir);
    FILE *file = fopen(scratch_text(path, ""), "w");
    rewind(lines);
    fputs("{\"model\": {\"type\": \"BPE\", \"merges\": [", file);
    for (int n = 0; n < 50001 - without && fgets(line, sizeof line, lines); n++) {
        if (n == 0) continue; /* the version */
        fputs(n > 1 ? ", " : "", file);
        fputs(lists ? "[\"" : "\"", file);
        for (const char *c = line; *c != '\n'; c++) {
            if (*c == ' ' && lists)
                fputs("\", \"", file);
            else
                fprintf(file, "%s%c", *c == '"' || *c == '\\' ? "\\" : "", *c);
        }
        fputs(lists ? "\"]" : "\"", file);
    }
    fputs("]}}\n", file);
    fclose(file);
}

/* Writes the lines of a merges.txt, without the last `without`. */
static void write_lines(const char *path, FILE *lines, int without) {
    char line[1024];
    FILE *file = fopen(scratch_text(path, ""), "w");
    rewind(lines);
    for (int n = 0; n < 50001 - without && fgets(line, sizeof line, lines); n++) fputs(line, file);
    fclose(file);
}

/* GPT-2's tokenizer is known in each form, so that its tokens are accepted; with a merge less it is
 * another one. */
static void gpt2s_tokenizer_is_known(void) {
    SKIP_WITHOUT("gpt2-bpe/vocab.bpe");
    FILE *lines = fopen(real_file("gpt2-bpe/vocab.bpe"), "r");
    if (!CHECK(lines, "cannot open vocab.bpe")) return;
    for (int row = 0; row < 3; row++) {
        bool is = false;
        write_merges("merges", lines, row == 1, row == 2);
        CHECK(convert_is_gpt2_tokenizer(&is, scratch_path("merges")) == 0, "%s", error_message());
        CHECK(is == (row < 2), "row %d", row);
    }
    for (int without = 0; without < 2; without++) {
        bool is = false;
        write_lines("older/merges.txt", lines, without);
        CHECK(convert_is_gpt2_tokenizer(&is, scratch_path("older")) == 0, "%s", error_message());
        CHECK(is == !without, "merges.txt without %d", without);
    }
    fclose(lines);
}

/* Token files with as many tokens as the model has: made by its own tokenizer, by a program that
 * names no tokenizer, by another tokenizer, by our own two. */
static void another_tokenizer_is_refused(void) {
    static const char *const names[] = {"hf:c344acd8995f", "mine",           "bytes", "gpt2",
                                        "gpt2:256",        "hf:0123456789ab"};
    write_tokens("tied.tokens", "mine", 256);
    run(0,
        "train --model gpt:layers=1,width=8,heads=1,context=4 --data tied.tokens --steps 0 --quiet "
        "--out untied");
    run(0, "export untied --out tied --quiet");
    scratch_text("tied/tokenizer.model", "{\"a\": 1}");
    for (int i = 0; i < 6; i++) {
        const Text other = text_of(
            "tied.tokens was made with the tokenizer %s, and that of tied is hf:c344acd8995f; make "
            "it again with bcd tokenize --tokenizer tied",
            names[i]);
        char flags[128];
        snprintf(flags, sizeof flags, "--init tied --data tied.tokens --quiet --out tied%d", i);
        write_tokens("tied.tokens", names[i], 256);
        const Printed *printed = run(i > 1, "train %s --steps 1 --schedule constant", flags);
        if (i > 1) check_error(printed, other.text);
        printed = run(i > 1, "eval --init tied --data tied.tokens");
        if (i > 1) check_error(printed, other.text);
    }
    check_error(run(1, "eval tied0 --data tied.tokens"), ", the training data with hf:c344");
    check_error(
        run(1, "eval untied --data tied.tokens"),
        "tied.tokens was made with the tokenizer hf:0123456789ab, the training data with mine");
    write_tokens("again.tokens", "mine", 256);
    run(0, "eval untied --data again.tokens");
    check_error(
        run(1,
            "train --model gpt:layers=1,width=8,heads=1,context=4 --data again.tokens "
            "--valid tied.tokens --steps 0 --quiet --out never"),
        "tied.tokens was made with the tokenizer hf:0123456789ab, the training data with mine");
    /* With two files either may have made the tokens, and without files nothing is known. */
    write_tokens("tied.tokens", names[0], 256);
    scratch_text("tied/tokenizer.json", "{}");
    run(0, "train --resume tied0 --steps 2 --quiet");
    remove(scratch_path("tied/tokenizer.model"));
    run(0, "train --resume tied0 --steps 3 --quiet"); /* by the same tokens as before */
    /* A vocabulary may be padded by any number of tokens that the model's own tokenizer lacks. */
    for (int i = 0; i < 2; i++) {
        scratch_text("tied/tokenizer.json", "{\"a\": 1}");
        write_tokens("few.tokens", names[i], 100);
        const Printed *printed = run(i, "eval --init tied --data few.tokens");
        if (i) check_error(printed, "256 tokens, but few.tokens was made with mine, which has 100");
    }
    /* A run goes on, and is evaluated, wherever the model is that it began with. */
    write_tokens("few.tokens", names[0], 100);
    run(0, "train --init tied --data few.tokens --steps 1 --schedule constant --quiet --out few");
    CHECK(rename(scratch_path("tied"), scratch_path("moved")) == 0, "cannot rename");
    run(0, "eval few");
    run(0, "train --resume few --steps 2 --quiet");
}

/* What one Python prints on failure must not be mixed with what the next one prints. */
static void error_of_the_last_python(void) {
    char path[1024], *before = getenv("PATH"), *python = getenv("PYTHON");
    if (python) SKIP("PYTHON names the only one");
    const char *fake =
        scratch_text("fake/python3", "#!/bin/sh\nprintf '%0500d\\n' 0 >&2\nexit 3\n");
    snprintf(path, sizeof path, "%.500s:%.500s", scratch_path("fake"), before ? before : "");
    CHECK(chmod(fake, 0700) == 0 && setenv("PATH", path, 1) == 0, "no fake");
    scratch_text("own.jsonl", "{\"text\": 3}\n");
    const Printed *printed = run(1, "tokenize own.jsonl --out own.tokens --tokenizer wordy");
    CHECK(!strstr(printed->error, "000"), "%s", printed->error);
    if (before) setenv("PATH", before, 1);
}

static int write_nothing(void *context, FILE *to) { return (void)context, (void)to, 0; }

/* Nor may what it wrote until it found that a package is missing; the second one fails at once. */
static void output_of_the_last_python(void) {
    const char *fake = scratch_text("fake/python3", "#!/bin/sh\necho 49152\nexit 3\n");
    char path[1024], *before = getenv("PATH");
    if (getenv("PYTHON")) SKIP("PYTHON names the only one");
    const PythonInput in = {write_nothing, NULL};
    FILE *out = tmpfile();
    snprintf(path, sizeof path, "%.500s:%.500s", scratch_path("fake"), before ? before : "");
    if (CHECK(out && chmod(fake, 0700) == 0 && setenv("PATH", path, 1) == 0, "no fake"))
        CHECK(python_run("data/encode.py", NULL, 0, &in, out) == -1 &&
                  fseek(out, 0, SEEK_END) == 0 && ftell(out) == 0,
              "%ld bytes", ftell(out));
    if (before) setenv("PATH", before, 1);
    if (out) fclose(out);
}

/* How Python ends, and what is reported then. */
static const struct {
    const char *script, *expected; /* expected: the only line of stderr */
} endings[] = {
    {"exit 1", "bcd: data/encode.py\n"},
    {"echo one >&2; echo two >&2; exit 1", "bcd: two\n"},
    {"echo one >&2; echo >&2; exit 2", "bcd: one\n"},
    {"echo one >&2; kill -9 $$",
     "bcd: data/encode.py was ended by signal 9 (Killed); is there enough memory?\n"},
    {"kill -15 $$", "bcd: data/encode.py was ended by signal 15 (Terminated)\n"},
    {"echo tokenizers is missing >&2; exit 3", "bcd: tokenizers is missing\n"},
    {"exit 127", "bcd: Python is missing; type: apt-get install --no-install-recommends python3\n"},
    {"test \"$1 $3 $4\" = \"-B wordy own.jsonl\" || exit 4; basename $2 >&2; exit 1",
     "bcd: encode.py\n"},
};

/* How the Python that bcd sample talks to ends, before its first line and after it. */
static const struct {
    const char *script, *expected;
} conversations[] = {
    {"echo no tokenizer >&2; exit 1", "bcd: no tokenizer\n"},
    {"echo packages are missing >&2; exit 3", "bcd: packages are missing\n"},
    {"echo words", "bcd: sample: data/encode.py gave no vocabulary\n"},
    {"echo 5 1; kill -9 $$",
     "bcd: data/encode.py was ended by signal 9 (Killed); is there enough memory?\n"},
    {"echo 5 1; echo not in UTF-8 >&2; exit 1", "bcd: not in UTF-8\n"},
    /* It answers with a token that the model does not have, and with half of an answer. */
    {"echo 5 1; printf '\\4\\0\\0\\0\\0\\20\\0\\0'; cat >/dev/null",
     "bcd: sample: the tokenizer in talks gives token 4096, the model has only "},
    {"echo 5 1; printf '\\4\\0\\0\\0\\1'", "bcd: data/encode.py\n"},
};

static void a_conversation_ends(void) {
    char before[1024] = "", *python = getenv("PYTHON");
    if (python) snprintf(before, sizeof before, "%s", python);
    run(0,
        "train --model llama:layers=1,width=8,heads=1,context=4 --data text "
        "--steps 0 --quiet --out silent");
    run(0, "export silent --out talks --quiet");
    scratch_text("talks/tokenizer.json", "{}");
    for (size_t i = 0; i < sizeof conversations / sizeof *conversations; i++) {
        char script[256];
        snprintf(script, sizeof script, "#!/bin/sh\n%s\n", conversations[i].script);
        const char *fake = scratch_text("fake/talks", script);
        CHECK(chmod(fake, 0700) == 0 && setenv("PYTHON", fake, 1) == 0, "no fake");
        const Printed *printed = run(1, "sample --init talks --prompt a --tokens 2");
        CHECK(strncmp(printed->error, conversations[i].expected,
                      strlen(conversations[i].expected)) == 0,
              "%s: \"%s\"", conversations[i].script, printed->error);
    }
    python ? setenv("PYTHON", before, 1) : unsetenv("PYTHON");
}

static void python_ends(void) {
    char before[1024] = "", *python = getenv("PYTHON");
    if (python) snprintf(before, sizeof before, "%s", python);
    scratch_text("own.jsonl", "{\"text\": \"a\"}\n");
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        char script[256];
        snprintf(script, sizeof script, "#!/bin/sh\n%s\n", endings[i].script);
        const char *fake = scratch_text("fake/ends", script);
        CHECK(chmod(fake, 0700) == 0 && setenv("PYTHON", fake, 1) == 0, "no fake");
        const Printed *printed = run(1, "tokenize own.jsonl --out own.tokens --tokenizer wordy");
        CHECK(strcmp(printed->error, endings[i].expected) == 0, "%s: \"%s\"", endings[i].script,
              printed->error);
    }
    setenv("PYTHON", "/nowhere/python", 1);
    check_error(run(1, "tokenize own.jsonl --out own.tokens --tokenizer wordy"),
                "Python is missing; type:");
    const char *killer = scratch_text("fake/ends", "#!/bin/sh\nkill -TERM $PPID; cat >/dev/null\n");
    setenv("PYTHON", killer, 1);
    run(128 + SIGTERM, "tokenize own.jsonl --out stopped.tokens --tokenizer wordy");
    CHECK(!file_exists(scratch_path("stopped.tokens.tmp")), "a file is left behind");
    python ? setenv("PYTHON", before, 1) : unsetenv("PYTHON");
}

/* On a terminal the line that shows progress is followed by the result. */
static void a_result_follows_the_progress(void) {
    make_words();
    setenv("TERM", "xterm", 1);
    const char *text = program_on_terminal("tokenize words.txt --tokenizer bytes --out t.tokens");
    if (!text) SKIP("no pseudo-terminal here");
    CHECK(strstr(text, " %  ") && strstr(text, "t.tokens: 6000 tokens"), "printed \"%s\"", text);
}

void test_tokenizer(void) {
    RUN(a_result_follows_the_progress);
    RUN(text_by_the_models_own_tokenizer);
    RUN(numpy_writes_one);
    RUN(gpt2s_tokenizer_is_known);
    RUN(another_tokenizer_is_refused);
    RUN(error_of_the_last_python);
    RUN(output_of_the_last_python);
    RUN(python_ends);
    RUN(a_conversation_ends);
    RUN(an_export_has_the_tokenizer);
}
