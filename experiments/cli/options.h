/* Flags and their values.
 *
 * One table (options_table.c) describes the flags; parsing, --help, "did you mean" and the settings
 * stored with a run all use it.  To add a flag, add a field here and a row there; for one of `bcd
 * train`, also say to bcd report what a training did without it (ADDED_FLAGS in
 * experiments/paper/schema.py), or that it changes no result (IRRELEVANT in cases.py), and that its
 * value is a text, if so (TEXT_FLAGS). */
#pragma once

#include "../../dist/placement.h"
#include "../../ref/bcd.h"
#include "../base/text.h"

/* The commands.  To add one, add a row here, its help in options_help.c, and a function: for train
 * it is command_train. */
#define EACH_COMMAND(ROW)     \
    ROW(TRAIN, train)         \
    ROW(EVAL, eval)           \
    ROW(SAMPLE, sample)       \
    ROW(INFO, info)           \
    ROW(TOKENIZE, tokenize)   \
    ROW(TRACE, trace)         \
    ROW(GRADIENTS, gradients) \
    ROW(EXPORT, export)       \
    ROW(PLAN, plan)

#define COMMAND_NUMBER(NAME, name) NUMBER_OF_##NAME,
enum { EACH_COMMAND(COMMAND_NUMBER) COMMANDS };

/* One bit each, so that the row of a flag can name all commands that take it. */
#define COMMAND_BIT(NAME, name) COMMAND_##NAME = 1 << NUMBER_OF_##NAME,
typedef enum { EACH_COMMAND(COMMAND_BIT) } Command;

enum { OPTION_TEXT = 512, PROMPT_BYTES = 1 << 14, OPTIONS_MAX = 160 };

typedef enum { DEVICE_CPU, DEVICE_PLAIN, DEVICE_CUDA, DEVICE_SIMT, DEVICE_KINDS } DeviceKind;
extern const char *const device_names[DEVICE_KINDS];

enum { PLACEMENT_AUTO = PLACEMENTS };

/* offload: ordinary training on a device, with optimizer state and update in host memory. */
typedef enum { METHOD_BCD, METHOD_OFFLOAD, METHOD_KINDS } MethodKind;
extern const char *const method_names[METHOD_KINDS];

extern const char *const split_names[3];  /* by Split in data.h */
extern const char *const mode_names[2];   /* by Mode in ref/stage.h */
extern const char *const export_names[3]; /* the numbers of bcd export */
extern const char *const plan_names[4];   /* bcd plan --method: PlanMethod in plan.h, all */

typedef struct {
    char prompt[PROMPT_BYTES];
    bool chat;
    int tokens;
    double temperature, top_p;
    int top_k;
} SampleFlags;

typedef struct {
    char checkpoint[OPTION_TEXT], batch_file[OPTION_TEXT];
    int mode; /* Mode */
} GradientsFlags;

typedef struct {
    int active; /* submodel to show, from 1; 0: every one */
    int steps;  /* to time at most, of each */
} TraceFlags;

typedef struct {
    char gpu[OPTION_TEXT];   /* key in gpu_table, or "any" */
    char trace[OPTION_TEXT]; /* a file that bcd trace --out wrote on such a GPU */
    int per_node, nodes, pipeline, micro_batches;
    double network; /* gigabits per second of a node, one direction */
    bool cache, search;
    int max_gpus;
    double budget;                /* dollars per hour, of all GPUs; 0: any */
    double host_memory;           /* GiB of a node; 0: any */
    double multiplier;            /* B-F, of the cost to the same loss */
    double tokens;                /* of the training whose cost is reported */
    int method;                   /* PlanMethod, or PLAN_METHODS for all */
    double efficiency, host_rate; /* fraction of the peak, GB/s; 0: not given */
    double step_ms;               /* a measured step to calibrate with; 0: none */
    bool unfused_attention, equal_work, ignore_memory;
    char price[OPTION_TEXT]; /* "rtx4090=0.31,a100=1.12", dollars per hour, or one number */
} PlanFlags;

/* All flags.  Those of `bcd train`, the settings of a training and how it runs, come first: a run
 * stores them, and other commands share them as far as they train or open a run.  A default that
 * depends on the model, the data or the optimizer is filled in by setup_open; given[] tells what
 * the user set. */
typedef struct {
    Command command; /* whose flags may be set */

    /* model and data */
    char model[OPTION_TEXT], data[OPTION_TEXT], data_dir[OPTION_TEXT];
    char init[OPTION_TEXT];  /* directory or file of a model to start from */
    char valid[OPTION_TEXT]; /* token file; "": a part of data is held out */
    int context, limit, eval_samples;
    bool augment;

    /* block coordinate descent */
    int submodels;
    char partition[OPTION_TEXT]; /* "": balanced */
    char always_active[OPTION_TEXT], submodel_lr[OPTION_TEXT];
    int switch_warmup;
    int order;              /* Order */
    SwitchRule switch_rule; /* --switch-every, --auto-... */
    bool keep_state;
    double correct_above;
    int frozen_norm; /* FrozenNorm */
    double fraction;

    OptimizerSettings optimizer; /* all but decay_matrices_only, which is `decay` */
    int decay;                   /* 0 all, 1 matrices */
    int batch, accumulate;
    uint64_t steps;
    double epochs;
    uint64_t seed;

    /* where it computes: the same mathematics, rounded differently */
    int device;    /* DeviceKind */
    int precision; /* Precision */
    int method;    /* MethodKind */

    /* how it runs; none of these changes a bit of the result */
    bool recompute;
    size_t cache;        /* bytes of prefix cache in host memory */
    size_t device_cache; /* bytes of it in the device's memory, used first; both 0: no cache */
    bool pre_infer;      /* all ranks fill the cache before a phase */
    int threads;         /* 0: as OpenMP decides */
    char out[OPTION_TEXT], resume[OPTION_TEXT];
    int eval_every, save_every, keep_last;
    bool quiet;               /* no progress, no tables: errors only */
    bool brief;               /* progress, and the result in a line */
    char config[OPTION_TEXT]; /* file of flags */
    char like[OPTION_TEXT];   /* directory of a run to take the settings of */
    char log_samples[OPTION_TEXT];

    /* over which ranks */
    char pipeline[OPTION_TEXT]; /* see pipeline.h */
    int placement;              /* PlacementKind, or PLACEMENT_AUTO */
    int pipeline_schedule;      /* ScheduleKind */
    int replicas;
    double timeout;

    /* of single commands */
    int split;                   /* Split; bcd eval */
    char tokenizer[OPTION_TEXT]; /* bcd tokenize */
    int export_numbers;          /* bcd export: one of export_names */
    SampleFlags sample;
    GradientsFlags gradients;
    TraceFlags trace;
    PlanFlags plan;

    bool given[OPTIONS_MAX]; /* by row of the table */

    /* Not a flag, but for train_run.  NULL: a single process; else it takes it over, as rank 0. */
    struct Transport *world;
} Options;

typedef enum {
    OPTION_IS_TEXT,
    OPTION_IS_INT,
    OPTION_IS_COUNT, /* uint64_t */
    OPTION_IS_REAL,  /* double */
    OPTION_IS_BYTES, /* size_t: 2G, 512M, 64K, 100 */
    OPTION_IS_CHOICE,
    OPTION_IS_FLAG,
    OPTION_IS_SWITCH /* K, Ee or auto */
} OptionKind;

/* Whether a run stores a setting, and whether a resume may change it. */
typedef enum {
    OPTION_LOCAL,   /* not stored: it belongs to one invocation */
    OPTION_FREE,    /* stored in run.h5; a resume may change it, the result stays the same */
    OPTION_MOVES,   /* stored in both files; a resume may change it: where the same data are */
    OPTION_ROUNDS,  /* stored in both files; a resume may change it, which changes roundings */
    OPTION_EXTENDS, /* stored in both files; a resume may raise it: --steps, --epochs */
    OPTION_FIXED    /* stored in both files; a resume may only repeat it */
} OptionRole;

/* A flag.  A row with the name "" and no command begins a section of --help, with `help` as its
 * title. */
typedef struct {
    const char *name, *argument; /* "switch-every", "K|Ee|auto"; NULL: none, or its choices */
    OptionKind kind;
    size_t offset;              /* of the field in Options */
    double min, max;            /* max of a text: its length */
    const char *const *choices; /* of OPTION_IS_CHOICE */
    int choice_count;
    OptionRole role;
    const char *default_text; /* NULL: filled in later, from model, data and optimizer */
    /* The default in --help; NULL: default_text.  If the default depends on the optimizer, this
     * follows those of all optimizers. */
    const char *default_words;
    const char *help;
    unsigned commands; /* bits of Command */
} Option;

extern const Option option_table[]; /* ends with name NULL */

typedef struct {
    Command command;
    int min, max; /* positional arguments */
    const char *name, *arguments, *summary;
    const char *teaches; /* a few lines: what it does, with examples */
} CommandInfo;

extern const CommandInfo command_table[COMMANDS];

/* Overwrites options with the defaults of a command. */
void options_defaults(Options *options, Command command);

/* Sets a flag of options->command as the command line would; name without dashes, value NULL for a
 * flag without one.  -1 and an error. */
int options_set(Options *options, const char *name, const char *value);

/* Returns what --help shows as a flag's value, as "sgd|adam"; "" if it takes none. */
Text option_argument(const Option *option);

/* Returns what --help shows as a flag's default; "" if there is none. */
Text option_default(const Option *option);
/* Returns its help, with the optimizers whose weight decay is coupled in place of COUPLED, and the
 * names of the data sets in place of DATASETS. */
Text option_help(const Option *option);

/* Returns the number in `settings` that a row sets, or NAN unless it is one of the optimizer's own
 * settings, whose default depends on the optimizer. */
double option_of_optimizer(const Option *option, const OptimizerSettings *settings);

/* Copies to `to` the flags that `from` was given: only those named (NULL ends the names), or all
 * but those.  Skips flags that the command of `to` does not have.  -1 and an error. */
int options_take(Options *to, const Options *from, const char *const *names, bool only_named);

/* Returns the row of a command's flag, or -1. */
int options_find(const char *name, Command command);
bool options_given(const Options *options, const char *name);

/* A value as options_set reads it back, bit for bit. */
Text options_format(const Options *options, int row);

/* When a rule switches: "after 500 steps", "after 1 epoch", "when the loss stops falling". */
Text switch_words(const SwitchRule *rule);

/* A file's name as it can be typed in a suggested command: in single quotes if it holds characters
 * that mean something to a shell. */
typedef struct {
    char text[4 * TEXT_BYTES + 3];
} Quoted;
Quoted quoted(const char *name);

/* ---- shared by the files of the options ------------------------------------------------------ */

/* Sets the field of one row from text, and checks its range; leaves given[] unchanged.  -1 and an
 * error that names the flag. */
int option_assign(Options *options, int row, const char *text);

/* Returns the row of a command. */
const CommandInfo *command_find(Command command);

/* Returns the nearest name of a command's flags, or with 0 of the commands, for "did you mean";
 * NULL if none is near. */
const char *nearest_name(const char *name, Command command);
