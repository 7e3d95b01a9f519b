/* The limits of every flag that takes a number: the limit is accepted, and what exceeds it is
 * refused. */
#include <stdio.h>
#include <string.h>

#include "../../ref/base/error.h"
#include "../test.h"
#include "program.h"

typedef struct {
    const char *line;
    double min, max;
    bool whole;
} Limits;

static const Limits limits[] = {
    {"plan --per-node", 1, 64, true},
    {"plan --nodes", 1, 512, true},
    {"plan --network", 0.001, 1e6, false},
    {"plan --batch", 1, 1048576, true},
    {"plan --micro-batches", 1, 1048576, true},
    {"plan --pipeline", 1, 4096, true},
    {"plan --submodels", 2, 10000, true},
    {"plan --gpus", 1, 32768, true},
    {"plan --budget", 0.01, 1e9, false},
    {"sample d --tokens", 1, 1048576, true},
    {"sample d --temperature", 0, 100, false},
    {"sample d --top-k", 0, 16777216, true},
    {"sample d --top-p", 1e-9, 1, false},
    {"plan --tokens", 1, 1e18, false},
    {"plan --multiplier", 1e-6, 1e6, false},
    {"plan --efficiency", 1e-4, 10, false},
    {"plan --host-rate", 1e-3, 1e6, false},
    {"plan --host-memory", 1e-3, 1e6, false},
    {"plan --step-ms", 1e-6, 1e12, false},
    {"trace --active", 0, 10000, true},
    {"trace --steps", 1, 1048576, true},
    {"train --context", 0, 1048576, true},
    {"train --limit", 0, 2147483647, true},
    {"train --fraction", 1e-6, 1, false},
    {"train --submodels", 1, 10000, true},
    {"trace --submodels", 1, 10000, true},
    {"train --auto-window", 1, 2147483647, true},
    {"train --auto-tolerance", 0, 1, false},
    {"train --auto-min", 1, 2147483647, true},
    {"train --auto-max", 1, 2147483647, true},
    {"train --switch-warmup", 0, 2147483647, true},
    {"train --correct-above", 0, 1e6, false},
    {"train --lr", 0, 1000, false},
    {"train --momentum", 0, 0.999999, false},
    {"train --beta1", 0, 0.9999999, false},
    {"train --beta2", 0, 0.9999999, false},
    {"train --eps", 0, 1, false},
    {"train --weight-decay", 0, 1000, false},
    {"train --clip", 0, 1e9, false},
    {"train --warmup", 0, 2147483647, true},
    {"train --final-lr", 0, 1, false},
    {"train --step-every", 1, 2147483647, true},
    {"train --step-factor", 0, 1, false},
    {"train --batch", 1, 1048576, true},
    {"eval d --batch", 1, 1048576, true},
    {"train --accumulate", 1, 1048576, true},
    {"train --steps", 0, 9e15, true},
    {"train --epochs", 1e-9, 1e9, false},
    {"train --seed", 0, 9e15, true},
    {"train --threads", 0, 4096, true},
    {"train --eval-every", 0, 2147483647, true},
    {"train --eval-samples", 0, 2147483647, true},
    {"train --save-every", 0, 2147483647, true},
    {"train --keep-last", 0, 100000, true},
    {"train --replicas", 1, 4096, true},
    {"train --timeout", 0.1, 1e6, false},
};

static void check(const Limits *l, double value, bool taken) {
    CommandLine line;
    char text[128];
    snprintf(text, sizeof text, l->whole ? "%s=%.0f" : "%s=%.17g", l->line, value);
    CHECK((parse_line(&line, text) == 0) == taken, "bcd %s: %s", text,
          taken ? error_message() : "accepted");
}

static void ends_at_its_limits(const void *row) {
    const Limits *l = row;
    check(l, l->min, true);
    check(l, l->max, true);
    check(l, l->whole ? l->min - 1 : l->min * 0.999999 - (l->min > 0 ? 0 : 1e-9), false);
    check(l, l->whole ? l->max + 1 : l->max * 1.0000001, false);
}

/* A flag that takes a number has a row, of one of the commands that have it. */
static void every_number_has_a_row(void) {
    for (int row = 0; option_table[row].name; row++) {
        const Option *option = &option_table[row];
        bool found = option->kind != OPTION_IS_INT && option->kind != OPTION_IS_COUNT &&
                     option->kind != OPTION_IS_REAL;
        for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
            const char *flag = strstr(limits[i].line, "--");
            found |= strcmp(flag + 2, option->name) == 0;
        }
        CHECK(found, "--%s has no row", option->name);
    }
}

void test_limits(void) {
    RUN(every_number_has_a_row);
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        RUN_ROW(limits[i].line, ends_at_its_limits, &limits[i]);
}
