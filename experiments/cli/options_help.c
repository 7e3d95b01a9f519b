/* The commands, --help, and "did you mean". */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../../data/data.h"
#include "command_line.h"

const CommandInfo command_table[COMMANDS] = {
    {COMMAND_TRAIN, 0, 0, "train", "",
     "train a network, all at once or by block coordinate descent",
     "Trains a network.  --submodels M cuts it into M submodels of about equal size, of which\n"
     "one is trained at a time; the others are frozen and need no gradients and no optimizer\n"
     "state.\n\n"
     "  bcd train --data synthetic --model resnet8 --submodels 3 --switch-every 1e --epochs 6\n"
     "  bcd train --data cifar10 --model resnet20 --optimizer sgd --lr 0.1 --out runs/a\n"
     "  bcd train --data text --model gpt:layers=4,width=128,heads=4,context=128 \\\n"
     "            --optimizer adam --lr 1e-3 --submodels 3 --order descending --steps 600\n"
     "  bcd train --resume runs/a                 continue after Ctrl-C, kill -9 or a power cut\n"
     "  bcd train --resume runs/a --epochs 60     train longer than was first asked for\n"
     "  bcd train --resume runs/a --device cuda --precision bf16     continue on a GPU\n\n"
     "The run's directory gets run.h5 (settings, curves, memory: for bcd report, h5py, h5ls) and\n"
     "checkpoint.h5 (everything needed to continue; the same training gives the same file)."},
    {COMMAND_EVAL, 0, 1, "eval", "[DIR]", "loss and accuracy of a trained network",
     "DIR is a run's directory or a checkpoint file.  Without DIR, --init names the directory of\n"
     "a model in Hugging Face's format.  A run is evaluated on the samples that its training was;\n"
     "with --valid FILE.tokens, or --data FILE.tokens if the training had another, on all of that\n"
     "file; with other --data, or with --split, on a split; with --limit on so many samples.\n\n"
     "  bcd eval runs/a --split test\n"
     "  bcd eval --init DIR --data chats.tokens --context 512"},
    {COMMAND_SAMPLE, 0, 1, "sample", "[DIR]", "text from a trained language model",
     "DIR is a run's directory or a checkpoint file.  Without DIR, --init names the directory of\n"
     "a model in Hugging Face's format.  The same seed gives the same text.\n\n"
     "  bcd sample runs/a --prompt \"The \" --tokens 300 --temperature 0.8 --top-k 40\n"
     "  bcd sample --init DIR --context 256 --prompt \"The \" --top-p 0.9\n"
     "  bcd sample --init DIR --chat --prompt \"What is the capital of France?\" --context 256\n\n"
     "A text ends with --tokens, or where the model ends it."},
    {COMMAND_INFO, 0, 0, "info", "", "this build, and the memory of models with and without BCD",
     "Prints the build and a table of the known models: parameters, and bytes of parameters,\n"
     "gradients and optimizer state for ordinary training and for M = 2..5 submodels; and the "
     "GPUs\n"
     "that bcd plan knows.  With --model the blocks of one, and its memory, also of "
     "activations.\n\n"
     "  bcd info\n"
     "  bcd info --model gpt:layers=6,width=384,heads=6,context=256\n"
     "  bcd info --model G-10B --optimizer adam --batch 4 --out memory.h5\n\n"
     "A model is a name from that table, a name with changes (llama3-8B:layers=4,context=512),\n"
     "or a shape, family:setting=value,...  Defaults are in parentheses.\n"
     "  resnet, bottleneck  depth, width, classes, size, fused\n"
     "  gpt                 layers, width, heads, context, vocabulary, eps\n"
     "  llama               the settings of gpt, and\n"
     "    ffn               width of the feed-forward layers (8/3 of width)\n"
     "    groups            heads of keys and values, each for heads / groups queries (heads)\n"
     "    head_size         width of a head (width / heads)\n"
     "    tied              1: the output layer shares the token embedding (0)\n"
     "    rope_base         base of the rotary positions' frequencies (10000)\n"
     "    rope_factor       divides the frequencies (1): all of them or, with rope_low,\n"
     "                      rope_high and rope_original, the low ones, as in Llama 3.1\n"
     "    attention_bias    1: the linear layers of attention have biases (0)\n"
     "  mistral, qwen2, qwen3, smollm3, olmo2\n"
     "                      the settings of llama, but attention_bias not in mistral and qwen2\n"
     "    window            in mistral: how many tokens attention sees (all)\n"
     "    rope_skip         in smollm3: each so many-th layer has no rotary positions (4)\n"
     "  mlp                 inputs (3072 of an image), layers, width, classes"},
    {COMMAND_TOKENIZE, 1, POSITIONAL_MAX, "tokenize", "FILE...",
     "turn text or JSON lines into a token file",
     "Reads plain text, JSON lines (.jsonl) or a JSON array (.json), compressed by gzip or zstd "
     "or\n"
     "not, and writes one token file for bcd train --data FILE.tokens.  In JSON:\n"
     "  {\"text\": \"...\"}\n"
     "and with --tokenizer DIR, a model's directory, also prompts and chats, of which only "
     "answers\n"
     "count in the loss (data/README.md has all forms):\n"
     "  {\"prompt\": \"2 + 2 =\", \"answer\": \" 4\"}\n"
     "  {\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}, ...]}\n\n"
     "  bcd tokenize corpus.jsonl.zst --tokenizer gpt2 --out corpus.tokens\n"
     "  bcd tokenize chats.jsonl --tokenizer DIR"},
    {COMMAND_TRACE, 0, 0, "trace", "", "one training step, block by block",
     "Shows what BCD saves: for each block whether it is active or frozen, how long its forward\n"
     "pass and its gradients take, and how many bytes it keeps, next to a full update.  It shows\n"
     "each of M = 3 submodels in turn, unless --submodels and --active say otherwise.\n\n"
     "  bcd trace --model resnet20\n"
     "  bcd trace --model resnet20 --out trace.h5      also as tables; bcd report draws them\n"
     "  bcd trace --model gpt:layers=6,width=384,heads=6,context=256 --data text --active 3\n"
     "  bcd trace --model resnet20 --pipeline local:2 --accumulate 4   also a pipeline's step,\n"
     "                                              measured, and simulated from the block times"},
    {COMMAND_GRADIENTS, 0, 0, "gradients", "",
     "loss, activations and gradients of one batch, as HDF5",
     "For comparing with another framework.  All files are HDF5:\n"
     "  checkpoint  of a run; or any file with an attribute model (a specification),\n"
     "              /parameters/NAME and /buffers/NAME; names and shapes as in a checkpoint\n"
     "  batch       /images [n][height][width][channel] or /tokens [n][token];\n"
     "              /targets [n] or [n][token]; negative targets do not count\n"
     "  out         /loss [1], the mean in nats; /logits; /activations/BLOCK; /gradients/NAME;\n"
     "              /buffers/NAME, the running statistics after this batch\n"
     "All blocks are active, as after PyTorch's model.train().  With --mode eval none is, as\n"
     "after model.eval(), and there are no gradients.  --init DIR, in place of --checkpoint,\n"
     "takes a model in Hugging Face's format.\n\n"
     "  bcd gradients --checkpoint runs/a/checkpoint.h5 --batch batch.h5 --out gradients.h5"},
    {COMMAND_EXPORT, 1, 1, "export", "DIR", "a trained model for the transformers library",
     "DIR is a run's directory or a checkpoint file.  Writes config.json and model.safetensors,\n"
     "which transformers and bcd train --init load.\n\n"
     "  bcd train --init gpt2 --data wikitext2 --context 256 --submodels 3 --optimizer adam \\\n"
     "            --lr 2e-5 --epochs 1 --out runs/tuned\n"
     "  bcd export runs/tuned --out tuned"},
    {COMMAND_PLAN, 0, 0, "plan", "",
     "what a training would take on other GPUs: memory, time, dollars",
     "Says before you rent GPUs whether a model fits them, how long a step takes and why, and\n"
     "what a training costs, for the full update, offload and BCD.  Settings that you do not give\n"
     "are chosen: the cheapest that fits.  Bytes are computed, and times are simulated.\n\n"
     "  bcd plan --model llama3.2-1B --context 1024 --per-node 1 --batch 8 --precision bf16\n"
     "  bcd plan --model G-10B --gpu rtx4090 --per-node 8 --submodels 3 --batch 256\n"
     "  bcd plan --model G-10B --gpu a100 --pipeline 4 --replicas 2 --micro-batches 32\n"
     "  bcd plan --model G-20B --search --nodes 4            which GPUs, and how many\n"
     "  bcd plan --model G-20B --search --gpu any --budget 5 --precision bf16\n"
     "  bcd plan --model L-70B --gpu h100 --price 2 --nodes 64 --batch 4096\n"
     "  bcd plan --model G-10B --method bcd --batch 1 --step-ms 2414    at the speed of a step\n\n"
     "A setting reads \"2x4 GPUs, 32x4, virtual, 1f1b, bf16\": 2 pipelines of 4 ranks each, 32\n"
     "micro-batches of 4 samples in each, placement, schedule, precision.  To the same loss BCD\n"
     "takes more updates: by default as many times as in this project's trainings of small "
     "models."},
};

/* Commands that are programs of their own, next to this one (main.c). */
static const struct {
    const char *name, *summary;
} programs[] = {{"experiment", "our tables next to the published ones"},
                {"report", "tables and plots from results"}};
enum { PROGRAMS = sizeof programs / sizeof *programs };

const CommandInfo *command_find(Command command) {
    const CommandInfo *info = command_table;
    while (info->command != command) info++;
    return info;
}

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

/* Returns how many changes of one character lead from a to b: replace, insert or delete
 * (Levenshtein 1966). */
static size_t edit_distance(const char *a, const char *b) {
    enum { LONGEST = 40 };
    size_t n = strlen(a), m = strlen(b), cost[LONGEST + 1][LONGEST + 1];
    if (n > LONGEST || m > LONGEST) return LONGEST;
    for (size_t i = 0; i <= n; i++)
        for (size_t j = 0; j <= m; j++) {
            if (i == 0 || j == 0) {
                cost[i][j] = i + j;
                continue;
            }
            cost[i][j] = smaller(smaller(cost[i - 1][j], cost[i][j - 1]) + 1,
                                 cost[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
        }
    return cost[n][m];
}

const char *nearest_name(const char *name, Command command) {
    const char *best = NULL;
    const size_t length = strlen(name);
    size_t distance = 2 + length / 3;
    for (int i = 0; command ? option_table[i].name != NULL : i < COMMANDS + PROGRAMS; i++) {
        const char *candidate = command        ? option_table[i].name
                                : i < COMMANDS ? command_table[i].name
                                               : programs[i - COMMANDS].name;
        if (command && !(option_table[i].commands & command)) continue;
        size_t changes = edit_distance(name, candidate);
        if (length > 1 && changes > 1 && strncmp(name, candidate, length) == 0)
            changes = 1; /* the beginning of a name is near it, however long the rest */
        if (changes >= distance) continue;
        distance = changes;
        best = candidate;
    }
    return best;
}

/* Adds "sgd 0.1; adam, adamw 1e-4", the optimizers that have a setting and its values. */
static void add_defaults(Text *text, const Option *option, OptimizerUse use) {
    double value[OPTIMIZER_KINDS];
    for (int kind = 0; kind < OPTIMIZER_KINDS; kind++) {
        const OptimizerSettings defaults = optimizer_defaults_for((OptimizerKind)kind, use);
        value[kind] = option_of_optimizer(option, &defaults);
    }
    const char *before = "";
    for (int kind = 0; kind < OPTIMIZER_KINDS; kind++) {
        const char *comma = "";
        for (int other = kind; other < OPTIMIZER_KINDS && value[kind] > 0; other++) {
            if (value[other] != value[kind]) continue;
            text_add(text, "%s%s", *comma ? comma : before, optimizer_names[other]);
            comma = ", ";
            if (other > kind) value[other] = 0; /* it is in the list */
        }
        if (!*comma) continue;
        text_add(text, " %g", value[kind]);
        before = "; ";
    }
}

Text option_default(const Option *option) {
    static const char *const uses[OPTIMIZER_USES] = {
        [USE_LANGUAGE] = "; language models: ", [USE_TUNING] = "; with --init: "};
    const OptimizerSettings any = optimizer_defaults(OPTIMIZER_SGD);
    const char *number = option->default_text ? option->default_text : "";
    const char *words = option->default_words ? option->default_words : option->default_text;
    /* "0: all", since 0 can be given, too. */
    const bool zero = words && !strcmp(number, "0") && *words != '0';
    Text text = {""}, general = {""};
    if (option->kind == OPTION_IS_FLAG) return text;
    if (isnan(option_of_optimizer(option, &any)))
        return text_of("%s%s", zero ? "0: " : "", words ? words : "");
    add_defaults(&general, option, USE_GENERAL);
    text_add(&text, "%s", general.text);
    for (OptimizerUse use = USE_LANGUAGE; use < OPTIMIZER_USES; use++) {
        Text other = {""};
        add_defaults(&other, option, use);
        if (strcmp(other.text, general.text)) text_add(&text, "%s%s", uses[use], other.text);
    }
    if (words) text_add(&text, "; %s", words);
    return text;
}

/* Returns whether the decay of the weights is part of the gradient. */
static bool is_coupled(int kind) {
    OptimizerSettings settings = optimizer_defaults((OptimizerKind)kind);
    settings.weight_decay = 1;
    return optimizer_factors(&settings, 1, 1, true).coupled_decay > 0;
}

static void add_coupled(Text *text) {
    int left = 0;
    for (int kind = 0; kind < OPTIMIZER_KINDS; kind++) left += is_coupled(kind);
    for (int kind = 0; kind < OPTIMIZER_KINDS; kind++) {
        if (!is_coupled(kind)) continue;
        left--;
        text_add(text, left > 1 ? "%s, " : left ? "%s and " : "%s", optimizer_names[kind]);
    }
}

/* Adds the data sets, those that need no download first, as the table has them. */
static void add_data_sets(Text *text) {
    const char *before = "without a download: ";
    bool downloads = false;
    for (const DataSet *set = data_sets; set->name; set++) {
        text_add(text, "%s%s", set->file && !downloads ? "; " : before, set->name);
        if (set->in_tokens) text_add(text, ", %s:N", set->name);
        if (set->about) text_add(text, " (%s)", set->about);
        downloads = set->file;
        before = ", ";
    }
}

Text option_help(const Option *option) {
    static const struct {
        const char *word;
        void (*add)(Text *text);
    } words[] = {{"COUPLED", add_coupled}, {"DATASETS", add_data_sets}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const char *at = strstr(option->help, words[i].word);
        if (!at) continue;
        Text text = text_of("%.*s", (int)(at - option->help), option->help);
        words[i].add(&text);
        text_add(&text, "%s", at + strlen(words[i].word));
        return text;
    }
    return text_of("%s", option->help);
}

static void print_option(const Option *option) {
    const Text words = option_default(option), argument = option_argument(option);
    int column = printf("  --%s%s%s", option->name, *argument.text ? " " : "", argument.text);
    enum { LEFT = 28 };
    if (column >= LEFT) {
        printf("\n");
        column = 0;
    }
    printf("%*s", LEFT - column, "");
    print_wrapped(
        stdout, text_of(*words.text ? "%s [%s]" : "%s", option_help(option).text, words.text).text,
        LEFT, 79);
}

static void print_program_help(void) {
    printf(
        "bcd: trains neural networks by block coordinate descent, one part at a time.\n\n"
        "usage: bcd COMMAND [FLAGS]\n\n");
    for (int i = 0; i < COMMANDS; i++)
        printf("  %-12s%s\n", command_table[i].name, command_table[i].summary);
    for (int i = 0; i < PROGRAMS; i++) printf("  %-12s%s\n", programs[i].name, programs[i].summary);
    printf(
        "\nbcd COMMAND --help explains a command, bcd --version names the build.\n"
        "--no-FLAG turns off a flag that takes no value, as in --no-recompute.\n"
        "To start, without any download:\n\n"
        "  bcd train --data synthetic --limit 4000 --batch 64 --steps 1400 --out runs/first\n"
        "  bcd report runs/first/run.h5\n");
}

static void print_flags(Command command) {
    const char *section = NULL; /* not printed yet */
    for (const Option *option = option_table; option->name; option++) {
        if (!*option->name) section = option->help;
        if (!(option->commands & command)) continue;
        if (section) printf("\n%s\n", section);
        section = NULL;
        print_option(option);
    }
}

void options_print_help(Command command) {
    if (!command) {
        print_program_help();
        return;
    }
    const CommandInfo *info = command_find(command);
    printf("usage: bcd %s%s%s [FLAGS]\n", info->name, *info->arguments ? " " : "", info->arguments);
    printf("\n%s\n", info->teaches);
    print_flags(command);
}
