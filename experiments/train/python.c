#define _GNU_SOURCE /* pipe2 */
#include "python.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../ref/base/error.h"
#include "modules.h"

extern char **environ;

enum { PATH = 1024, NO_PACKAGE = 3, NO_PYTHON = 127 };

/* The script is next to an installed program, else in the tree above build/ or build/NAME/. */
static int find_script(char path[PATH], const char *script) {
    const char *name = strrchr(script, '/') + 1;
    const char *const places[][2] = {{"", name}, {"../", script}, {"../../", script}};
    char program[512];
    if (program_path(program, sizeof program, "python")) return -1;
    *strrchr(program, '/') = 0;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        snprintf(path, PATH, "%s/%s%s", program, places[i][0], places[i][1]);
        if (access(path, R_OK) == 0) return 0;
    }
    return error_set("%s is neither next to the program nor in its source tree", name);
}

/* Writes a child's standard input.  If it ends before it has read all, its status says why. */
static int write_input(const PythonInput *in, int pipe_end) {
    struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
    FILE *to = fdopen(pipe_end, "wb");
    if (!to) return error_set("python: no memory for its input");
    sigaction(SIGPIPE, &ignore, &before);
    const int failed = in->write(in->context, to);
    fclose(to);
    sigaction(SIGPIPE, &before, NULL);
    return failed;
}

/* Runs one Python and sets *status, as waitpid does.  Returns -1 and an error if its input
 * failed. */
static int run_one(int *status, char *const argv[], const PythonInput *in, FILE *out,
                   FILE *complaints) {
    posix_spawn_file_actions_t streams;
    pid_t child;
    int ends[2], failed = 0;
    if (in && pipe2(ends, O_CLOEXEC)) return error_set("%s: no pipe: %s", argv[0], strerror(errno));
    posix_spawn_file_actions_init(&streams);
    if (in) posix_spawn_file_actions_adddup2(&streams, ends[0], 0);
    if (out) posix_spawn_file_actions_adddup2(&streams, fileno(out), 1);
    posix_spawn_file_actions_adddup2(&streams, fileno(complaints), 2);
    const bool started = posix_spawnp(&child, argv[0], &streams, NULL, argv, environ) == 0;
    posix_spawn_file_actions_destroy(&streams);
    if (in) close(ends[0]);
    if (in && started) failed = write_input(in, ends[1]);
    if (in && !started) close(ends[1]);
    *status = NO_PYTHON << 8;
    if (started)
        while (waitpid(child, status, 0) < 0 && errno == EINTR) continue;
    return failed;
}

static void take_last_line(FILE *complaints, const char *script) {
    char line[400] = "", next[400];
    rewind(complaints);
    while (fgets(next, sizeof next, complaints))
        if (*next != '\n') strcpy(line, next);
    line[strcspn(line, "\n")] = 0;
    error_set("%s", *line ? line : script);
}

/* Sets the error of a child that ended with this status, as waitpid gives it. */
static void set_error(int status, FILE *complaints, const char *script) {
    const int signal_number = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    const bool memory = signal_number == SIGKILL || signal_number == SIGABRT;
    if (signal_number)
        error_set("%s was ended by signal %d (%s)%s", script, signal_number,
                  strsignal(signal_number), memory ? "; is there enough memory?" : "");
    else if (WEXITSTATUS(status) == NO_PYTHON)
        error_set("Python is missing; type: apt-get install --no-install-recommends python3");
    else
        take_last_line(complaints, script);
}

static bool is_missing(int status) {
    return WIFEXITED(status) &&
           (WEXITSTATUS(status) == NO_PACKAGE || WEXITSTATUS(status) == NO_PYTHON);
}

PythonResult python_run(const char *script, const char *const arguments[], int count,
                        const PythonInput *in, FILE *out) {
    const char *own = getenv("PYTHON"), *names[] = {own ? own : "python3", "/usr/bin/python3"};
    char path[PATH], *argv[PYTHON_ARGUMENTS] = {NULL, "-B", path}; /* -B: writes no *.pyc */
    if (find_script(path, script)) return PYTHON_FAILED;
    FILE *complaints = tmpfile();
    if (!complaints) {
        error_set("%s: no temporary file: %s", script, strerror(errno));
        return PYTHON_FAILED;
    }
    for (int i = 0; i < count; i++) argv[3 + i] = (char *)(uintptr_t)arguments[i];
    int status = NO_PYTHON << 8, failed = 0;
    for (int i = 0; i < (own ? 1 : 2) && !failed && is_missing(status); i++) {
        rewind(complaints);
        if (ftruncate(fileno(complaints), 0)) break;
        argv[0] = (char *)(uintptr_t)names[i];
        failed = run_one(&status, argv, in, out, complaints);
    }
    if (!failed && status) set_error(status, complaints, script);
    fclose(complaints);
    if (!failed && is_missing(status)) return PYTHON_MISSING;
    return failed || status ? PYTHON_FAILED : PYTHON_DONE;
}
