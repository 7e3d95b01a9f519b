#define _XOPEN_SOURCE 700 /* posix_openpt */
#include "program.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../data/scratch.h"

enum { WORDS = 96 };

/* Splits a line into argv[1], argv[2] ... and a NULL.  Returns argc.  The words are valid until the
 * next call. */
static int split(char *argv[WORDS + 2], const char *line) {
    static char text[1024];
    int argc = 1;
    snprintf(text, sizeof text, "%s", line);
    for (char *word = strtok(text, " "); word && argc < WORDS; word = strtok(NULL, " ")) {
        if (strcmp(word, "''") == 0) word[0] = 0;
        argv[argc++] = word;
    }
    argv[argc] = NULL;
    return argc;
}

int parse_line(CommandLine *line, const char *text) {
    char *argv[WORDS + 2] = {(char[]){"bcd"}};
    return command_line_parse(line, split(argv, text), argv);
}

int parse_train(Options *options, const char *text) {
    CommandLine line;
    int failed = parse_line(&line, text);
    *options = line.options;
    return failed;
}

/* Runs in the child: replaces it by the program. */
static void become(const char *line, const char *directory, int out, int error) {
    char *argv[WORDS + 2] = {(char[]){BCD_PROGRAM}};
    split(argv, line);
    setenv("OMP_WAIT_POLICY", "passive", 1); /* the machine may be busy with other tests */
    signal(SIGHUP, SIG_DFL);                 /* nohup makes everything that it starts ignore it */
    if (chdir(directory) == 0 && dup2(out, STDOUT_FILENO) >= 0 && dup2(error, STDERR_FILENO) >= 0)
        execv(argv[0], argv);
    perror(argv[0]);
    _exit(127);
}

bool program_runs(pid_t process) {
    siginfo_t ended = {0};
    return waitid(P_PID, (id_t)process, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           ended.si_pid == 0;
}

int program_wait(pid_t process) {
    int status;
    while (waitpid(process, &status, 0) < 0 && errno == EINTR) continue;
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static void read_file(const char *path, char *text, size_t size) {
    FILE *file = fopen(path, "rb");
    size_t count = file ? fread(text, 1, size - 1, file) : 0;
    text[count] = 0;
    if (file) fclose(file);
}

static int create(const char *path) { return open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666); }

static void limit_files(size_t max_bytes) {
    struct rlimit limit = {max_bytes, max_bytes};
    if (max_bytes) setrlimit(RLIMIT_FSIZE, &limit);
}

static void raise_alarm(void) {
    sigset_t alarm;
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    sigprocmask(SIG_BLOCK, &alarm, NULL);
    raise(SIGALRM);
}

static const Printed *run_limited(const char *line, size_t file_limit, bool late) {
    static Printed printed;
    char out_path[600], error_path[600];
    snprintf(out_path, sizeof out_path, "%s", scratch_path("stdout"));
    snprintf(error_path, sizeof error_path, "%s", scratch_path("stderr"));
    int out = create(out_path), error = create(error_path);
    const char *where = scratch_directory();
    fflush(NULL);
    pid_t process = fork();
    if (process == 0) {
        limit_files(file_limit);
        if (late) raise_alarm();
        become(line, where, out, error);
    }
    close(out);
    close(error);
    printed.status = program_wait(process);
    read_file(out_path, printed.out, sizeof printed.out);
    read_file(error_path, printed.error, sizeof printed.error);
    return &printed;
}

const Printed *program_run(const char *line, size_t file_limit) {
    return run_limited(line, file_limit, false);
}

const Printed *program_run_late(const char *line) { return run_limited(line, 0, true); }

pid_t program_start(const char *line) {
    int out = create(scratch_path("started"));
    const char *where = scratch_directory();
    fflush(NULL);
    pid_t process = fork();
    if (process == 0) become(line, where, out, out);
    close(out);
    return process;
}

const char *program_on_terminal(const char *line) {
    static char text[1 << 16];
    int terminal = posix_openpt(O_RDWR | O_NOCTTY), slave = -1;
    if (terminal >= 0 && grantpt(terminal) == 0 && unlockpt(terminal) == 0)
        slave = open(ptsname(terminal), O_RDWR | O_NOCTTY);
    if (slave < 0) {
        if (terminal >= 0) close(terminal);
        return NULL;
    }
    const char *where = scratch_directory();
    fflush(NULL);
    pid_t process = fork();
    if (process == 0) {
        close(terminal);
        become(line, where, slave, slave);
    }
    close(slave);
    size_t count = 0;
    /* Reading fails once the child, the only one to hold the other end, is gone. */
    for (ssize_t got; (got = read(terminal, text + count, sizeof text - 1 - count)) > 0;)
        count += (size_t)got;
    text[count] = 0;
    close(terminal);
    waitpid(process, NULL, 0);
    return text;
}

void sleep_ms(int ms) {
    struct timespec time = {ms / 1000, ms % 1000 * 1000000L};
    nanosleep(&time, NULL);
}
