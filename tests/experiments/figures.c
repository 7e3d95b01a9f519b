#include "figures.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../test.h"

size_t count_of(const char *text, const char *what) {
    size_t count = 0;
    for (; text && (text = strstr(text, what)); text += strlen(what)) count++;
    return count;
}

bool has_figures(void) {
    static int status = -1;
    char command[512];
    const char *python = getenv("PYTHON");
    snprintf(command, sizeof command, "'%s' -c 'import h5py, matplotlib, jinja2' 2>/dev/null",
             python ? python : "/usr/bin/python3");
    if (status < 0) status = system(command);
    return status == 0;
}
