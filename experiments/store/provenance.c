#include "provenance.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../ref/error.h"
#include "../../ref/real.h" /* precision_names */

#ifndef BCD_COMMIT
#define BCD_COMMIT "unknown"
#endif
#ifndef BCD_FLAGS
#define BCD_FLAGS ""
#endif

static char command_line[1024] = "bcd";
static struct timespec start; /* of this process; all zero: not remembered */

/* An argument as it could be typed again. */
static void append_argument(const char *argument) {
    size_t used = strlen(command_line), left = sizeof command_line - used;
    bool plain = *argument && !argument[strcspn(argument, " \t\n\"'$\\*?;&|<>()`~#!")];
    snprintf(command_line + used, left, plain ? " %s" : " '%s'", argument);
}

void provenance_remember(int argc, char **argv) {
    strcpy(command_line, "bcd");
    for (int i = 1; i < argc; i++) append_argument(argv[i]);
    clock_gettime(CLOCK_MONOTONIC, &start);
}

static void read_cpu(char *cpu, size_t size) {
    snprintf(cpu, size, "unknown");
    FILE *file = fopen("/proc/cpuinfo", "r");
    if (!file) return;
    char line[256];
    while (fgets(line, sizeof line, file)) {
        if (strncmp(line, "model name", 10) != 0 || !strchr(line, ':')) continue;
        snprintf(cpu, size, "%s", strchr(line, ':') + 2);
        cpu[strcspn(cpu, "\n")] = 0;
        break;
    }
    fclose(file);
}

double provenance_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (!start.tv_sec && !start.tv_nsec) return 0;
    return (double)(now.tv_sec - start.tv_sec) + 1e-9 * (double)(now.tv_nsec - start.tv_nsec);
}

void provenance_fill(Provenance *p, uint64_t seed) {
    memset(p, 0, sizeof *p);
    snprintf(p->commit, sizeof p->commit, "%s", BCD_COMMIT);
    snprintf(p->command, sizeof p->command, "%s", command_line);
#if defined(__clang__)
    snprintf(p->compiler, sizeof p->compiler, "%s", __VERSION__);
#else
    snprintf(p->compiler, sizeof p->compiler, "gcc %s", __VERSION__);
#endif
    snprintf(p->flags, sizeof p->flags, "%s", BCD_FLAGS);
    read_cpu(p->cpu, sizeof p->cpu);
    provenance_set_device(p, "cpu", precision_names[PRECISION_FP32], NULL);
    time_t now = time(NULL);
    struct tm utc;
    gmtime_r(&now, &utc);
    strftime(p->started, sizeof p->started, "%Y-%m-%dT%H:%M:%SZ", &utc);
    p->threads = omp_get_max_threads();
    p->seed = seed;
}

void provenance_set_device(Provenance *p, const char *device, const char *precision,
                           const DeviceInfo *info) {
    static const DeviceInfo none;
    if (!info) info = &none;
    snprintf(p->device, sizeof p->device, "%s", device);
    snprintf(p->precision, sizeof p->precision, "%s", precision);
    memcpy(p->accelerator, info->name, sizeof p->accelerator);
    memcpy(p->runtime, info->runtime, sizeof p->runtime);
    memcpy(p->driver, info->driver, sizeof p->driver);
    memcpy(p->libraries, info->libraries, sizeof p->libraries);
}

const char *provenance_computer(const Provenance *p) {
    return *p->accelerator ? p->accelerator : p->cpu;
}

const ProvenanceText provenance_texts[PROVENANCE_TEXTS] = {
#define FIELD(field) #field, offsetof(Provenance, field), sizeof((Provenance *)0)->field
    {FIELD(commit), false},    {FIELD(command), false}, {FIELD(compiler), false},
    {FIELD(flags), false},     {FIELD(cpu), false},     {FIELD(device), false},
    {FIELD(precision), false}, {FIELD(started), false}, {FIELD(accelerator), true},
    {FIELD(runtime), true},    {FIELD(driver), true},   {FIELD(libraries), true},
#undef FIELD
};

void provenance_write(H5File *file, const char *group, const Provenance *p) {
    for (int i = 0; i < PROVENANCE_TEXTS; i++) {
        const char *text = (const char *)p + provenance_texts[i].offset;
        if (*text || !provenance_texts[i].optional)
            h5_set_text(file, group, provenance_texts[i].name, text);
    }
    h5_set_int(file, group, "threads", p->threads);
    h5_set_count(file, group, "seed", p->seed);
    h5_set_real(file, group, "wall", p->wall);
}

/* Before there were others, fp32 was called float. */
int provenance_read(const H5File *file, const char *group, Provenance *p) {
    int64_t threads;
    for (int i = 0; i < PROVENANCE_TEXTS; i++) {
        char *text = (char *)p + provenance_texts[i].offset;
        *text = 0;
        if (provenance_texts[i].optional && !h5_has(file, group, provenance_texts[i].name))
            continue;
        if (h5_get_text(file, group, provenance_texts[i].name, text, provenance_texts[i].size))
            return -1;
    }
    if (h5_get_int(file, group, "threads", &threads) ||
        h5_get_count(file, group, "seed", &p->seed) || h5_get_real(file, group, "wall", &p->wall))
        return -1;
    p->threads = (int)threads;
    if (strcmp(p->precision, "float") == 0) strcpy(p->precision, precision_names[PRECISION_FP32]);
    return 0;
}

/* ---- of many runs ---------------------------------------------------------------------------- */

static const H5Column numbers[] = {
    {"threads", H5_INT, offsetof(Provenance, threads), NULL},
    {"seed", H5_UINT64, offsetof(Provenance, seed), NULL},
    {"wall", H5_DOUBLE, offsetof(Provenance, wall), "s"},
};
enum { NUMBERS = sizeof numbers / sizeof *numbers, NAME = 2 * H5_NAME };

static H5Kind text_kind(int text) {
    return provenance_texts[text].size > H5_NAME ? H5_LINE : H5_TEXT;
}

void provenance_write_columns(H5File *file, const char *group, const char *scale,
                              const Provenance *first, size_t stride, size_t rows) {
    char name[NAME], *values = malloc(rows * H5_PATH + 1);
    H5Dim dim = {"row", rows, scale};
    for (int i = 0; i < PROVENANCE_TEXTS && values; i++) {
        size_t size = h5_kind_size(text_kind(i));
        memset(values, 0, rows * size);
        for (size_t r = 0; r < rows; r++)
            strcpy(values + r * size,
                   (const char *)first + r * stride + provenance_texts[i].offset);
        snprintf(name, sizeof name, "%s/%s", group, provenance_texts[i].name);
        h5_write(file, name, text_kind(i), values, 1, &dim, NULL);
    }
    for (int i = 0; i < NUMBERS && values; i++) {
        size_t size = h5_kind_size(numbers[i].kind);
        for (size_t r = 0; r < rows; r++)
            memcpy(values + r * size, (const char *)first + r * stride + numbers[i].offset, size);
        snprintf(name, sizeof name, "%s/%s", group, numbers[i].name);
        h5_write(file, name, numbers[i].kind, values, 1, &dim, numbers[i].unit);
    }
    if (!values) h5_fail(file, group);
    free(values);
}

static int read_texts(const H5File *file, const char *group, Provenance *first, size_t stride,
                      size_t rows, char *values) {
    char name[NAME];
    for (int i = 0; i < PROVENANCE_TEXTS; i++) {
        const ProvenanceText *text = &provenance_texts[i];
        size_t size = h5_kind_size(text_kind(i));
        snprintf(name, sizeof name, "%s/%s", group, text->name);
        if (h5_read(file, name, text_kind(i), values, 1, &rows)) return -1;
        for (size_t r = 0; r < rows; r++)
            snprintf((char *)first + r * stride + text->offset, text->size, "%s",
                     values + r * size);
    }
    return 0;
}

static int read_numbers(const H5File *file, const char *group, Provenance *first, size_t stride,
                        size_t rows, char *values) {
    char name[NAME];
    for (int i = 0; i < NUMBERS; i++) {
        size_t size = h5_kind_size(numbers[i].kind);
        snprintf(name, sizeof name, "%s/%s", group, numbers[i].name);
        if (h5_read(file, name, numbers[i].kind, values, 1, &rows)) return -1;
        for (size_t r = 0; r < rows; r++)
            memcpy((char *)first + r * stride + numbers[i].offset, values + r * size, size);
    }
    return 0;
}

int provenance_read_columns(const H5File *file, const char *group, Provenance *first, size_t stride,
                            size_t rows) {
    char *values = malloc(rows * H5_PATH + 1);
    int failed = values ? read_texts(file, group, first, stride, rows, values) ||
                              read_numbers(file, group, first, stride, rows, values)
                        : error_set("%s: out of memory", file->path);
    free(values);
    return failed ? -1 : 0;
}
