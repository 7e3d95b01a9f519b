/* bcd info: this build, and the memory of models. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../../data/data.h"
#include "../../experiments/store/runfile.h"
#include "../../ref/base/error.h"
#include "../../ref/blocks/models.h"
#include "cli.h"
#include "tables_sample.h"

static void informs(void) {
    const Printed *printed = run(0, "info");
    CHECK(strstr(printed->out, "commit") && strstr(printed->out, "\nG-1.6B ") &&
              strstr(printed->out, " 1615775744 c   GiB    24.077 c") &&
              strstr(printed->out, " 12.038 c") &&
              strstr(printed->out, "rtx4090   RTX 4090   24.0 g     1008 g   82.6 g"),
          "%s", printed->out);
    CHECK(strstr(printed->out, "cuda/simt\n\nParameters") ||
              strstr(printed->out, "simt       not available"),
          "%s", printed->out);
    printed = run(0, "info --model resnet14");
    /* 3 x 3 x 3 x 16 weights of the stem, and scale and shift of its batch norm. */
    CHECK(strstr(printed->out, "175258 parameters in 8 blocks") &&
              strstr(printed->out, "stem    0       464 c  32 x 32 x 16      884736 c"),
          "%s", printed->out);
    check_error(run(2, "info --model resnet14x"), "no model");
    run(0,
        "train --model gpt:layers=1,width=8,heads=1,context=8 --data text --steps 0 --quiet --out "
        "g");
    run(0, "export g --out hf --quiet");
    printed = run(0, "info --init hf --context 4");
    CHECK(strstr(printed->out, "2968 parameters in 3 blocks") &&
              strstr(printed->out, "sequences of 4 tokens"),
          "%s", printed->out);
    check_error(run(2, "info --init hf --model resnet8"), "leave out --model");
    printed = run(0, "info --model llama3.2-1B --context 512");
    CHECK(strstr(printed->out, "sequences of 512 tokens"), "%s", printed->out);
    check_error(run(2, "info --model resnet8 --context 512"), "--context");
    check_error(run(2, "info --model gpt:layers=1,width=8,heads=1,context=8 --context 4"),
                "sets context=8 itself");
    check_error(run(2, "info --batch 2"), "--batch goes with --model or --init");
    check_error(run(2, "info --model resnet8 --momentum 0"), "--momentum goes with --optimizer");
    check_error(run(2, "info --model resnet8 --optimizer lion --momentum 0.5"), "lion has none");
    /* A long specification is whole. */
    printed =
        run(0,
            "info --model llama:layers=2,width=64,heads=8,ffn=128,context=64,vocabulary=49152,"
            "groups=2,rope_base=100000");
    CHECK(strstr(printed->out, "vocabulary=49152,groups=2,rope_base=100000:"), "%s", printed->out);
    check_error(run(1, "info --out /nonexistent/info.h5"), "/nonexistent");
}

/* Without a model the tables are the same whatever these say, so they are not taken. */
static void refuses_what_goes_with_a_model(void) {
    static const char *const flags[] = {"batch 2",   "optimizer adam",     "momentum 0",
                                        "context 4", "submodels 2",        "partition 0",
                                        "recompute", "always-active ends", "correct-above 0.5"};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        const Printed *printed = run(2, "info --%s", flags[i]);
        const int length = (int)strcspn(flags[i], " ");
        check_error(printed, text_of("--%.*s goes with --model or --init", length, flags[i]).text);
    }
}

static const char *text_cell(const Tables *t, const char *table, const char *row,
                             const char *column) {
    const Cell *found = table_find(tables_find(t, table), row, column);
    return CHECK(found, "%s: no %s of %s", table, column, row) ? found->text : "";
}

/* The file says to other programs what the flags of bcd train are, and what the data sets need. */
static void says_what_the_flags_are(const Tables *t) {
    static const char *const cells[][4] = {
        {"flags", "switch-every", "kind", "switch"},
        {"flags", "cache", "kind", "bytes"},
        {"flags", "cache", "role", "free"},
        {"flags", "out", "role", "local"},
        {"flags", "data", "role", "moves"},
        {"flags", "lr", "role", "fixed"},
        {"flags", "replicas", "role", "rounds"},
        {"flags", "epochs", "role", "extends"},
        {"flags", "model", "kind", "text"},
        {"flags", "batch", "kind", "int"},
        {"flags", "steps", "kind", "count"},
        {"flags", "lr", "kind", "real"},
        {"flags", "order", "kind", "choice"},
        {"flags", "recompute", "kind", "flag"},
        {"flags", "batch", "optimizers", ""},
        {"flags", "momentum", "optimizers", "sgd, muon"},
        {"flags", "eps", "optimizers", "adam, adamw, muon"},
        {"flags", "weight-decay", "optimizers", "sgd, adam, adamw, lion, muon"},
        {"data", "text", "holds", "tokens"},
        {"data", "text", "file", ""},
        {"data", "cifar100", "holds", "images"},
        {"data", "cifar100", "file", "cifar-100-binary/train.bin"}};
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++) {
        const char *found = text_cell(t, cells[i][0], cells[i][1], cells[i][2]);
        CHECK(!strcmp(found, cells[i][3]), "%s of --%s: \"%s\"", cells[i][2], cells[i][1], found);
    }
}

/* By hand, of resnet14's 175,258 parameters of 4 bytes: sgd keeps 3 such vectors, adam 4; in thirds
 * of equal size 1 + 2/3.  Twice the batch keeps twice the activations, but for the
 * statistics of the norms. */
static void informs_in_a_file(void) {
    const double vector = 4.0 * 175258 / (1 << 20);
    double activations[2];
    Tables t = {0};
    for (int i = 0; i < 2; i++) {
        run(0, "info --model resnet14 --batch %d --out info.h5", i + 1);
        tables_free(&t);
        if (!read_tables(&t, "info.h5")) return;
        activations[i] = cell(&t, "memory", "adam full", "activations");
    }
    CHECK(activations[0] > 0 && activations[1] / activations[0] > 1.98 &&
              activations[1] / activations[0] < 2,
          "%g and %g MiB", activations[0], activations[1]);
    const double thirds = cell(&t, "memory", "sgd BCD-1/3", "equal_parts");
    CHECK(fabs(cell(&t, "memory", "sgd full", "trained") / (3 * vector) - 1) < 1e-12 &&
              fabs(cell(&t, "memory", "adam full", "equal_parts") / (4 * vector) - 1) < 1e-12 &&
              fabs(thirds / ((1 + 2.0 / 3) * vector) - 1) < 1e-12 &&
              cell(&t, "memory", "sgd BCD-1/3", "trained") > thirds,
          "a third takes %g MiB", thirds);
    double sum = 0;
    for (int b = 0; b < 8; b++) sum += tables_find(&t, "blocks")->cell[5 * b + 1].value;
    CHECK(sum == 175258, "%g parameters in the blocks", sum);
    tables_free(&t);
    run(0, "info --model resnet14 --optimizer lion --recompute --out info.h5");
    if (!read_tables(&t, "info.h5")) return;
    CHECK(cell(&t, "memory", "lion full", "activations") < activations[0] &&
              tables_find(&t, "memory")->rows == 6 &&
              cell(&t, "memory", "lion BCD-1/8", "all") < cell(&t, "memory", "lion BCD-1/5", "all"),
          "recomputed, of one optimizer, down to a block each");
    tables_free(&t);
    /* Half of what is not in the first and the last block, which are always active. */
    run(0,
        "info --model resnet14 --optimizer adam --submodels 2 --always-active ends --out info.h5");
    if (!read_tables(&t, "info.h5")) return;
    const Table *blocks = tables_find(&t, "blocks");
    const double ends = blocks->cell[1].value + blocks->cell[5 * 7 + 1].value;
    const double share = (ends + (175258 - ends) / 2) / 175258;
    CHECK(fabs(cell(&t, "memory", "adam BCD-1/2", "equal_parts") / ((1 + 3 * share) * vector) - 1) <
              1e-12,
          "with both ends active");
    CHECK(cell(&t, "submodels", "1", "parameters") > ends, "what a step trains");
    tables_free(&t);
    scratch_text("data.jsonl", "{}\n");
    /* Before anything is computed. */
    static const char *const lines[] = {"info --model resnet14", "trace --model gpt2 --data text",
                                        "plan --model gpt2"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        check_error(run(2, "%s --out data.jsonl", lines[i]),
                    "--out data.jsonl: it is there, and has something else; give another name");
    run(0, "info --model resnet14 --optimizer sgd --momentum 0 --out info.h5");
    if (!read_tables(&t, "info.h5")) return;
    CHECK(fabs(cell(&t, "memory", "sgd full", "trained") / (2 * vector) - 1) < 1e-12 &&
              cell(&t, "memory", "sgd BCD-1/3", "state") == 0,
          "sgd without momentum has no state");
    tables_free(&t);
    run(0, "info --out info.h5");
    if (!read_tables(&t, "info.h5")) return;
    says_what_the_flags_are(&t);
    /* As its data sheets say. */
    static const struct {
        const char *column;
        double value;
    } a100[] = {{"memory", 80}, {"bandwidth", 2039},   {"fp32", 19.5}, {"tf32", 156},
                {"bf16", 312},  {"interconnect", 300}, {"host", 31.5}, {"price", 1.20}};
    for (size_t i = 0; i < sizeof a100 / sizeof *a100; i++)
        CHECK(fabs(cell(&t, "gpus", "a100", a100[i].column) / a100[i].value - 1) < 1e-12, "%s: %g",
              a100[i].column, cell(&t, "gpus", "a100", a100[i].column));
    CHECK(cell(&t, "optimizers", "muon", "matrix_state") == 1 &&
              cell(&t, "optimizers", "muon", "other_state") == 2,
          "vectors of state");
    CHECK(isnan(cell(&t, "gpus", "h100", "price")) &&
              fabs(cell(&t, "presets_adam", "G-1.6B", "full") - 24.077) < 5e-4,
          "known GPUs and models");
    tables_free(&t);
}

/* What bcd info plans of the submodels asked for is what a training plans in which each has a turn.
 */
static void informs_of_the_submodels_asked_for(void) {
    static const struct {
        const char *flags, *row;
        int rows;
    } cases[] = {{"", "adam BCD-1/3", 6},
                 {"--submodels 6 --always-active ends", "adam BCD-1/6", 6},
                 {"--submodels 7", "adam BCD-1/7", 7},
                 {"--partition 0-1/2-6/7", "adam BCD-1/3", 2},
                 {"--submodels 4 --recompute --correct-above 0.5", "adam BCD-1/4", 6}};
    const char *model = "gpt:layers=6,width=8,heads=1,context=8,vocabulary=256";
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        Tables t = {0};
        RunFile file = {0};
        const Text dir = text_of("run%zu", c);
        run(0, "info --model %s --optimizer adam --batch 3 --threads 2 --out info.h5 %s", model,
            cases[c].flags);
        run(0,
            "train --model %s --data text --optimizer adam --batch 3 --threads 2 --steps 7 "
            "--switch-every 1 --quiet --eval-samples 1 --out %s %s %s",
            model, dir.text, *cases[c].flags ? "" : "--submodels 3", cases[c].flags);
        if (read_tables(&t, "info.h5") && read_run(&file, dir.text)) {
            const double planned = cell(&t, "memory", cases[c].row, "all") * (1 << 20);
            CHECK(tables_find(&t, "memory")->rows == cases[c].rows, "%s: %d rows", cases[c].flags,
                  tables_find(&t, "memory")->rows);
            CHECK(fabs(planned - (double)file.memory[MEM_ROLES].planned) < 1,
                  "%s: %.0f bytes, a training %.0f", cases[c].flags, planned,
                  (double)file.memory[MEM_ROLES].planned);
        }
        tables_free(&t);
        runfile_free(&file);
    }
}

/* CHECKs that the help has each name of a list, separated by blanks and colons, at the end of the
 * last error. */
static void check_names(const char *help, const char *list, char names[1024]) {
    const char *at = strstr(error_message(), list);
    CHECK(at, "%s", error_message());
    snprintf(names, 1024, "%s", at ? at + strlen(list) : "");
    char copy[1024], *rest = copy;
    strcpy(copy, names);
    for (char *name; (name = strtok_r(rest, " :", &rest));)
        CHECK(strstr(help, text_of(" %s", name).text), "no %s in the help", name);
}

/* The help names all families of models, and all settings of each. */
static void the_help_has_every_family(void) {
    char families[1024], settings[1024], *rest = families;
    const char *help = run(0, "info --help")->out;
    CHECK(!model_create("?"), "there is one");
    check_names(help, "families:", families);
    for (char *name; (name = strtok_r(rest, " :", &rest));) {
        CHECK(!model_create(text_of("%s:?=1", name).text), "there is one");
        check_names(help, "it has", settings);
    }
}

/* Those that need no download first. */
/* The name ends there: " text" is also the beginning of " text1". */
static bool has_name(const char *help, const char *name) {
    static const char *const ends[] = {",", " (", ";"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (strstr(help, text_of(" %s%s", name, ends[i]).text)) return true;
    return false;
}

static void the_help_has_every_data_set(void) {
    static const char *const words[] = {"without a download: synthetic (images), text",
                                        "; cifar10, cifar10-holdout", "shakespeare, shakespeare:N"};
    const Option *data = &option_table[options_find("data", COMMAND_TRAIN)];
    const Text help = option_help(data);
    for (const DataSet *set = data_sets; set->name; set++)
        CHECK(has_name(help.text, set->name), "no %s: %s", set->name, help.text);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        CHECK(strstr(help.text, words[i]), "no \"%s\": %s", words[i], help.text);
}

void test_info(void) {
    RUN(the_help_has_every_data_set);
    RUN(the_help_has_every_family);
    RUN(informs);
    RUN(refuses_what_goes_with_a_model);
    RUN(informs_in_a_file);
    RUN(informs_of_the_submodels_asked_for);
}
