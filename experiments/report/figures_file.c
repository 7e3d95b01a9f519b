/* A figure as a file of its own, to be shown by a browser or within other pages. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../../ref/error.h"
#include "../store/h5.h"
#include "figures_parts.h"
#include "report_parts.h"

/* On a page that is dark it stays dark on light. */
static void put_file(FILE *out, const char *svg, const char *label) {
    size_t head = strcspn(svg, ">");
    fprintf(out,
            "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n"
            "<svg style=\"background:#fff;color:#222;font-family:sans-serif\" width=\"700\" "
            "role=\"img\" "
            "aria-label=\"");
    put_text(out, label);
    fprintf(out, "\"%.*s><rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>%s",
            (int)(head - strlen("<svg")), svg + strlen("<svg"), svg + head + 1);
}

int figure_write(const char *path, const char *svg, const char *label) {
    char temporary[H5_PATH];
    snprintf(temporary, sizeof temporary, "%.900s.%ld.part", path, (long)getpid());
    FILE *out = fopen(temporary, "w");
    if (!out) return error_set("%s cannot be written; is its directory there?", path);
    put_file(out, svg, label);
    bool failed = ferror(out) != 0;
    failed |= fclose(out) != 0;
    if (!failed && rename(temporary, path) == 0) return 0;
    remove(temporary);
    return error_set("%s: writing failed; is the disk full?", path);
}
