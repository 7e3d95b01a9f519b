#include "runfile.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "settings.h"

enum { VERSION = 1 };

/* ---- columns --------------------------------------------------------------------------------- */

#define LOSS_UNIT "nats per target"

static const H5Column curve_columns[] = {
    {H5_FIELD(CurveRow, step, H5_UINT64)},
    {H5_FIELD(CurveRow, samples, H5_UINT64)},
    {H5_FIELD(CurveRow, loss, H5_DOUBLE), .unit = LOSS_UNIT},
    {H5_FIELD(CurveRow, lr, H5_DOUBLE)},
    {H5_FIELD(CurveRow, submodel, H5_INT)},
    {H5_FIELD(CurveRow, seconds, H5_DOUBLE), .unit = "s"},
};
static const H5Column evaluation_columns[] = {
    {H5_FIELD(EvaluationRow, step, H5_UINT64)},
    {H5_FIELD(EvaluationRow, loss, H5_DOUBLE), .unit = LOSS_UNIT},
    {H5_FIELD(EvaluationRow, accuracy, H5_DOUBLE)},
    {H5_FIELD(EvaluationRow, perplexity, H5_DOUBLE)},
    {H5_FIELD(EvaluationRow, seconds, H5_DOUBLE), .unit = "s"},
};
static const H5Column switch_columns[] = {
    {H5_FIELD(SwitchRow, step, H5_UINT64)},
    {H5_FIELD(SwitchRow, submodel, H5_INT)},
    {H5_FIELD(SwitchRow, phase, H5_UINT64)},
    {H5_FIELD(SwitchRow, reason, H5_TEXT)},
    {H5_FIELD(SwitchRow, earlier_loss, H5_DOUBLE), .unit = LOSS_UNIT},
    {H5_FIELD(SwitchRow, window_loss, H5_DOUBLE), .unit = LOSS_UNIT},
};
static const H5Column session_columns[] = {
    {H5_FIELD(SessionRow, step, H5_UINT64)},
    {H5_FIELD(SessionRow, started, H5_TEXT)},
    {H5_FIELD(SessionRow, device, H5_TEXT)},
    {H5_FIELD(SessionRow, precision, H5_TEXT)},
    {H5_FIELD(SessionRow, computer, H5_TEXT)},
    {H5_FIELD(SessionRow, commit, H5_TEXT)},
    {H5_FIELD(SessionRow, threads, H5_INT), .optional = true},
    {H5_FIELD(SessionRow, ranks, H5_INT), .optional = true},
};
static const H5Column memory_columns[] = {
    {H5_FIELD(MemoryRow, role, H5_TEXT)},
    {H5_FIELD(MemoryRow, current, H5_UINT64), .unit = "bytes"},
    {H5_FIELD(MemoryRow, peak, H5_UINT64), .unit = "bytes"},
    {H5_FIELD(MemoryRow, planned, H5_UINT64), .unit = "bytes"},
};
static const H5Column resident_fields[] = {
    {H5_FIELD(RunFile, resident, H5_UINT64), .unit = "bytes", .optional = true},
};
static const H5Column curve_fields[] = {
    {H5_FIELD(RunFile, inference_seconds, H5_DOUBLE), .unit = "s", .optional = true},
};
static const H5Column model_fields[] = {
    {H5_FIELD(RunFile, spec, H5_LINE)},
    {H5_FIELD(RunFile, parameters, H5_UINT64)},
    {H5_FIELD(RunFile, submodels, H5_INT)},
    {H5_FIELD(RunFile, imbalance, H5_DOUBLE)},
};
static const H5Column data_fields[] = {
    {.name = "name", .kind = H5_TEXT, .offset = offsetof(RunFile, data)},
    {H5_FIELD(RunFile, samples, H5_UINT64)},
    {H5_FIELD(RunFile, checksum, H5_UINT64)},
    {H5_FIELD(RunFile, valid_checksum, H5_UINT64), .optional = true},
    {H5_FIELD(RunFile, steps_per_epoch, H5_DOUBLE)},
};
#define COUNT(array) (sizeof(array) / sizeof *(array))
#define TABLE(array) array, (int)COUNT(array)

const RunPart run_parts[RUN_PARTS] = {
    [RUN_CURVE] = {"/curve", TABLE(curve_columns), sizeof(CurveRow), offsetof(RunFile, curve),
                   offsetof(RunFile, curve_rows)},
    [RUN_EVALUATIONS] = {"/evaluation", TABLE(evaluation_columns), sizeof(EvaluationRow),
                         offsetof(RunFile, evaluations), offsetof(RunFile, evaluation_rows)},
    [RUN_SWITCHES] = {"/switches", TABLE(switch_columns), sizeof(SwitchRow),
                      offsetof(RunFile, switches), offsetof(RunFile, switch_rows)},
    [RUN_SESSIONS] = {"/sessions", TABLE(session_columns), sizeof(SessionRow),
                      offsetof(RunFile, sessions), offsetof(RunFile, session_rows)},
};

/* ---- rows in memory -------------------------------------------------------------------------- */

static char **rows_of(const RunFile *run, const RunPart *part) {
    return (char **)(void *)((char *)run + part->rows_at);
}

static size_t *count_of(const RunFile *run, const RunPart *part) {
    return (size_t *)(void *)((char *)run + part->count_at);
}

/* Allocates rows for the next multiple of 256 above the count. */
static void reserve_rows(RunFile *run, const RunPart *part) {
    const size_t capacity = (*count_of(run, part) / 256 + 1) * 256;
    char **rows = rows_of(run, part);
    *rows = xrealloc(*rows, capacity * part->row_size);
}

void runfile_add(RunFile *run, int number, const void *row) {
    const RunPart *part = &run_parts[number];
    size_t *count = count_of(run, part);
    if (*count % 256 == 0) reserve_rows(run, part);
    memcpy(*rows_of(run, part) + (*count)++ * part->row_size, row, part->row_size);
}

void runfile_add_session(RunFile *run, uint64_t step, int ranks) {
    const Provenance *p = &run->provenance;
    SessionRow row = {.step = step, .threads = p->threads, .ranks = ranks};
    if (run->session_rows && run->sessions[run->session_rows - 1].step == step) run->session_rows--;
    strcpy(row.started, p->started);
    strcpy(row.device, p->device);
    strcpy(row.precision, p->precision);
    strcpy(row.computer, provenance_computer(p));
    strcpy(row.commit, p->commit);
    runfile_add(run, RUN_SESSIONS, &row);
}

bool runfile_moved(const RunFile *run) {
    if (run->session_rows < 2) return false;
    const SessionRow *now = &run->sessions[run->session_rows - 1], *before = now - 1;
    return strcmp(now->device, before->device) || strcmp(now->precision, before->precision);
}

void runfile_cut(RunFile *run, uint64_t step) {
    for (const RunPart *part = run_parts; part < run_parts + RUN_PARTS; part++) {
        size_t *count = count_of(run, part);
        for (uint64_t last; *count; --*count) {
            memcpy(&last, *rows_of(run, part) + (*count - 1) * part->row_size, sizeof last);
            if (last <= step) break;
        }
    }
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

void runfile_free(RunFile *run) {
    for (int p = 0; p < RUN_PARTS; p++) free(*rows_of(run, &run_parts[p]));
    memset(run, 0, sizeof *run);
}

/* ---- the file -------------------------------------------------------------------------------- */

static void write_partition(H5File *file, const Partition *partition, const Model *model) {
    const H5Dim submodels = {"submodel", (size_t)partition->submodels, NULL};
    H5Dim blocks = {"block", (size_t)model->blocks, NULL};
    char(*names)[H5_NAME] = xcalloc(blocks.size, sizeof *names);
    for (size_t b = 0; b < blocks.size; b++) strcpy(names[b], model->block[b].name);
    h5_write(file, "/partition/block", H5_TEXT, names, 1, &blocks, NULL);
    free(names);
    blocks.scale = "/partition/block";
    h5_write(file, "/partition/of_block", H5_INT, partition->of_block, 1, &blocks, NULL);
    h5_write(file, "/partition/parameters", H5_UINT64, partition->params, 1, &submodels, NULL);
}

int runfile_write(const RunFile *run, const char *path) {
    H5File file;
    if (h5_create_format(&file, path, "bcd run", VERSION)) return -1;
    h5_set_text(&file, "/", "status", run->status);
    settings_write(&file, &run->settings, OPTION_FREE);
    h5_set_fields(&file, "/provenance", provenance_fields, PROVENANCE_FIELDS, &run->provenance);
    h5_set_fields(&file, "/model", TABLE(model_fields), run);
    h5_set_fields(&file, "/data", TABLE(data_fields), run);
    if (run->partition) write_partition(&file, run->partition, run->model);
    for (const RunPart *part = run_parts; part < run_parts + RUN_PARTS; part++)
        h5_write_table(&file, part->group, NULL, part->column, part->columns, *rows_of(run, part),
                       part->row_size, *count_of(run, part));
    h5_write_table(&file, "/memory", NULL, TABLE(memory_columns), run->memory, sizeof *run->memory,
                   COUNT(run->memory));
    h5_set_fields(&file, "/memory", TABLE(resident_fields), run);
    h5_set_fields(&file, "/curve", TABLE(curve_fields), run);
    return h5_commit(&file);
}

static int read_all(RunFile *run, const H5File *file) {
    options_defaults(&run->settings, COMMAND_TRAIN);
    if (h5_get(file, "/", "status", H5_TEXT, run->status) || settings_read(file, &run->settings) ||
        h5_get_fields(file, "/provenance", provenance_fields, PROVENANCE_FIELDS,
                      &run->provenance) ||
        h5_get_fields(file, "/model", TABLE(model_fields), run) ||
        h5_get_fields(file, "/data", TABLE(data_fields), run) ||
        h5_read_columns(file, "/memory", TABLE(memory_columns), run->memory, sizeof *run->memory,
                        COUNT(run->memory)) ||
        h5_get_fields(file, "/memory", TABLE(resident_fields), run) ||
        h5_get_fields(file, "/curve", TABLE(curve_fields), run))
        return -1;
    for (const RunPart *part = run_parts; part < run_parts + RUN_PARTS; part++) {
        char **rows = rows_of(run, part);
        *rows = h5_read_table(file, part->group, part->column, part->columns, part->row_size,
                              count_of(run, part));
        if (!*rows) return -1;
        reserve_rows(run, part);
    }
    return 0;
}

int runfile_read(RunFile *run, const char *path) {
    memset(run, 0, sizeof *run);
    H5File file;
    if (h5_open_format(&file, path, "bcd run", VERSION, "a run.h5 of bcd train")) return -1;
    int failed = read_all(run, &file);
    h5_close(&file);
    return failed;
}
