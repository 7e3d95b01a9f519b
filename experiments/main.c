/* bcd: trains neural networks by block coordinate descent. */
#include <ctype.h>
#include <fcntl.h>
#include <omp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../ref/base/error.h"
#include "base/alloc.h"
#include "base/program.h"
#include "base/text.h"
#include "base/threads.h"
#include "cli/commands.h"
#include "convert/convert.h"
#include "store/provenance.h"
#include "store/rundir.h"
#include "tables/table.h"
#include "train/pipeline.h"
#include "train/setup.h"
#include "train/train.h"

#define COMMAND_ROW(NAME, name) {COMMAND_##NAME, command_##name},
static const struct {
    Command command;
    int (*run)(const CommandLine *line);
} commands[] = {EACH_COMMAND(COMMAND_ROW)};

/* Prints the error, with control characters escaped, which names from a file may hold.  The line is
 * written at once, as other ranks may write one, too.  `read`: the command line is read. */
static int complain(int status, const Options *options, bool read) {
    char line[TEXT_BYTES + 4 * ERROR_BYTES + 8], *end = line;
    const char *text = error_message();
    fflush(stdout);
    if (!*text) return status; /* it has been printed already */
    end += sprintf(end, "bcd: %s", pipeline_rank_name(options).text);
    for (; *text; text++)
        end += sprintf(end, iscntrl((unsigned char)*text) ? "\\x%02x" : "%c", (unsigned char)*text);
    sprintf(end, "\n");
    pipeline_let_rank_0_speak(options, read);
    fputs(line, stderr);
    return status;
}

/* Fails if standard output could not be written, as to a full disk.  Of a training that stopped
 * since nobody reads it any more the status says so. */
static int finish_output(int status) {
    if ((fflush(stdout) == 0 && !ferror(stdout)) || status == 128 + SIGPIPE) return status;
    fprintf(stderr, "bcd: the output could not be written; is the disk full?\n");
    return status ? status : 1;
}

/* Fills in the settings of --like, and for what trains nothing the model of --init. */
static int resolve_names(Options *options) {
    const bool plans = options->command == COMMAND_PLAN || options->command == COMMAND_INFO;
    if (*options->like) return train_like(options);
    if (!plans || !*options->init) return 0;
    if (*options->model)
        return error_set("--init %s: the model comes from there; leave out --model", options->init);
    return setup_default_context(options, NULL) ||
                   convert_spec(options->model, options->init, options->context)
               ? -1
               : 0;
}

/* Returns true for a file in a model's directory, where HDF5 files are not the model's. */
static bool is_of_model(const char *file, const char *directory) {
    const char *slash = strrchr(file, '/'), *end = strrchr(file, '.');
    const Text parent = slash ? text_of("%.*s/", (int)(slash - file), file) : text_of(".");
    return *directory && file_same(parent.text, directory) && !(end && strcmp(end, ".h5") == 0);
}

/* Refuses an --out that would replace a file that the command reads or, before it computes
 * anything, a file that no command of this kind wrote. */
static int check_out(const CommandLine *line) {
    const Options *o = &line->options;
    const char *out = o->out;
    const bool tables = o->command & (COMMAND_PLAN | COMMAND_INFO | COMMAND_TRACE);
    const char *const named[] = {o->gradients.checkpoint, o->gradients.batch_file, o->plan.trace,
                                 o->data, o->config};
    struct stat file;
    if (stat(out, &file) || !S_ISREG(file.st_mode)) return 0;
    bool read = is_of_model(out, o->init);
    for (size_t i = 0; i < sizeof named / sizeof *named; i++) read |= file_same(out, named[i]);
    for (int i = 0; i < line->positionals; i++)
        read |= file_same(out, line->positional[i]) ||
                file_same(out, rundir_path(line->positional[i], "run.h5").text);
    if (read) return error_set("--out %s: it is one of the inputs; give another name", out);
    if (tables) return h5_check_replaced(out, tables_format);
    return o->command == COMMAND_GRADIENTS ? h5_check_replaced(out, gradients_format) : 0;
}

/* Checks names of models, data and blocks before a training starts: a wrong one is wrong use. */
static int check_names(const Options *options) {
    const bool starts = options->command == COMMAND_TRAIN && !*options->resume;
    if (!starts && options->command != COMMAND_TRACE) return 0;
    return setup_check(options) || setup_check_idle(options) ? -1 : 0;
}

/* Opens what the caller has closed of the three standard streams, so that no file of a run takes
 * the number of one and gets what is printed. */
static void open_streams(void) {
    int number;
    do number = open("/dev/null", O_RDWR);
    while (number >= 0 && number <= STDERR_FILENO);
    if (number > STDERR_FILENO) close(number);
}

/* Becomes the program bcd-NAME next to this one, which a command NAME that is not of this program
 * is then, as git does.  It finds this program in BCD_PROGRAM.  Returns if there is none. */
static void become_command(int argc, char **argv) {
    const bool help = argc > 2 && strcmp(argv[1], "help") == 0;
    const char *name = argc > 1 ? argv[help ? 2 : 1] : "";
    char program[512], *asks_help[] = {NULL, "--help", NULL};
    for (int i = 0; i < COMMANDS; i++)
        if (strcmp(command_table[i].name, name) == 0) return;
    if (strchr(name, '/') || program_path(program, sizeof program, name)) return;
    Text path = text_of("%.*s/bcd-%s", (int)(strrchr(program, '/') - program), program, name);
    asks_help[0] = path.text;
    setenv("BCD_PROGRAM", program, 1);
    execv(path.text, help ? asks_help : argv + 1);
}

static int print_version(void) {
    Provenance provenance;
    provenance_fill(&provenance, 0);
    printf("bcd %s\n", provenance.commit);
    return finish_output(0);
}

int main(int argc, char **argv) {
    static CommandLine line; /* not on the stack, which may be too small for it */
    Options *options = &line.options;
    alloc_give_back();
    open_streams();
    if (threads_check_main()) return complain(1, options, false);
    signal(SIGXFSZ, SIG_IGN); /* a limit on file sizes is then an error like a full disk */
    signal(SIGCHLD, SIG_DFL); /* if a parent ignores it, so would this process, and wait in vain */
    provenance_remember(argc, argv);
    if (argc == 2 && strcmp(argv[1], "--version") == 0) return print_version();
    if (command_line_parse(&line, argc, argv)) {
        become_command(argc, argv);
        return complain(WRONG_USE, options, false);
    }
    if (line.help) {
        options_print_help(options->command);
        return finish_output(0);
    }
    if (!pipeline_is_worker(options) &&
        (resolve_names(options) || check_out(&line) || check_names(options)))
        return complain(WRONG_USE, options, true);
    threads_set_default();
    if (options->threads) omp_set_num_threads(options->threads);
    if (threads_check()) return complain(1, options, true);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (commands[i].command == options->command) {
            int status = commands[i].run(&line);
            if (status < 0) status = complain(-status, options, true);
            /* Ends the threads, as leak checkers report those that outlive main. */
            omp_pause_resource_all(omp_pause_hard);
            return finish_output(status);
        }
    return 0;
}
