#define _GNU_SOURCE /* dladdr */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "race.h"

/* ---- places ---- */

enum { SITES = 4096 };
static SimtSite sites[SITES];
static int site_count;
static const RacePlace is_site = (RacePlace)1 << 63;

RacePlace race_site(SimtSite site) {
    int i = 0;
    while (i < site_count && (sites[i].line != site.line || sites[i].file != site.file)) i++;
    if (i == SITES) i--; /* the last one stands for all that do not fit */
    if (i == site_count) sites[site_count++] = site;
    return is_site | (RacePlace)i;
}

/* Writes the line of the instruction before a return address, as addr2line finds it in the
 * program's debug information. Without that it writes module and offset, or the address. */
static void describe(char *text, size_t size, RacePlace place) {
    if (place & is_site) {
        const SimtSite *site = &sites[place & ~is_site];
        snprintf(text, size, "%s:%d", site->file, site->line);
        return;
    }
    uintptr_t address = (uintptr_t)place - 1;
    Dl_info info;
    if (!dladdr((const void *)address, &info) || !info.dli_fname) {
        snprintf(text, size, "%#zx", (size_t)address);
        return;
    }
    size_t offset = address - (uintptr_t)info.dli_fbase;
    snprintf(text, size, "%s+%#zx", info.dli_fname, offset);
    char command[512], line[512] = "";
    if (snprintf(command, sizeof command, "addr2line -e '%s' %#zx 2>/dev/null", info.dli_fname,
                 offset) >= (int)sizeof command)
        return;
    FILE *answer = popen(command, "r");
    if (!answer) return;
    if (fgets(line, sizeof line, answer) && line[0] != '?') {
        line[strcspn(line, " \n")] = '\0'; /* without "(discriminator 2)" */
        snprintf(text, size, "%s", line);
    }
    pclose(answer);
}

/* ---- reports ---- */

static const char *kind_name(RaceKind kind) {
    return kind == RACE_READ ? "read" : kind == RACE_WRITE ? "write" : "atomic operation";
}

static SimtIndex thread_index(unsigned thread) {
    return (SimtIndex){thread % blockDim.x, thread / blockDim.x % blockDim.y,
                       thread / blockDim.x / blockDim.y};
}

void race_report(const void *memory, RaceAccess first, RaceAccess second) {
    if (simt_error()) return; /* only the first error is kept, and finding lines is slow */
    char a[320], b[320];
    describe(a, sizeof a, first.place);
    describe(b, sizeof b, second.place);
    SimtIndex one = thread_index(first.thread), two = thread_index(second.thread);
    simt_note_thread_error(two, (SimtSite){NULL, 0},
                           "race in %s memory: %s at %s by thread (%u,%u,%u) of block %u, not "
                           "ordered with the %s at %s by thread (%u,%u,%u) of block %u",
                           simt_in_shared(memory) ? "shared" : "global", kind_name(second.kind), b,
                           two.x, two.y, two.z, second.block, kind_name(first.kind), a, one.x,
                           one.y, one.z, first.block);
}
