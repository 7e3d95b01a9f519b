#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../../ref/base/error.h"
#include "bench.h"

static const H5Column columns[] = {
    {.name = "part", .kind = H5_TEXT, .offset = offsetof(Row, part)},
    {.name = "work", .kind = H5_TEXT, .offset = offsetof(Row, work)},
    {.name = "what", .kind = H5_TEXT, .offset = offsetof(Row, what)},
    {.name = "how", .kind = H5_TEXT, .offset = offsetof(Row, how)},
    {.name = "precision", .kind = H5_TEXT, .offset = offsetof(Row, precision)},
    {.name = "samples", .kind = H5_INT, .offset = offsetof(Row, n)},
    {.name = "version", .kind = H5_INT, .offset = offsetof(Row, version)},
    {.name = "times", .kind = H5_INT, .offset = offsetof(Row, times)},
    {.name = "repeats", .kind = H5_INT, .offset = offsetof(Row, repeats)},
    {.name = "median", .kind = H5_DOUBLE, .offset = offsetof(Row, ms), .unit = "ms"},
    {.name = "least", .kind = H5_DOUBLE, .offset = offsetof(Row, min_ms), .unit = "ms"},
    {.name = "most", .kind = H5_DOUBLE, .offset = offsetof(Row, max_ms), .unit = "ms"},
    {.name = "bytes", .kind = H5_DOUBLE, .offset = offsetof(Row, bytes), .unit = "B"},
    {.name = "operations", .kind = H5_DOUBLE, .offset = offsetof(Row, flops)},
    {.name = "floor", .kind = H5_DOUBLE, .offset = offsetof(Row, floor), .unit = "ms"},
    {.name = "predicted", .kind = H5_DOUBLE, .offset = offsetof(Row, predicted), .unit = "ms"},
    {.name = "memory", .kind = H5_DOUBLE, .offset = offsetof(Row, memory), .unit = "B"},
    {.name = "loss", .kind = H5_DOUBLE, .offset = offsetof(Row, loss)},
    {.name = "failed", .kind = H5_TEXT, .offset = offsetof(Row, failed)},
};
enum { COLUMNS = sizeof columns / sizeof *columns };

/* ---- the file ---- */

static int take_rows(Results *r, const H5File *file) {
    size_t count;
    Row *rows = h5_read_table(file, "rows", columns, COLUMNS, sizeof *rows, &count);
    if (!rows) return -1;
    r->row = rows;
    r->rows = r->capacity = count;
    return h5_get_text(file, "/", "state", r->state, sizeof r->state);
}

/* Reads the results of an earlier run. Times of another build or machine are not continued. A
 * program that has opened no device may read them all the same, since it measures nothing; what
 * only such programs have added is of any device. */
static int continue_from(Results *r) {
    H5File file;
    Provenance old = {0};
    if (h5_open(&file, r->path)) return -1;
    int status = h5_get_fields(&file, "/", provenance_fields, PROVENANCE_FIELDS, &old);
    bool looks = !r->provenance.accelerator[0];
    bool device = !old.accelerator[0] || (!strcmp(old.accelerator, r->provenance.accelerator) &&
                                          !strcmp(old.device, r->provenance.device));
    bool same = !status && (looks || (!strcmp(old.commit, r->provenance.commit) && device));
    if (same) status = take_rows(r, &file);
    h5_close(&file);
    if (status) return -1;
    if (looks) r->provenance = old;
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
    r->rows = r->capacity = 0;
}

int results_save(Results *r, double wall_s) {
    H5File file;
    Provenance p = r->provenance;
    p.wall += wall_s;
    if (h5_create(&file, r->path)) return -1;
    h5_set_fields(&file, "/", provenance_fields, PROVENANCE_FIELDS, &p);
    h5_set_text(&file, "/", "state", r->state);
    h5_write_table(&file, "rows", NULL, columns, COLUMNS, r->row, sizeof *r->row, r->rows);
    return h5_commit(&file);
}

/* ---- rows ---- */

static bool alike(const Row *a, const Row *b) {
    return !strcmp(a->part, b->part) && !strcmp(a->work, b->work) && !strcmp(a->what, b->what) &&
           !strcmp(a->how, b->how) && !strcmp(a->precision, b->precision) && a->n == b->n &&
           a->version == b->version;
}

static bool is_running(const Row *row) { return !strcmp(row->failed, RUNNING); }

const Row *results_find(const Results *r, const Row *like) {
    for (size_t i = 0; i < r->rows; i++)
        if (alike(&r->row[i], like) && !is_running(&r->row[i])) return &r->row[i];
    return NULL;
}

void results_drop_running(Results *r) {
    size_t kept = 0;
    for (size_t i = 0; i < r->rows; i++)
        if (!is_running(&r->row[i])) r->row[kept++] = r->row[i];
    r->rows = kept;
}

void results_drop_how(Results *r, const char *how) {
    size_t kept = 0;
    for (size_t i = 0; i < r->rows; i++)
        if (strcmp(r->row[i].how, how) != 0) r->row[kept++] = r->row[i];
    r->rows = kept;
}

const Row *results_peer(const Results *r, const Row *row) {
    const Row *best = NULL;
    for (size_t i = 0; i < r->rows; i++) {
        const Row *peer = &r->row[i];
        bool same = !strcmp(peer->part, "peer") && !strcmp(peer->work, row->work) &&
                    peer->n == row->n && !strcmp(peer->precision, row->precision) &&
                    !strcmp(peer->what, row->what) && !peer->failed[0];
        if (same && (!best || peer->ms < best->ms)) best = peer;
    }
    return best;
}

int results_add(Results *r, const Row *row) {
    if (r->rows == r->capacity) {
        size_t capacity = r->capacity ? 2 * r->capacity : 256;
        Row *grown = realloc(r->row, capacity * sizeof *grown);
        if (!grown) return error_set("bench: out of memory for %zu results", capacity);
        r->row = grown;
        r->capacity = capacity;
    }
    for (size_t i = 0; i < r->rows; i++)
        if (alike(&r->row[i], row)) {
            r->row[i] = *row;
            return 0;
        }
    r->row[r->rows++] = *row;
    return 0;
}

static int line_row(Row *row, const char *line) {
    *row = (Row){.n = 0};
    return sscanf(line,
                  "%127[^\t]\t%127[^\t]\t%d\t%127[^\t]\t%127[^\t]\t%127[^\t]\t%d\t%lf\t%lf\t%lf\t%d"
                  "\t%lf\t%127[^\t\n]",
                  row->part, row->work, &row->n, row->precision, row->what, row->how, &row->times,
                  &row->ms, &row->min_ms, &row->max_ms, &row->repeats, &row->bytes, row->failed);
}

int results_add_lines(Results *r, const char *path) {
    enum { FIELDS = 13 };
    FILE *file = fopen(path, "r");
    char line[2048];
    Row row;
    int status = file ? 0 : error_set("%s: %s", path, strerror(errno));
    while (file && !status && fgets(line, sizeof line, file)) {
        if (line_row(&row, line) != FIELDS) {
            status = error_set("%s: not a line of results: %s", path, line);
            break;
        }
        if (!strcmp(row.failed, "-")) row.failed[0] = 0;
        status = results_add(r, &row);
    }
    if (file) fclose(file);
    return status;
}
