#include "gnuplot.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../ref/error.h"

/* Runs gnuplot with these three streams as its standard ones; files rather than pipes, so that
 * neither side ever waits for the other.  Returns its exit status, 127 if it could not be started.
 */
static int run(FILE *in, FILE *out, FILE *complaints, const char *argument) {
    pid_t child = fork();
    if (child == 0) {
        /* -d: the user's own start-up file could change the drawing. */
        if (dup2(fileno(in), 0) >= 0 && dup2(fileno(out), 1) >= 0 &&
            dup2(fileno(complaints), 2) >= 0)
            execlp("gnuplot", "gnuplot", "-d", argument, (char *)NULL);
        _exit(127);
    }
    int status;
    if (child < 0 || waitpid(child, &status, 0) < 0 || !WIFEXITED(status)) return 127;
    return WEXITSTATUS(status);
}

static int run_script(const char *script, const char *argument, FILE *out, FILE *complaints) {
    FILE *in = tmpfile();
    if (!in) return 127;
    fputs(script, in);
    rewind(in);
    int status = run(in, out, complaints, argument);
    fclose(in);
    return status;
}

bool gnuplot_present(void) {
    FILE *ignored = tmpfile();
    bool present = ignored && run_script("", "--version", ignored, ignored) == 0;
    if (ignored) fclose(ignored);
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

static char *draw(const char *script, FILE *out, FILE *complaints) {
    int status = run_script(script, "-", out, complaints);
    if (status == 127) {
        error_set("gnuplot: not found; install it, e.g. apt-get install gnuplot-nox");
        return NULL;
    }
    char *text = status == 0 ? read_all(out) : NULL;
    char *svg = text ? strstr(text, "<svg") : NULL;
    if (!svg || !strstr(svg, "</svg>")) {
        set_complaint(complaints);
        free(text);
        return NULL;
    }
    memmove(text, svg, strlen(svg) + 1);
    return text;
}

char *gnuplot_svg(const char *script) {
    FILE *out = tmpfile(), *complaints = tmpfile();
    char *svg = NULL;
    if (out && complaints)
        svg = draw(script, out, complaints);
    else
        error_set("gnuplot: no temporary file can be made; is the disk full?");
    if (out) fclose(out);
    if (complaints) fclose(complaints);
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
