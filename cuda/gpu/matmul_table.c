/* The fastest algorithms that were measured, in a text file: the library's version and the GPU's
 * name, then a line for each shape, with its numbers in order and the eight words of the algorithm,
 * which the library takes back unchanged. */
#define _GNU_SOURCE /* dladdr */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "matmul_algorithms.h"

typedef struct {
    MatmulShape shape;
    cublasLtMatmulAlgo_t code;
} Measured;

static struct {
    bool looked; /* the file has been looked for */
    Measured *row;
    size_t rows, room;
} table;

bool matmul_logging(void) {
    const char *wanted = getenv("BCD_LT_LOG");
    return wanted && *wanted && strcmp(wanted, "0") != 0;
}

void matmul_table_add(const MatmulShape *shape, const cublasLtMatmulAlgo_t *code) {
    if (table.rows == table.room) {
        size_t room = table.room ? 2 * table.room : 64;
        Measured *row = realloc(table.row, room * sizeof *row);
        if (!row) return; /* the heuristic chooses for that shape */
        table.row = row;
        table.room = room;
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
    matmul_table_add(&shape, &code);
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
    if (matmul_logging())
        fprintf(stderr, "cublasLt: %s: %zu shapes%s\n", path, table.rows,
                fits ? "" : ", for another library or GPU");
    fclose(file);
}

const cublasLtMatmulAlgo_t *matmul_table_find(const MatmulShape *shape) {
    if (!table.looked) read_table();
    table.looked = true;
    for (size_t i = 0; i < table.rows; i++)
        if (memcmp(&table.row[i].shape, shape, sizeof *shape) == 0) return &table.row[i].code;
    return NULL;
}

int library_matmul_save(const char *path) {
    char title[160];
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
