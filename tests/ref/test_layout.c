/* The table of ResNet-8 at the top of ref/layout_rule.c is what layout_make gives, and a layout has
 * no more rows than ops can count. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/base/error.h"
#include "../../ref/blocks/models.h"
#include "../../ref/layout.h"
#include "../test.h"

#define RULE BCD_SOURCE_DIR "/ref/layout_rule.c"

/* Returns the text of a file, for the caller to free. */
static char *text_of(const char *path) {
    enum { MOST = 1 << 16 };
    FILE *file = fopen(path, "r");
    char *text = calloc(1, MOST);
    if (!file || !text || fread(text, 1, MOST - 1, file) == 0) abort();
    fclose(file);
    return text;
}

static const char *cell(const Layout *l, int value) {
    const ValueLayout *v = &l->value[value];
    return v->stored ? v->needs_grad ? "S G" : "S  " : v->needs_grad ? "  G" : ".  ";
}

/* Writes the row of a node: what reads the values, and for each column what becomes of its output.
 */
static void write_row(char row[128], const Layout *columns, int node) {
    const Model *m = columns->model;
    const Node *n = &m->node[node];
    const Block *b = &m->block[node_block(m, n)];
    char reads[32];
    snprintf(reads, sizeof reads, n->skip < 0 ? "%d" : "%d, %d", n->in, n->skip);
    snprintf(row, 128, " *   %-7s %-14s %-7s %5d    %s   %s   %s   %s",
             b->first_node == node ? b->name : "", n->relu ? "batchnorm relu" : op_name(n->kind),
             reads, n->out, cell(&columns[0], n->out), cell(&columns[1], n->out),
             cell(&columns[2], n->out), cell(&columns[3], n->out));
    for (char *end = row + strlen(row); end[-1] == ' ';) *--end = 0;
}

/* Stem and block1; block2; block3 and head. */
static void table_of_resnet8(void) {
    Model *m = model_create("resnet8");
    const StageSettings settings = {.batch = 2, .optimizer = optimizer_defaults(OPTIMIZER_SGD)};
    static const bool active[4][5] = {
        {true, true, true, true, true}, {true, true}, {[2] = true}, {[3] = true, true}};
    Layout columns[4];
    for (int i = 0; i < 4; i++)
        CHECK(layout_make(&columns[i], m, &settings, active[i]) == 0, "%s", error_message());
    char *page = text_of(RULE), row[128];
    const char *at = page;
    for (int i = 0; i < m->nodes; i++) {
        write_row(row, columns, i);
        const char *found = strstr(at, row);
        CHECK(found && found[strlen(row)] == '\n', "not in ref/layout_rule.c:\n%s", row);
        if (found) at = found;
    }
    free(page);
    for (int i = 0; i < 4; i++) layout_free(&columns[i]);
    model_free(m);
}

/* R: computed again before the gradients; the output of a block is stored as the input of the next,
 * and what writes it is left out unless its own gradient reads aux. */
static const struct {
    const char *spec, *active; /* of the blocks: 1 or 0 */
    const char *nodes;         /* of all blocks, apart */
} again[] = {
    /* layernorm, linear, attention, linear, add, layernorm, linear, gelu, linear, add */
    {"gpt:layers=2,width=8,heads=1,context=4,vocabulary=7", "1111", ". RRRRRRRR.. RRRRRRRR.. R."},
    /* A frozen linear layer does not read its input. */
    {"gpt:layers=2,width=8,heads=1,context=4,vocabulary=7", "0100", ". RRRRRRRR.. RRRRRRR... R."},
    {"resnet:depth=8,width=2,size=4,classes=3", "11111", "RR RRRR RRRRRR RRRRRR R."},
    {"resnet:depth=8,width=2,size=4,classes=3", "01000", ".. RRRR RRRRRR RRRRRR .."},
};

static void recompute_runs_what_gradients_read(void) {
    for (size_t i = 0; i < sizeof again / sizeof *again; i++) {
        Model *m = model_create(again[i].spec);
        const StageSettings settings = {.batch = 2, .recompute = true};
        bool active[8];
        for (int b = 0; b < m->blocks; b++) active[b] = again[i].active[b] == '1';
        Layout l;
        CHECK(layout_make(&l, m, &settings, active) == 0, "%s", error_message());
        char nodes[128] = "", *end = nodes;
        for (int n = 0; n < m->nodes; n++) {
            const int block = node_block(m, &m->node[n]);
            if (n > 0 && m->block[block].first_node == n) *end++ = ' ';
            *end++ = l.node[n].recomputed ? 'R' : '.';
        }
        CHECK(strcmp(nodes, again[i].nodes) == 0, "%s, %s: \"%s\", not \"%s\"", again[i].spec,
              again[i].active, nodes, again[i].nodes);
        layout_free(&l);
        model_free(m);
    }
}

/* Ops count the positions of a batch in an int: 2^20 of 2047 samples fit, and of 2048 not, whether
 * the model trains or not. */
static void too_many_positions_are_refused(void) {
    Model *m = model_create("gpt:layers=1,width=1,heads=1,context=1048576,vocabulary=2");
    if (!CHECK(m, "%s", error_message())) return;
    static const bool none[3], all[3] = {true, true, true};
    for (int batch = 2047; batch <= 2049; batch++)
        for (int trains = 0; trains < 2; trains++) {
            const StageSettings settings = {.batch = batch};
            const int failed = layout_check(m, &settings, trains ? all : none);
            CHECK(failed == -(batch > 2047), "%d samples: %s", batch, error_message());
            CHECK(!failed || strstr(error_message(), "use a smaller batch"), "%s", error_message());
        }
    model_free(m);
}

void test_layout(void) {
    RUN(table_of_resnet8);
    RUN(recompute_runs_what_gradients_read);
    RUN(too_many_positions_are_refused);
}
