#include "runfile.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/error.h"
#include "settings.h"

enum { VERSION = 1 };

/* ---- rows in memory -------------------------------------------------------------------------- */

/* Makes room for one more row and returns its place. */
static void *add_row(void **rows, size_t *count, size_t *room, size_t size) {
    if (*count == *room) {
        size_t more = *room ? 2 * *room : 256;
        void *grown = realloc(*rows, more * size);
        if (!grown) {
            error_set("run: out of memory for %zu rows", more);
            return NULL;
        }
        *rows = grown;
        *room = more;
    }
    return (char *)*rows + (*count)++ * size;
}

int runfile_add_curve(RunFile *run, CurveRow row) {
    void *rows = run->curve;
    CurveRow *place = add_row(&rows, &run->curve_rows, &run->curve_room, sizeof row);
    run->curve = rows;
    if (place) *place = row;
    return place ? 0 : -1;
}

int runfile_add_evaluation(RunFile *run, EvaluationRow row) {
    void *rows = run->evaluations;
    EvaluationRow *place = add_row(&rows, &run->evaluation_rows, &run->evaluation_room, sizeof row);
    run->evaluations = rows;
    if (place) *place = row;
    return place ? 0 : -1;
}

int runfile_add_switch(RunFile *run, SwitchRow row) {
    void *rows = run->switches;
    SwitchRow *place = add_row(&rows, &run->switch_rows, &run->switch_room, sizeof row);
    run->switches = rows;
    if (place) *place = row;
    return place ? 0 : -1;
}

int runfile_add_session(RunFile *run, uint64_t step) {
    const Provenance *p = &run->provenance;
    if (run->session_rows && run->sessions[run->session_rows - 1].step == step) run->session_rows--;
    void *rows = run->sessions;
    SessionRow *place = add_row(&rows, &run->session_rows, &run->session_room, sizeof *place);
    run->sessions = rows;
    if (!place) return -1;
    *place = (SessionRow){.step = step};
    snprintf(place->started, H5_NAME, "%s", p->started);
    snprintf(place->device, H5_NAME, "%s", p->device);
    snprintf(place->precision, H5_NAME, "%s", p->precision);
    snprintf(place->computer, H5_NAME, "%s", provenance_computer(p));
    snprintf(place->commit, H5_NAME, "%s", p->commit);
    return 0;
}

bool runfile_moved(const RunFile *run) {
    if (run->session_rows < 2) return false;
    const SessionRow *now = &run->sessions[run->session_rows - 1], *before = now - 1;
    return strcmp(now->device, before->device) || strcmp(now->precision, before->precision);
}

void runfile_cut(RunFile *run, uint64_t step) {
    while (run->curve_rows && run->curve[run->curve_rows - 1].step > step) run->curve_rows--;
    while (run->evaluation_rows && run->evaluations[run->evaluation_rows - 1].step > step)
        run->evaluation_rows--;
    while (run->switch_rows && run->switches[run->switch_rows - 1].step > step) run->switch_rows--;
    while (run->session_rows && run->sessions[run->session_rows - 1].step > step)
        run->session_rows--;
}

double runfile_smooth(const RunFile *run, size_t row, size_t window) {
    size_t first = row + 1 > window ? row + 1 - window : 0;
    double sum = 0;
    for (size_t r = first; r <= row; r++) sum += run->curve[r].loss;
    return sum / (double)(row + 1 - first);
}

void runfile_windows(const RunFile *run, uint64_t begin, uint64_t end, int window, double *earlier,
                     double *last) {
    size_t size = (size_t)window, row = run->curve_rows;
    *earlier = *last = NAN;
    end -= (end - begin) % size;
    while (row && run->curve[row - 1].step > end) row--;
    if (end < begin + 2 * size || row < 2 * size) return;
    *last = runfile_smooth(run, row - 1, size);
    *earlier = runfile_smooth(run, row - 1 - size, size);
}

int runfile_reserve(RunFile *run, int submodels, int blocks) {
    run->submodels = submodels;
    run->blocks = blocks;
    run->submodel_parameters = calloc((size_t)submodels + 1, sizeof *run->submodel_parameters);
    run->of_block = calloc((size_t)blocks + 1, sizeof *run->of_block);
    run->block_names = calloc((size_t)blocks + 1, sizeof *run->block_names);
    if (run->submodel_parameters && run->of_block && run->block_names) return 0;
    return error_set("run: out of memory");
}

void runfile_free(RunFile *run) {
    free(run->submodel_parameters);
    free(run->of_block);
    free(run->block_names);
    free(run->curve);
    free(run->evaluations);
    free(run->switches);
    free(run->sessions);
    memset(run, 0, sizeof *run);
}

/* ---- columns --------------------------------------------------------------------------------- */

#define LOSS_UNIT "nats per target"

static const H5Column curve_columns[] = {
    {"step", H5_UINT64, offsetof(CurveRow, step), NULL},
    {"samples", H5_UINT64, offsetof(CurveRow, samples), NULL},
    {"loss", H5_DOUBLE, offsetof(CurveRow, loss), LOSS_UNIT},
    {"lr", H5_DOUBLE, offsetof(CurveRow, lr), NULL},
    {"submodel", H5_INT, offsetof(CurveRow, submodel), NULL},
    {"seconds", H5_DOUBLE, offsetof(CurveRow, seconds), "s"},
};
static const H5Column evaluation_columns[] = {
    {"step", H5_UINT64, offsetof(EvaluationRow, step), NULL},
    {"loss", H5_DOUBLE, offsetof(EvaluationRow, loss), LOSS_UNIT},
    {"accuracy", H5_DOUBLE, offsetof(EvaluationRow, accuracy), NULL},
    {"perplexity", H5_DOUBLE, offsetof(EvaluationRow, perplexity), NULL},
    {"seconds", H5_DOUBLE, offsetof(EvaluationRow, seconds), "s"},
};
static const H5Column switch_columns[] = {
    {"step", H5_UINT64, offsetof(SwitchRow, step), NULL},
    {"submodel", H5_INT, offsetof(SwitchRow, submodel), NULL},
    {"phase", H5_UINT64, offsetof(SwitchRow, phase), NULL},
    {"reason", H5_TEXT, offsetof(SwitchRow, reason), NULL},
    {"earlier_loss", H5_DOUBLE, offsetof(SwitchRow, earlier_loss), LOSS_UNIT},
    {"window_loss", H5_DOUBLE, offsetof(SwitchRow, window_loss), LOSS_UNIT},
};
static const H5Column session_columns[] = {
    {"step", H5_UINT64, offsetof(SessionRow, step), NULL},
    {"started", H5_TEXT, offsetof(SessionRow, started), NULL},
    {"device", H5_TEXT, offsetof(SessionRow, device), NULL},
    {"precision", H5_TEXT, offsetof(SessionRow, precision), NULL},
    {"computer", H5_TEXT, offsetof(SessionRow, computer), NULL},
    {"commit", H5_TEXT, offsetof(SessionRow, commit), NULL},
};
static const H5Column memory_columns[] = {
    {"role", H5_TEXT, offsetof(MemoryRow, role), NULL},
    {"current", H5_UINT64, offsetof(MemoryRow, current), "bytes"},
    {"peak", H5_UINT64, offsetof(MemoryRow, peak), "bytes"},
    {"planned", H5_UINT64, offsetof(MemoryRow, planned), "bytes"},
};
#define COUNT(array) (sizeof(array) / sizeof *(array))
#define TABLE(array) array, (int)COUNT(array)

const RunTable run_curve = {TABLE(curve_columns)}, run_evaluation = {TABLE(evaluation_columns)},
               run_switches = {TABLE(switch_columns)};

/* ---- writing --------------------------------------------------------------------------------- */

static void write_partition(H5File *file, const RunFile *run) {
    H5Dim submodel = {"submodel", (size_t)run->submodels, NULL};
    H5Dim block = {"block", (size_t)run->blocks, NULL};
    h5_write(file, "/partition/parameters", H5_UINT64, run->submodel_parameters, 1, &submodel,
             NULL);
    h5_write(file, "/partition/block", H5_TEXT, run->block_names, 1, &block, NULL);
    block.scale = "/partition/block";
    h5_write(file, "/partition/of_block", H5_INT, run->of_block, 1, &block, NULL);
}

int runfile_write(const RunFile *run, const char *path) {
    H5File file;
    if (h5_create(&file, path)) return -1;
    h5_set_text(&file, "/", "format", "bcd run");
    h5_set_int(&file, "/", "version", VERSION);
    h5_set_text(&file, "/", "status", run->status);
    settings_write(&file, "/settings", &run->settings, OPTION_FREE);
    provenance_write(&file, "/provenance", &run->provenance);
    h5_set_text(&file, "/model", "spec", run->spec);
    h5_set_count(&file, "/model", "parameters", run->parameters);
    h5_set_int(&file, "/model", "submodels", run->submodels);
    h5_set_real(&file, "/model", "imbalance", run->imbalance);
    h5_set_text(&file, "/data", "name", run->data);
    h5_set_count(&file, "/data", "samples", run->samples);
    h5_set_count(&file, "/data", "checksum", run->checksum);
    h5_set_real(&file, "/data", "steps_per_epoch", run->steps_per_epoch);
    write_partition(&file, run);
    h5_write_table(&file, "/curve", TABLE(curve_columns), run->curve, sizeof *run->curve,
                   run->curve_rows);
    h5_write_table(&file, "/evaluation", TABLE(evaluation_columns), run->evaluations,
                   sizeof *run->evaluations, run->evaluation_rows);
    h5_write_table(&file, "/switches", TABLE(switch_columns), run->switches, sizeof *run->switches,
                   run->switch_rows);
    h5_write_table(&file, "/sessions", TABLE(session_columns), run->sessions, sizeof *run->sessions,
                   run->session_rows);
    h5_write_table(&file, "/memory", TABLE(memory_columns), run->memory, sizeof *run->memory,
                   COUNT(run->memory));
    return h5_commit(&file);
}

/* ---- reading --------------------------------------------------------------------------------- */

static int read_header(RunFile *run, const H5File *file) {
    char format[H5_NAME];
    int64_t version;
    if (!h5_has(file, "/", "format") || h5_get_text(file, "/", "format", format, sizeof format) ||
        strcmp(format, "bcd run") != 0)
        return error_set("%s: not a run.h5 of bcd train", file->path);
    if (h5_get_int(file, "/", "version", &version)) return -1;
    if (version != VERSION)
        return error_set("%s: version %lld; this program reads version %d", file->path,
                         (long long)version, VERSION);
    options_defaults(&run->settings, COMMAND_TRAIN);
    return h5_get_text(file, "/", "status", run->status, sizeof run->status) ||
                   settings_read(file, "/settings", &run->settings) ||
                   provenance_read(file, "/provenance", &run->provenance) ||
                   h5_get_text(file, "/model", "spec", run->spec, sizeof run->spec) ||
                   h5_get_count(file, "/model", "parameters", &run->parameters) ||
                   h5_get_real(file, "/model", "imbalance", &run->imbalance) ||
                   h5_get_text(file, "/data", "name", run->data, sizeof run->data) ||
                   h5_get_count(file, "/data", "samples", &run->samples) ||
                   h5_get_count(file, "/data", "checksum", &run->checksum) ||
                   h5_get_real(file, "/data", "steps_per_epoch", &run->steps_per_epoch)
               ? -1
               : 0;
}

static int read_partition(RunFile *run, const H5File *file) {
    enum { PARTITION_MAX = 1 << 20 };
    size_t submodels[H5_RANK], blocks[H5_RANK];
    int rank = h5_size(file, "/partition/parameters", submodels);
    int block_rank = h5_size(file, "/partition/of_block", blocks);
    if (rank < 0 || block_rank < 0) return -1;
    if (rank != 1 || block_rank != 1 || submodels[0] > PARTITION_MAX || blocks[0] > PARTITION_MAX)
        return error_set("%s: /partition: has another shape than expected", file->path);
    if (runfile_reserve(run, (int)submodels[0], (int)blocks[0])) return -1;
    return h5_read(file, "/partition/parameters", H5_UINT64, run->submodel_parameters, 1,
                   submodels) ||
                   h5_read(file, "/partition/of_block", H5_INT, run->of_block, 1, blocks) ||
                   h5_read(file, "/partition/block", H5_TEXT, run->block_names, 1, blocks)
               ? -1
               : 0;
}

static int read_memory(RunFile *run, const H5File *file) {
    size_t count;
    MemoryRow *rows = h5_read_table(file, "/memory", TABLE(memory_columns), sizeof *rows, &count);
    if (!rows) return -1;
    bool ok = count == COUNT(run->memory);
    if (ok) memcpy(run->memory, rows, sizeof run->memory);
    free(rows);
    return ok ? 0 : error_set("%s: /memory: has another shape than expected", file->path);
}

/* A file written before there were devices has no table: it tells of one session. */
static int read_sessions(RunFile *run, const H5File *file) {
    if (!h5_exists(file, "/sessions")) return runfile_add_session(run, 0);
    run->sessions = h5_read_table(file, "/sessions", TABLE(session_columns), sizeof *run->sessions,
                                  &run->session_rows);
    run->session_room = run->session_rows;
    return run->sessions ? 0 : -1;
}

/* Older files lack the numbers of the decision, the last two columns. */
static int read_switches(RunFile *run, const H5File *file) {
    bool old = !h5_exists(file, "/switches/window_loss");
    run->switches =
        h5_read_table(file, "/switches", switch_columns, (int)COUNT(switch_columns) - 2 * old,
                      sizeof *run->switches, &run->switch_rows);
    if (!run->switches) return -1;
    run->switch_room = run->switch_rows;
    for (size_t i = 0; i < run->switch_rows && old; i++)
        run->switches[i].earlier_loss = run->switches[i].window_loss = NAN;
    return 0;
}

static int read_curves(RunFile *run, const H5File *file) {
    run->curve =
        h5_read_table(file, "/curve", TABLE(curve_columns), sizeof *run->curve, &run->curve_rows);
    run->evaluations = h5_read_table(file, "/evaluation", TABLE(evaluation_columns),
                                     sizeof *run->evaluations, &run->evaluation_rows);
    if (read_switches(run, file)) return -1;
    run->curve_room = run->curve_rows;
    run->evaluation_room = run->evaluation_rows;
    return run->curve && run->evaluations ? 0 : -1;
}

int runfile_read(RunFile *run, const char *path) {
    memset(run, 0, sizeof *run);
    H5File file;
    if (h5_open(&file, path)) return -1;
    int failed = read_header(run, &file) || read_partition(run, &file) || read_memory(run, &file) ||
                 read_curves(run, &file) || read_sessions(run, &file);
    h5_close(&file);
    return failed ? -1 : 0;
}
