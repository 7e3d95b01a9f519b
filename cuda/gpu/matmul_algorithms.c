#define _GNU_SOURCE /* dladdr */
#include "matmul_algorithms.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

cublasStatus_t matmul_launch(MatmulCall *call, const MatmulAlgorithm *algorithm) {
    const float one = 1, zero = 0;
    const Product *p = call->product;
    MatmulDescription *d = &call->description;
    return cublaslt.cublasLtMatmul(call->library, &d->product, &one, p->b, &d->a, p->a, &d->b,
                                   p->add ? &one : &zero, p->c, &d->c, p->c, &d->c,
                                   &algorithm->code, call->run->workspace, algorithm->workspace,
                                   call->run->stream);
}

/* ---- the table ----
 * The fastest algorithms that were measured, in a text file: the library's version and the GPU's
 * name, then a line for each shape, with its numbers in order and the eight words of the algorithm,
 * which the library takes back unchanged. */

typedef struct {
    MatmulShape shape;
    cublasLtMatmulAlgo_t code;
} Measured;

static struct {
    bool looked; /* the file has been looked for */
    Measured *row;
    size_t rows, capacity;
} table;

/* Returns true with BCD_LT_LOG=1 in the environment: what the table holds and every choice are then
 * written to stderr. */
static bool logging(void) {
    const char *wanted = getenv("BCD_LT_LOG");
    return wanted && *wanted && strcmp(wanted, "0") != 0;
}

static void table_add(const MatmulShape *shape, const cublasLtMatmulAlgo_t *code) {
    if (table.rows == table.capacity) {
        size_t capacity = table.capacity ? 2 * table.capacity : 64;
        Measured *row = realloc(table.row, capacity * sizeof *row);
        if (!row) return; /* the heuristic chooses for that shape */
        table.row = row;
        table.capacity = capacity;
    }
    table.row[table.rows++] = (Measured){*shape, *code};
}

static void write_title(char title[160]) {
    DeviceInfo info;
    size_t version = cublaslt_open() == 0 ? cublaslt.cublasLtGetVersion() : 0;
    snprintf(title, 160, "cublasLt %zu on %s\n", version,
             device_info(&info) ? "no device" : info.name);
}

static bool read_row(FILE *file) {
    MatmulShape shape;
    cublasLtMatmulAlgo_t code;
    for (int i = 0; i < SHAPE_NUMBERS; i++)
        if (fscanf(file, "%d", &shape.number[i]) != 1) return false;
    for (int i = 0; i < 8; i++)
        if (fscanf(file, "%" SCNx64, &code.data[i]) != 1) return false;
    table_add(&shape, &code);
    return true;
}

/* BCD_LT_TABLE names the file; otherwise it is matmul.txt next to this program or library, if there
 * is one. */
static FILE *open_table(char path[4096]) {
    const char *named = getenv("BCD_LT_TABLE");
    Dl_info self;
    if (named && *named) {
        snprintf(path, 4096, "%s", named);
    } else {
        const char *module = dladdr((void *)&table, &self) ? self.dli_fname : NULL;
        const char *slash = module ? strrchr(module, '/') : NULL;
        snprintf(path, 4096, "%.*smatmul.txt", slash ? (int)(slash + 1 - module) : 0,
                 slash ? module : "");
    }
    FILE *file = fopen(path, "r");
    if (!file && named && *named) device_note("%s: cannot be read", path);
    return file;
}

static void read_table(void) {
    char path[4096], title[160], found[160] = "";
    FILE *file = open_table(path);
    if (!file) return;
    write_title(title);
    bool fits = fgets(found, sizeof found, file) && strcmp(found, title) == 0;
    while (fits && read_row(file)) continue;
    if (fits && !feof(file)) device_note("%s: damaged after %zu shapes", path, table.rows);
    if (logging())
        fprintf(stderr, "cublasLt: %s: %zu shapes%s\n", path, table.rows,
                fits ? "" : ", for another library or GPU");
    fclose(file);
}

/* Returns NULL if the shape was not measured. */
static const cublasLtMatmulAlgo_t *table_find(const MatmulShape *shape) {
    if (!table.looked) read_table();
    table.looked = true;
    for (size_t i = 0; i < table.rows; i++)
        if (memcmp(&table.row[i].shape, shape, sizeof *shape) == 0) return &table.row[i].code;
    return NULL;
}

int library_matmul_save(const char *path) {
    char title[160];
    if (!table.rows) return error_set("%s: no product was measured", path);
    FILE *file = fopen(path, "w");
    if (!file) return error_set("%s: cannot be written", path);
    write_title(title);
    fputs(title, file);
    for (size_t i = 0; i < table.rows; i++) {
        for (int k = 0; k < SHAPE_NUMBERS; k++) fprintf(file, "%d ", table.row[i].shape.number[k]);
        for (int k = 0; k < 8; k++)
            fprintf(file, "%016" PRIx64 "%c", table.row[i].code.data[k], k < 7 ? ' ' : '\n');
    }
    bool failed = ferror(file) != 0;
    if (fclose(file) || failed) return error_set("%s: cannot be written", path);
    return 0;
}

/* ---- the log ---- */

static unsigned configured(const cublasLtMatmulAlgo_t *code,
                           cublasLtMatmulAlgoConfigAttributes_t what) {
    /* A cluster's shape has 16 bits, the lower half of the value: hosts are little-endian. */
    uint32_t value = 0;
    size_t size = what == CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID ? sizeof(uint16_t) : sizeof value;
    cublasStatus_t status =
        cublaslt.cublasLtMatmulAlgoConfigGetAttribute(code, what, &value, size, &size);
    return status == CUBLAS_STATUS_SUCCESS ? value : 0;
}

static void log_choice(const MatmulChoice *choice, int i, const char *what) {
    static const char *const epilogues[] = {"", " gelu", " gelu'"};
    const int *s = choice->shape.number;
    fprintf(stderr, "cublasLt: %d x %d x %d %c%c %s%s, ld %d %d %d,%s%s%s%s: ", s[SHAPE_M],
            s[SHAPE_N], s[SHAPE_K], s[SHAPE_TRANSPOSE_A] ? 'T' : 'N',
            s[SHAPE_TRANSPOSE_B] ? 'T' : 'N', precision_names[s[SHAPE_PRECISION]],
            s[SHAPE_C_FLOAT] ? " to float" : "", s[SHAPE_LDC], s[SHAPE_LDA], s[SHAPE_LDB],
            s[SHAPE_BIAS] ? " bias" : "", epilogues[s[SHAPE_EPILOGUE]],
            s[SHAPE_SAVED] ? " saved" : "", s[SHAPE_COLUMN_SUMS] ? " column sums" : "");
    if (i < choice->count) {
        const cublasLtMatmulAlgo_t *code = &choice->algorithm[i].code;
        fprintf(stderr, "algorithm %u, tile %u, stages %u, split-K %u, cluster %u, %zu bytes, ",
                configured(code, CUBLASLT_ALGO_CONFIG_ID),
                configured(code, CUBLASLT_ALGO_CONFIG_TILE_ID),
                configured(code, CUBLASLT_ALGO_CONFIG_STAGES_ID),
                configured(code, CUBLASLT_ALGO_CONFIG_SPLITK_NUM),
                configured(code, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID),
                choice->algorithm[i].workspace);
        fprintf(stderr, "%d of %d, ", i + 1, choice->count);
    }
    fprintf(stderr, "%s\n", what);
}

void matmul_log_refusal(const MatmulChoice *choice, const char *why) {
    if (logging()) log_choice(choice, choice->first, why);
}

/* ---- the library's heuristic ---- */

static bool prefer(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t what,
                   const void *value, size_t size) {
    return cublaslt.cublasLtMatmulPreferenceSetAttribute(preference, what, value, size) ==
           CUBLAS_STATUS_SUCCESS;
}

int matmul_capability(void) {
    const int major = device_capability();
    return major ? major : 9;
}

/* Returns what NVIDIA advises: 32 MiB on compute capability 9.0 and later, 4 MiB before. */
size_t cuda_matmul_workspace(void) { return (size_t)(matmul_capability() >= 9 ? 32 : 4) << 20; }

static size_t workspace_of(const MatmulShape *shape) {
    return shape->number[SHAPE_WORKSPACE] ? cuda_matmul_workspace() : 0;
}

static bool set_limits(cublasLtMatmulPreference_t preference, const MatmulShape *shape) {
    uint64_t workspace = workspace_of(shape);
    uint32_t scheme = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    uint32_t a = (uint32_t)shape->number[SHAPE_ALIGN_B], b = (uint32_t)shape->number[SHAPE_ALIGN_A],
             c = (uint32_t)shape->number[SHAPE_ALIGN_C];
    return prefer(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace,
                  sizeof workspace) &&
           prefer(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &scheme, sizeof scheme) &&
           prefer(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &a, sizeof a) &&
           prefer(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &b, sizeof b) &&
           prefer(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &c, sizeof c) &&
           prefer(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &c, sizeof c);
}

/* Returns true if a split of k may leave out its end.  cuBLASLt 12.8 to 13.2 has been seen to do so
 * on Hopper and Blackwell, with no error, where the blocks of k divide evenly among the splits and
 * the rest has fewer columns than there are splits (triton, issue 2767).  How large a block is, it
 * does not tell. */
static bool may_lose_columns(int k, const cublasLtMatmulAlgo_t *code) {
    const int splits = (int)configured(code, CUBLASLT_ALGO_CONFIG_SPLITK_NUM);
    for (int block = 16; block <= 256 && splits > 1; block *= 2)
        if (k % block && k % block < splits && k / block % splits == 0) return true;
    return false;
}

static void add_candidate(MatmulChoice *choice, const cublasLtMatmulHeuristicResult_t *found) {
    if (choice->count == MATMUL_CANDIDATES || found->state != CUBLAS_STATUS_SUCCESS ||
        found->workspaceSize > workspace_of(&choice->shape) ||
        may_lose_columns(choice->shape.number[SHAPE_K], &found->algo))
        return;
    choice->algorithm[choice->count++] = (MatmulAlgorithm){found->algo, found->workspaceSize};
}

static void ask_heuristic(MatmulChoice *choice, MatmulCall *call) {
    cublasLtMatmulHeuristicResult_t found[MATMUL_CANDIDATES];
    cublasLtMatmulPreferenceOpaque_t preference;
    int count = 0;
    MatmulDescription *d = &call->description;
    cublasStatus_t status =
        cublaslt.cublasLtMatmulPreferenceInit_internal(&preference, sizeof preference);
    if (status == CUBLAS_STATUS_SUCCESS && !set_limits(&preference, &choice->shape))
        status = CUBLAS_STATUS_INVALID_VALUE; /* all that the library may say of a limit */
    if (status == CUBLAS_STATUS_SUCCESS)
        status = cublaslt.cublasLtMatmulAlgoGetHeuristic(call->library, &d->product, &d->a, &d->b,
                                                         &d->c, &d->c, &preference,
                                                         MATMUL_CANDIDATES, found, &count);
    if (status != CUBLAS_STATUS_SUCCESS) {
        if (logging()) log_choice(choice, choice->count, cublaslt.cublasLtGetStatusString(status));
        return;
    }
    for (int i = 0; i < count; i++) add_candidate(choice, &found[i]);
}

/* ---- measured algorithms ---- */

static void ask_table(MatmulChoice *choice, MatmulCall *call) {
    const cublasLtMatmulAlgo_t *code = table_find(&choice->shape);
    /* Only the heuristic promises to set the state. */
    cublasLtMatmulHeuristicResult_t found = {.state = CUBLAS_STATUS_SUCCESS};
    MatmulDescription *d = &call->description;
    if (!code) return;
    if (cublaslt.cublasLtMatmulAlgoCheck(call->library, &d->product, &d->a, &d->b, &d->c, &d->c,
                                         code, &found) != CUBLAS_STATUS_SUCCESS)
        return;
    found.algo = *code;
    add_candidate(choice, &found);
}

static bool tuning;

void library_matmul_tune(bool on) { tuning = on; }

/* Returns the milliseconds of one product, the best of ROUNDS averages; INFINITY if the library
 * refuses it.  C is overwritten even where the product adds to it, because repeated sums would grow
 * without end. */
static double measure(MatmulCall *asked, const MatmulAlgorithm *algorithm) {
    enum { ROUNDS = 5, EACH = 8 };
    Product product = *asked->product;
    MatmulCall call = *asked;
    product.add = false;
    call.product = &product;
    double best = INFINITY;
    Event from = event_create(true), to = event_create(true);
    bool good = from && to;
    for (int round = 0; round < ROUNDS && good; round++) {
        /* Keeps the device busy while the host prepares the first launch that is timed. */
        good = matmul_launch(&call, algorithm) == CUBLAS_STATUS_SUCCESS;
        event_record(from, call.run->stream);
        for (int i = 0; i < EACH && good; i++)
            good = matmul_launch(&call, algorithm) == CUBLAS_STATUS_SUCCESS;
        event_record(to, call.run->stream);
        good = good && event_wait(to) == 0;
        if (good) best = fmin(best, event_ms(from, to) / EACH);
    }
    event_free(from);
    event_free(to);
    return good ? best : INFINITY;
}

/* Puts the fastest candidate first and adds it to the table. */
static void measure_all(MatmulChoice *choice, MatmulCall *call) {
    int best = 0;
    double best_ms = INFINITY;
    for (int i = 0; i < choice->count; i++) {
        double ms = measure(call, &choice->algorithm[i]);
        char text[64];
        snprintf(text, sizeof text, "%.4f ms", ms);
        if (logging()) log_choice(choice, i, text);
        if (!(ms < best_ms)) continue;
        best = i;
        best_ms = ms;
    }
    if (!(best_ms < INFINITY)) return;
    MatmulAlgorithm first = choice->algorithm[0];
    choice->algorithm[0] = choice->algorithm[best];
    choice->algorithm[best] = first;
    table_add(&choice->shape, &choice->algorithm[0].code);
}

/* ---- the choices ---- */

static void choose(MatmulChoice *choice, MatmulCall *call) {
    if (!tuning) ask_table(choice, call);
    ask_heuristic(choice, call);
    if (tuning) measure_all(choice, call);
    if (logging()) log_choice(choice, 0, choice->count ? "chosen" : "the library has none");
}

/* A model has only some dozens of shapes.  Where there is no capacity, a choice replaces the
 * oldest. */
MatmulChoice *matmul_choice(MatmulCall *call, MatmulShape shape) {
    enum { CHOICES = 1024 };
    static MatmulChoice choices[CHOICES];
    static size_t made;
    for (size_t i = 0; i < made && i < CHOICES; i++)
        if (memcmp(&choices[i].shape, &shape, sizeof shape) == 0) return &choices[i];
    MatmulChoice *choice = &choices[made++ % CHOICES];
    *choice = (MatmulChoice){.shape = shape};
    choose(choice, call);
    return choice;
}
