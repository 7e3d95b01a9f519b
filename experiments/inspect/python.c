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

#include "../../data/file.h"
#include "../../ref/base/error.h"
#include "../base/alloc.h"
#include "../base/program.h"

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

/* Starts one Python, whose standard input and output are these files.  Returns 0 if there is none.
 */
static pid_t start(char *const argv[], int in, int out, FILE *complaints) {
    posix_spawn_file_actions_t streams;
    pid_t child;
    posix_spawn_file_actions_init(&streams);
    posix_spawn_file_actions_adddup2(&streams, in, 0);
    posix_spawn_file_actions_adddup2(&streams, out, 1);
    posix_spawn_file_actions_adddup2(&streams, fileno(complaints), 2);
    const bool started = posix_spawnp(&child, argv[0], &streams, NULL, argv, environ) == 0;
    posix_spawn_file_actions_destroy(&streams);
    return started ? child : 0;
}

/* Returns the status of a child, as waitpid gives it, or what a shell says of a missing program. */
static int wait_for(pid_t child) {
    int status = NO_PYTHON << 8;
    if (child)
        while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    return status;
}

/* A child may end before it has read all; its status says why. */
static struct sigaction ignore_broken_pipes(void) {
    struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
    sigaction(SIGPIPE, &ignore, &before);
    return before;
}

/* Opens our end of a pipe, or closes it: as long as it is open, a child waits for its input. */
static FILE *open_end(int pipe_end, const char *mode) {
    FILE *file = fdopen(pipe_end, mode);
    if (!file) close(pipe_end);
    return file;
}

/* Writes a child's standard input. */
static int write_input(const PythonInput *in, int pipe_end) {
    FILE *to = open_end(pipe_end, "wb");
    if (!to) return error_set("python: no memory for its input");
    const struct sigaction before = ignore_broken_pipes();
    const int failed = in->write(in->context, to);
    fclose(to);
    sigaction(SIGPIPE, &before, NULL);
    return failed;
}

/* Runs one Python and sets *status.  Returns -1 and an error if its input failed. */
static int run_one(int *status, char *const argv[], const PythonInput *in, FILE *out,
                   FILE *complaints) {
    int ends[2], failed = 0;
    if (pipe2(ends, O_CLOEXEC)) return error_set("%s: no pipe: %s", argv[0], strerror(errno));
    const pid_t child = start(argv, ends[0], fileno(out), complaints);
    close(ends[0]);
    if (child)
        failed = write_input(in, ends[1]);
    else
        close(ends[1]);
    *status = wait_for(child);
    return failed;
}

static void take_last_line(FILE *complaints, const char *script) {
    char *line = NULL, *next = NULL;
    size_t line_bytes = 0, next_bytes = 0;
    rewind(complaints);
    while (getline(&next, &next_bytes, complaints) > 0) {
        if (*next == '\n') continue;
        char *other = line;
        line = next;
        next = other;
        const size_t bytes = line_bytes;
        line_bytes = next_bytes;
        next_bytes = bytes;
    }
    if (line) line[strcspn(line, "\n")] = 0;
    error_set("%s", line ? line : script);
    free(line);
    free(next);
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

/* What is run, by the first Python that has the packages. */
typedef struct {
    const char *script, *pythons[2];
    int python_count;
    char path[PATH], *argv[PYTHON_ARGUMENTS];
    FILE *complaints; /* what it writes to standard error */
} Invocation;

static int invocation_open(Invocation *c, const char *script, const char *const arguments[],
                           int count) {
    const char *own = getenv("PYTHON");
    *c = (Invocation){script,
                      {own ? own : "python3", "/usr/bin/python3"},
                      own ? 1 : 2,
                      .argv = {NULL, "-B", c->path}}; /* -B: writes no *.pyc */
    if (find_script(c->path, script)) return -1;
    for (int i = 0; i < count; i++) c->argv[3 + i] = (char *)(uintptr_t)arguments[i];
    c->complaints = tmpfile();
    return c->complaints ? 0 : error_set("%s: no temporary file: %s", script, strerror(errno));
}

/* Takes the next Python, whose complaints are all that is kept. */
static bool invocation_next(Invocation *c, int python) {
    if (python == c->python_count) return false;
    c->argv[0] = (char *)(uintptr_t)c->pythons[python];
    rewind(c->complaints);
    return ftruncate(fileno(c->complaints), 0) == 0;
}

/* Takes back what a Python without the packages wrote before it found that out.  -1 and an error.
 */
static int go_back(FILE *out, off_t begin) {
    if (fseeko(out, begin, SEEK_SET) == 0 && ftruncate(fileno(out), begin) == 0) return 0;
    return error_set("the output of Python cannot be taken back: %s", strerror(errno));
}

/* ---- once ------------------------------------------------------------------------------------ */

int python_run(const char *script, const char *const arguments[], int count, const PythonInput *in,
               FILE *out) {
    Invocation c;
    int status = NO_PYTHON << 8, failed = 0;
    if (invocation_open(&c, script, arguments, count)) return -1;
    const off_t begin = ftello(out);
    for (int i = 0; !failed && is_missing(status) && invocation_next(&c, i); i++)
        failed = (i && go_back(out, begin)) || run_one(&status, c.argv, in, out, c.complaints);
    if (!failed && status) set_error(status, c.complaints, script);
    fclose(c.complaints);
    return failed || status ? -1 : 0;
}

/* ---- a conversation -------------------------------------------------------------------------- */

struct PythonProcess {
    Invocation invocation;
    pid_t child;
    FILE *to, *from;
    unsigned char *answer;
};

/* Starts one Python.  -1 and an error: no pipe. */
static int begin(PythonProcess *p) {
    int to[2], from[2];
    if (pipe2(to, O_CLOEXEC))
        return error_set("%s: no pipe: %s", p->invocation.script, strerror(errno));
    if (pipe2(from, O_CLOEXEC)) {
        close(to[0]);
        close(to[1]);
        return error_set("%s: no pipe: %s", p->invocation.script, strerror(errno));
    }
    p->child = start(p->invocation.argv, to[0], from[1], p->invocation.complaints);
    close(to[0]);
    close(from[1]);
    p->to = open_end(to[1], "wb");
    p->from = open_end(from[0], "rb");
    return p->to && p->from ? 0 : error_set("%s: no memory for its pipes", p->invocation.script);
}

/* Returns the status with which it ended. */
static int end(PythonProcess *p) {
    const struct sigaction before = ignore_broken_pipes();
    if (p->to) fclose(p->to);
    if (p->from) fclose(p->from);
    sigaction(SIGPIPE, &before, NULL);
    p->to = p->from = NULL;
    const int status = wait_for(p->child);
    p->child = 0;
    return status;
}

PythonProcess *python_open(const char *script, const char *const arguments[], int count, char *line,
                           int size) {
    PythonProcess *p = xcalloc(1, sizeof *p);
    int status = NO_PYTHON << 8, failed = invocation_open(&p->invocation, script, arguments, count);
    for (int i = 0; !failed && is_missing(status) && invocation_next(&p->invocation, i); i++) {
        failed = begin(p);
        if (!failed && fgets(line, size, p->from)) return p;
        status = end(p);
    }
    if (!failed) set_error(status, p->invocation.complaints, script);
    python_close(p);
    return NULL;
}

const unsigned char *python_ask(PythonProcess *p, const void *question, size_t bytes,
                                size_t *answered) {
    unsigned char head[4];
    const struct sigaction before = ignore_broken_pipes();
    little_endian_put(head, 4, bytes);
    fwrite(head, 1, 4, p->to);
    fwrite(question, 1, bytes, p->to);
    fflush(p->to);
    sigaction(SIGPIPE, &before, NULL);
    if (fread(head, 1, 4, p->from) == 4) {
        *answered = little_endian_get(head, 4);
        p->answer = xrealloc(p->answer, *answered + 1);
        if (fread(p->answer, 1, *answered, p->from) == *answered) return p->answer;
    }
    set_error(end(p), p->invocation.complaints, p->invocation.script);
    return NULL;
}

void python_close(PythonProcess *p) {
    if (!p) return;
    if (p->to || p->from) end(p);
    if (p->invocation.complaints) fclose(p->invocation.complaints);
    free(p->answer);
    free(p);
}
