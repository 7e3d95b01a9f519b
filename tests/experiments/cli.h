/* What the tests of the program share: runs that must end with a status, errors, comparisons of run
 * directories.  All names are relative to the scratch directory. */
#ifndef TESTS_EXPERIMENTS_CLI_H
#define TESTS_EXPERIMENTS_CLI_H

#include "../../experiments/store/runfile.h"
#include "../data/scratch.h"
#include "program.h"

/* Two trainings of milliseconds, without their length and directory.  The second needs
 * make_words(). */
#define RESNET                                                                            \
    "--model resnet:depth=8,width=2 --data synthetic --limit 32 --batch 4 --submodels 3 " \
    "--switch-every 7 --eval-every 20 --threads 2 "
#define GPT                                                                                      \
    "--model gpt:layers=2,width=16,heads=2,context=16 --data words.tokens --limit 32 --batch 4 " \
    "--optimizer adam --lr 1e-2 --schedule constant --submodels 2 --switch-every auto "          \
    "--auto-window 3 --auto-min 6 --threads 2 "

/* Makes words.tokens: 6000 letters and blanks that follow a pattern, not the project's sources,
 * which may be edited while the tests run. */
void make_words(void);

/* Runs a command line (printf format), which must end with this status. */
const Printed *run(int status, const char *format, ...) BCD_PRINTF(2, 3);

/* Runs python (or $PYTHON) with these arguments in the scratch directory; what it prints is in
 * `text`.  Returns the exit status. */
int run_python(const char *arguments, char text[4096]);

/* CHECKs that stderr holds one line, and this in it. */
void check_error(const Printed *printed, const char *expected);

/* The bytes of a file, to be freed, a zero behind them; *count 0 if there is none. */
char *read_bytes(const char *name, size_t *count);
void copy_file(const char *to, const char *from);

/* run.h5 of a directory; false, after a failed CHECK, if it cannot be read. */
bool read_run(RunFile *file, const char *dir);

/* The number of the file under a name, 0 if there is none: another one after it was replaced. */
ino_t inode_of(const char *name);
/* A training that is to be killed must not end before, wherever it is by then: so many steps. */
#define ENDLESS "--steps 1000000000 "
/* Waits until a file that was number `last` has been replaced (or made) so many times by a program
 * that was started.  False, after a failed CHECK, when it ends without. */
bool wait_for_saves(pid_t process, const char *name, ino_t last, int saves);
/* A number of steps that the training in a directory, which was stopped, has not come to. */
int steps_beyond(const char *dir);

/* CHECKs that checkpoint.h5 is the same to the byte. */
void check_same_checkpoint(const char *a, const char *b);
/* And that the curves are: no row missing, none twice, the same numbers; only the times differ. */
void check_same_run(const char *a, const char *b);

#endif
