/* What the tests of the program share: runs that must end with a given status, checks of errors,
 * and comparisons of run directories. All names are relative to the scratch directory. */
#pragma once

#include "../../experiments/store/runfile.h"
#include "../data/scratch.h"
#include "program.h"

/* The flags of two trainings that take milliseconds, without their length and directory.  The
 * second needs make_words(). */
#define RESNET                                                                            \
    "--model resnet:depth=8,width=2 --data synthetic --limit 32 --batch 4 --submodels 3 " \
    "--switch-every 7 --eval-every 20 --threads 2 "
#define GPT GPT_OF_ANY_THREADS "--threads 2 "
#define GPT_OF_ANY_THREADS                                                                       \
    "--model gpt:layers=2,width=16,heads=2,context=16 --data words.tokens --limit 32 --batch 4 " \
    "--optimizer adam --lr 1e-2 --schedule constant --submodels 2 --switch-every auto "          \
    "--auto-window 3 --auto-min 6 "

/* Writes words.tokens: 6000 letters and blanks that follow a pattern.  The sources of the project
 * would not do, as they may be edited while the tests run. */
void make_words(void);

/* Runs a command line (printf format) and CHECKs that it ends with this status. */
const Printed *run(int status, const char *format, ...) BCD_PRINTF(2, 3);

/* Runs python (or $PYTHON) with these arguments in the scratch directory, and overwrites `text`
 * with what it prints.  Returns the exit status. */
int run_python(const char *arguments, char text[4096]);

/* CHECKs that stderr holds a single line, and that this line contains `expected`. */
void check_error(const Printed *printed, const char *expected);

/* Returns the bytes of a file, followed by a zero, for the caller to free. *count is 0 if there is
 * no such file. */
char *read_bytes(const char *name, size_t *count);
void copy_file(const char *to, const char *from);

/* Reads run.h5 of a directory.  Returns false, after a failed CHECK, if it cannot be read. */
bool read_run(RunFile *file, const char *dir);

/* Returns the inode of the file, 0 if there is none.  It changes when the file is replaced. */
ino_t inode_of(const char *name);
/* A model that needs more than the 128 TiB that a processor can address. */
#define TOO_LARGE "gpt:layers=300,width=65536,heads=64,context=8"
/* Flags for a training with more steps than it makes before a test kills it. */
#define ENDLESS "--steps 1000000000 "
/* Waits until a file, whose inode was `last`, has been replaced or created `saves` times by a
 * program that was started.  Returns false, after a failed CHECK, if the program ends before that.
 * */
bool wait_for_saves(pid_t process, const char *name, ino_t last, int saves);
/* Returns a number of steps greater than what the stopped training in a directory has done. */
int steps_beyond(const char *dir);

/* CHECKs that checkpoint.h5 of both directories is the same to the byte. */
void check_same_checkpoint(const char *a, const char *b);
/* CHECKs the checkpoints, and that the curves are the same too: no row is missing or doubled, and
 * only the times differ. */
void check_same_run(const char *a, const char *b);

/* Returns true when `bcd info` can open a device, which it lists in any case.  It is asked once. */
bool has_device(const char *name);
