#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../../ref/error.h"
#include "bench.h"

static const H5Column columns[] = {
    {"part", H5_TEXT, offsetof(Row, part), NULL},
    {"work", H5_TEXT, offsetof(Row, work), NULL},
    {"what", H5_TEXT, offsetof(Row, what), NULL},
    {"how", H5_TEXT, offsetof(Row, how), NULL},
    {"precision", H5_TEXT, offsetof(Row, precision), NULL},
    {"samples", H5_INT, offsetof(Row, n), NULL},
    {"version", H5_INT, offsetof(Row, version), NULL},
    {"times", H5_INT, offsetof(Row, times), NULL},
    {"repeats", H5_INT, offsetof(Row, repeats), NULL},
    {"median", H5_DOUBLE, offsetof(Row, ms), "ms"},
    {"least", H5_DOUBLE, offsetof(Row, least), "ms"},
    {"most", H5_DOUBLE, offsetof(Row, most), "ms"},
    {"bytes", H5_DOUBLE, offsetof(Row, bytes), "B"},
    {"operations", H5_DOUBLE, offsetof(Row, flops), NULL},
    {"floor", H5_DOUBLE, offsetof(Row, floor), "ms"},
    {"memory", H5_DOUBLE, offsetof(Row, memory), "B"},
};
enum { COLUMNS = sizeof columns / sizeof *columns };

/* ---- the file ---- */

static int take_rows(Results *r, const H5File *file) {
    size_t count;
    Row *rows = h5_read_table(file, "rows", columns, COLUMNS, sizeof *rows, &count);
    if (!rows) return -1;
    r->row = rows;
    r->rows = r->room = count;
    return 0;
}

/* Times of another build, or of another machine, are not continued. */
static int continue_from(Results *r) {
    H5File file;
    Provenance old;
    if (h5_open(&file, r->path)) return -1;
    int status = provenance_read(&file, "/", &old);
    bool same = !status && !strcmp(old.commit, r->provenance.commit) &&
                !strcmp(old.accelerator, r->provenance.accelerator) &&
                !strcmp(old.device, r->provenance.device);
    if (same) status = take_rows(r, &file);
    h5_close(&file);
    if (status) return -1;
    if (same)
        r->provenance.wall = old.wall;
    else
        fprintf(stderr, "bench: %s is of another build or device, and will be replaced\n", r->path);
    return 0;
}

int results_open(Results *r, const char *path, const Provenance *provenance, bool again) {
    *r = (Results){.provenance = *provenance};
    snprintf(r->path, sizeof r->path, "%s", path);
    if (again || access(path, F_OK)) return 0;
    return continue_from(r);
}

void results_free(Results *r) {
    free(r->row);
    r->row = NULL;
    r->rows = r->room = 0;
}

int results_save(Results *r, double wall_s) {
    H5File file;
    Provenance p = r->provenance;
    p.wall += wall_s;
    if (h5_create(&file, r->path)) return -1;
    provenance_write(&file, "/", &p);
    h5_write_table(&file, "rows", columns, COLUMNS, r->row, sizeof *r->row, r->rows);
    return h5_commit(&file);
}

/* ---- rows ---- */

static bool alike(const Row *a, const Row *b) {
    return !strcmp(a->part, b->part) && !strcmp(a->work, b->work) && !strcmp(a->what, b->what) &&
           !strcmp(a->how, b->how) && !strcmp(a->precision, b->precision) && a->n == b->n &&
           a->version == b->version;
}

const Row *results_find(const Results *r, const Row *like) {
    for (size_t i = 0; i < r->rows; i++)
        if (alike(&r->row[i], like)) return &r->row[i];
    return NULL;
}

int results_add(Results *r, const Row *row) {
    if (r->rows == r->room) {
        size_t room = r->room ? 2 * r->room : 256;
        Row *grown = realloc(r->row, room * sizeof *grown);
        if (!grown) return error_set("bench: out of memory for %zu results", room);
        r->row = grown;
        r->room = room;
    }
    for (size_t i = 0; i < r->rows; i++)
        if (alike(&r->row[i], row)) {
            r->row[i] = *row;
            return 0;
        }
    r->row[r->rows++] = *row;
    return 0;
}

/* work, samples, precision, part, mode, median, least, most, repeats; separated by tabs. */
int results_add_peers(Results *r, const char *path) {
    FILE *file = fopen(path, "r");
    char line[512];
    int status = 0;
    while (file && !status && fgets(line, sizeof line, file)) {
        Row row = {.part = "peer"};
        int found = sscanf(
            line, "%127[^\t]\t%d\t%127[^\t]\t%127[^\t]\t%127[^\t]\t%lf\t%lf\t%lf\t%d", row.work,
            &row.n, row.precision, row.what, row.how, &row.ms, &row.least, &row.most, &row.repeats);
        if (found == 9)
            status = results_add(r, &row);
        else
            status = error_set("%s: not a line of peers.py: %s", path, line);
    }
    if (file) fclose(file);
    return status;
}
