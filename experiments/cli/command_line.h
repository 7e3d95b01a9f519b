/* What `bcd COMMAND ...` is given: Options, and the flags and files of single commands. */
#pragma once

#include "options.h"

enum { POSITIONAL_MAX = 64, PROMPT_BYTES = 1 << 14 };

extern const char *const split_names[3]; /* by Split in data.h */

extern const char *const mode_names[2]; /* by Mode in ref/stage.h */

extern const char *const export_names[2]; /* the numbers of bcd export */

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
    int most_gpus;
    double budget;                /* dollars per hour, of all GPUs; 0: any */
    double multiplier;            /* B-F, of the cost to the same loss */
    double tokens;                /* of the training whose cost is reported */
    int method;                   /* PlanMethod, or PLAN_METHODS for all */
    double efficiency, host_rate; /* fraction of the peak, GB/s; 0: not given */
    double step_ms;               /* a measured step to calibrate with; 0: none */
    bool unfused_attention, ignore_memory;
    char price[OPTION_TEXT]; /* "rtx4090=0.31,a100=1.12", dollars per hour, or one number */
} PlanFlags;

/* A command line.  The flags of `bcd train` are all in `options`, which other commands share as far
 * as they train or open a run; each command has the rest in a struct of its own. */
typedef struct {
    Options options; /* first: offsets in the table are from here */
    bool help;
    int split;                   /* Split; bcd eval */
    char tokenizer[OPTION_TEXT]; /* bcd tokenize */
    int export_numbers;          /* bcd export: one of export_names */
    SampleFlags sample;
    GradientsFlags gradients;
    TraceFlags trace;
    PlanFlags plan;
    const char *positional[POSITIONAL_MAX]; /* DIR, FILE..., as the command takes them */
    int positionals;
} CommandLine;

/* Overwrites a command line with what it would be without flags. */
void command_line_defaults(CommandLine *line, Command command);

/* Reads a command line (argv[0] is the program, argv[1] the command).  -1 and an error that names
 * the right flags or values.  With --help anywhere only the command and `help` are set; command 0
 * asks for help about the program. */
int command_line_parse(CommandLine *line, int argc, char **argv);

/* Prints the help of the program (command 0) or of a command. */
void options_print_help(Command command);
