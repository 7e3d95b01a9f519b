#include "python.h"

#include <errno.h>
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

/* Returns the exit status. */
static int run_one(char *const argv[], FILE *out, FILE *complaints) {
    posix_spawn_file_actions_t streams;
    pid_t child;
    int status = NO_PYTHON << 8;
    posix_spawn_file_actions_init(&streams);
    if (out) posix_spawn_file_actions_adddup2(&streams, fileno(out), 1);
    posix_spawn_file_actions_adddup2(&streams, fileno(complaints), 2);
    if (posix_spawnp(&child, argv[0], &streams, NULL, argv, environ) == 0)
        while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    posix_spawn_file_actions_destroy(&streams);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static void take_last_line(FILE *complaints, const char *script) {
    char line[400] = "", next[400];
    rewind(complaints);
    while (fgets(next, sizeof next, complaints))
        if (*next != '\n') strcpy(line, next);
    line[strcspn(line, "\n")] = 0;
    error_set("%s", *line ? line : script);
}

PythonResult python_run(const char *script, const char *const arguments[], int count, FILE *out) {
    const char *own = getenv("PYTHON"), *names[] = {own ? own : "python3", "/usr/bin/python3"};
    char path[PATH], *argv[PYTHON_ARGUMENTS] = {NULL, "-B", path}; /* -B: writes no *.pyc */
    if (find_script(path, script)) return PYTHON_FAILED;
    FILE *complaints = tmpfile();
    if (!complaints) {
        error_set("%s: no temporary file: %s", script, strerror(errno));
        return PYTHON_FAILED;
    }
    for (int i = 0; i < count; i++) argv[3 + i] = (char *)(uintptr_t)arguments[i];
    int status = NO_PYTHON;
    for (int i = 0; i < (own ? 1 : 2) && (status == NO_PACKAGE || status == NO_PYTHON); i++) {
        rewind(complaints);
        if (ftruncate(fileno(complaints), 0)) break;
        argv[0] = (char *)(uintptr_t)names[i];
        status = run_one(argv, out, complaints);
    }
    if (status == NO_PYTHON)
        error_set("Python is missing; type: apt-get install --no-install-recommends python3");
    else if (status)
        take_last_line(complaints, script);
    fclose(complaints);
    return status == 0                                   ? PYTHON_DONE
           : status == NO_PACKAGE || status == NO_PYTHON ? PYTHON_MISSING
                                                         : PYTHON_FAILED;
}
