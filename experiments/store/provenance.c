#include "provenance.h"

#include <omp.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "../../ref/base/clock.h"
#include "../../ref/base/real.h" /* precision_names */
#include "../cli/options.h"

#ifndef BCD_COMMIT
#define BCD_COMMIT "unknown"
#endif
#ifndef BCD_FLAGS
#define BCD_FLAGS ""
#endif

static char command_line[1024] = "bcd";
static double start; /* of this process; 0: not remembered */

void provenance_remember(int argc, char **argv) {
    strcpy(command_line, "bcd");
    for (int i = 1; i < argc; i++) {
        size_t used = strlen(command_line);
        snprintf(command_line + used, sizeof command_line - used, " %.1000s", quoted(argv[i]).text);
    }
    start = clock_seconds();
}

static void read_cpu(char cpu[H5_NAME]) {
    char line[256];
    FILE *file = fopen("/proc/cpuinfo", "r");
    bool found = false;
    while (file && !found && fgets(line, sizeof line, file))
        found = sscanf(line, "model name : %127[^\n]", cpu) == 1;
    if (!found) strcpy(cpu, "unknown");
    if (file) fclose(file);
}

double provenance_seconds(void) { return start > 0 ? clock_seconds() - start : 0; }

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
    read_cpu(p->cpu);
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
    snprintf(p->accelerator, sizeof p->accelerator, "%s", info->name);
    snprintf(p->runtime, sizeof p->runtime, "%s", info->runtime);
    snprintf(p->driver, sizeof p->driver, "%s", info->driver);
    snprintf(p->libraries, sizeof p->libraries, "%s", info->libraries);
}

const char *provenance_computer(const Provenance *p) {
    return *p->accelerator ? p->accelerator : p->cpu;
}

const H5Column provenance_fields[PROVENANCE_FIELDS] = {
    {H5_FIELD(Provenance, commit, H5_TEXT)},
    {H5_FIELD(Provenance, command, H5_LINE)},
    {H5_FIELD(Provenance, compiler, H5_TEXT)},
    {H5_FIELD(Provenance, flags, H5_LINE)},
    {H5_FIELD(Provenance, cpu, H5_TEXT)},
    {H5_FIELD(Provenance, device, H5_TEXT)},
    {H5_FIELD(Provenance, precision, H5_TEXT)},
    {H5_FIELD(Provenance, started, H5_TEXT)},
    {H5_FIELD(Provenance, accelerator, H5_TEXT), .optional = true},
    {H5_FIELD(Provenance, runtime, H5_TEXT), .optional = true},
    {H5_FIELD(Provenance, driver, H5_TEXT), .optional = true},
    {H5_FIELD(Provenance, libraries, H5_TEXT), .optional = true},
    {H5_FIELD(Provenance, threads, H5_INT)},
    {H5_FIELD(Provenance, seed, H5_UINT64)},
    {H5_FIELD(Provenance, wall, H5_DOUBLE), .unit = "s"},
};
