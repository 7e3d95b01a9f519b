#include "gnuplot.h"

#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../ref/error.h"

extern char **environ;

/* A gnuplot at work; files rather than pipes, so that neither side ever waits for the other. */
typedef struct {
    FILE *in, *out, *complaints;
    pid_t child;    /* 0: none */
    int begin, end; /* the scripts it was given */
} Worker;

static void worker_free(Worker *worker) {
    if (worker->in) fclose(worker->in);
    if (worker->out) fclose(worker->out);
    if (worker->complaints) fclose(worker->complaints);
    *worker = (Worker){0};
}

static int worker_open(Worker *worker) {
    *worker = (Worker){.in = tmpfile(), .out = tmpfile(), .complaints = tmpfile()};
    if (worker->in && worker->out && worker->complaints) return 0;
    worker_free(worker);
    return error_set("gnuplot: no temporary file can be made; is the disk full?");
}

/* Not fork, which would copy the tables of a large process's memory.  /dev/stdin as the name of a
 * script: gnuplot reads its standard input byte by byte. */
static void worker_start(Worker *worker, const char *argument) {
    /* -d: the user's own start-up file could change the drawing. */
    char name[] = "gnuplot", bare[] = "-d", last[32];
    char *const argv[] = {name, bare, last, NULL};
    posix_spawn_file_actions_t streams;
    snprintf(last, sizeof last, "%s", argument);
    rewind(worker->in);
    posix_spawn_file_actions_init(&streams);
    posix_spawn_file_actions_adddup2(&streams, fileno(worker->in), 0);
    posix_spawn_file_actions_adddup2(&streams, fileno(worker->out), 1);
    posix_spawn_file_actions_adddup2(&streams, fileno(worker->complaints), 2);
    if (posix_spawnp(&worker->child, name, &streams, NULL, argv, environ)) worker->child = 0;
    posix_spawn_file_actions_destroy(&streams);
}

/* Its exit status; 127 if it could not be started. */
static int worker_wait(Worker *worker) {
    int status;
    if (worker->child <= 0 || waitpid(worker->child, &status, 0) < 0 || !WIFEXITED(status))
        return 127;
    return WEXITSTATUS(status);
}

bool gnuplot_present(void) {
    Worker worker;
    if (worker_open(&worker)) return false;
    worker_start(&worker, "--version");
    bool present = worker_wait(&worker) == 0;
    worker_free(&worker);
    return present;
}

static char *read_all(FILE *file) {
    if (fseek(file, 0, SEEK_END)) return NULL;
    long length = ftell(file);
    rewind(file);
    char *text = length < 0 ? NULL : malloc((size_t)length + 1);
    if (text) text[fread(text, 1, (size_t)length, file)] = 0;
    return text;
}

/* The line of gnuplot's complaint that names the mistake: the one after its arrow, else the first.
 */
static void set_complaint(FILE *complaints) {
    char *text = read_all(complaints);
    const char *line = text ? strstr(text, "line ") : NULL;
    if (!line) line = text ? text + strspn(text, "\n \t") : "";
    error_set("gnuplot: it refused the figure: %.*s", (int)strcspn(line, "\n"), line);
    free(text);
}

/* Printed behind a drawing that is complete: gnuplot ends the page of one that failed, too. */
static const char drawn_mark[] = "<!-- drawn -->";

static void write_scripts(FILE *in, char *const *script, int begin, int end) {
    for (int i = begin; i < end; i++)
        fprintf(in, "reset session\n%s\nset output\nset print '-'\nprint '%s'\n", script[i],
                drawn_mark);
}

/* Takes the drawings out of what was printed; returns the number of the first one not there. */
static int cut_drawings(char **svg, char *text, int begin, int end) {
    for (; begin < end; begin++) {
        char *mark = text ? strstr(text, drawn_mark) : NULL;
        if (!mark) break;
        *mark = 0;
        char *from = strstr(text, "<svg"), *to = from ? strstr(from, "</svg>") : NULL;
        if (to) svg[begin] = strndup(from, (size_t)(to - from) + strlen("</svg>"));
        text = mark + strlen(drawn_mark);
    }
    return begin;
}

/* Waits, and goes on behind a script that was refused. */
static void worker_finish(Worker *worker, char **svg, char *const *script) {
    int status = worker_wait(worker), end = worker->end;
    char *text = status == 127 ? NULL : read_all(worker->out);
    int refused = cut_drawings(svg, text, worker->begin, end);
    free(text);
    if (status == 127)
        error_set("gnuplot: not found; install it, e.g. apt-get install gnuplot-nox");
    else if (refused < end)
        set_complaint(worker->complaints);
    worker_free(worker);
    if (status != 127 && refused + 1 < end)
        gnuplot_draw(svg + refused + 1, script + refused + 1, end - refused - 1);
}

int gnuplot_draw(char **svg, char *const *script, int count) {
    enum { WORKERS = 2 };
    Worker worker[WORKERS];
    int drawn = 0;
    for (int i = 0; i < count; i++) svg[i] = NULL;
    for (int w = 0; w < WORKERS; w++) {
        if (worker_open(&worker[w])) continue;
        worker[w].begin = w * count / WORKERS;
        worker[w].end = (w + 1) * count / WORKERS;
        if (worker[w].begin == worker[w].end) continue;
        write_scripts(worker[w].in, script, worker[w].begin, worker[w].end);
        worker_start(&worker[w], "/dev/stdin");
    }
    for (int w = 0; w < WORKERS; w++)
        if (worker[w].child) worker_finish(&worker[w], svg, script);
    for (int i = 0; i < count; i++) drawn += svg[i] != NULL;
    return drawn;
}

char *gnuplot_svg(char *script) {
    char *svg;
    gnuplot_draw(&svg, &script, 1);
    return svg;
}

void gnuplot_quote(FILE *script, const char *text) {
    putc('\'', script);
    for (; *text; text++) {
        if (*text == '\'') putc('\'', script);
        putc((unsigned char)*text < ' ' ? ' ' : *text, script);
    }
    putc('\'', script);
}
