/* The workspace, computed by hand, and accesses beyond the table of nodes. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../ref/blocks/models.h"
#include "../../ref/layout.h"
#include "../test.h"
#include "tiny.h"

/* In units of one value of t x c = 8 x 16 numbers, a layer of this GPT has inner values of: norm 1,
 * qkv 3, attention 1, out 1, sum 1, norm 1, up 4, gelu 4, down 1.  Its aux are three, which take
 * less than the 256 bytes that each is rounded up to.  The logits are 8 x 32. */
static const char spec[] = "gpt:layers=2,width=16,heads=2,context=8,vocabulary=32";
enum { VALUE = 8 * 16 * sizeof(real), LOGITS = 8 * 32 * sizeof(real), AUX = 256 };

static const struct {
    const char *name;
    bool active[4]; /* embedding, two layers, head */
    size_t workspace;
} rows[] = {
    /* All that backward reads is stored.  Then the gradients of a layer's inner values count most,
     * without those of out and down, which are those of the sums; and of the outputs the
     * logits, which alone are not stored, and in turn two gradients of outputs. */
    {"all active", {true, true, true, true}, 15 * VALUE + LOGITS + 2 * VALUE},
    /* A layer of the prefix stores nothing: its 17 inner values and its aux are there at once.  In
     * turn there are the outputs of the embedding and of the first layer, whose room is that of the
     * logits.  No output has a gradient. */
    {"head alone", {false, false, false, true}, 17 * VALUE + 3 * AUX + VALUE + LOGITS},
    /* No value has a gradient. */
    {"none", {false, false, false, false}, 17 * VALUE + 3 * AUX + VALUE + LOGITS},
};

static bool are_apart(size_t first, size_t first_bytes, size_t second, size_t second_bytes) {
    return first + first_bytes <= second || second + second_bytes <= first;
}

/* Outputs of neighbours, and their gradients, are there at once, and all that is there ends where
 * the workspace does. */
static void check_rooms(const Layout *layout) {
    const Model *m = layout->model;
    for (int b = 0; b < m->blocks; b++) {
        const ValueLayout *here = &layout->value[m->block[b].out];
        const BlockWorkspace *need = &layout->need[b];
        CHECK(here->offset + need->boundary <= layout->workspace &&
                  here->gradient_offset + need->boundary_gradient <= layout->workspace,
              "block %d", b);
        if (b + 1 == m->blocks) continue;
        const ValueLayout *above = &layout->value[m->block[b + 1].out];
        CHECK(are_apart(here->offset, need->boundary, above->offset, need[1].boundary) &&
                  are_apart(here->gradient_offset, need->boundary_gradient, above->gradient_offset,
                            need[1].boundary_gradient) &&
                  are_apart(here->offset, need->boundary, above->gradient_offset,
                            need[1].boundary_gradient) &&
                  are_apart(above->offset, need[1].boundary, here->gradient_offset,
                            need->boundary_gradient),
              "blocks %d and %d", b, b + 1);
    }
}

static void workspace_by_hand(const void *row) {
    const size_t r = (size_t)((const char *)row - (const char *)rows) / sizeof *rows;
    const StageSettings settings = {.batch = 1};
    Model *m = model_create(spec);
    Layout layout;
    CHECK(layout_make(&layout, m, &settings, rows[r].active) == 0, "%s", error_message());
    CHECK(layout.workspace == rows[r].workspace, "%zu bytes, not %zu", layout.workspace,
          rows[r].workspace);
    check_rooms(&layout);
    layout_free(&layout);
    model_free(m);
}

/* Outputs of a ResNet become smaller from block to block, so that those of even blocks need more
 * room than those of odd ones, or less, as it is the lowest active block that has the largest
 * gradient. */
static void rooms_are_apart(const void *name) {
    const StageSettings settings = {.batch = 2};
    Model *m = model_create(name);
    for (int first = 0; first < m->blocks; first++) {
        bool active[32] = {false};
        Layout layout;
        active[first] = true;
        CHECK(layout_make(&layout, m, &settings, active) == 0, "%s", error_message());
        check_rooms(&layout);
        layout_free(&layout);
    }
    model_free(m);
}

/* The page after the last node cannot be read. */
static void reads_no_node_too_far(void) {
    const StageSettings settings = {.batch = 2};
    const bool active[5] = {true, true, true, true, true};
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    Model *m = model_create("resnet:depth=8,width=2");
    const size_t bytes = (size_t)m->nodes * sizeof(Node), room = (bytes / page + 1) * page;
    char *memory =
        mmap(NULL, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (!CHECK(memory != MAP_FAILED && mprotect(memory + room, page, PROT_NONE) == 0, "no pages"))
        return;
    Node *own = m->node;
    m->node = (Node *)(void *)(memory + room - bytes);
    memcpy(m->node, own, bytes);
    Layout layout;
    CHECK(layout_check(m, &settings, active) == 0, "%s", error_message());
    CHECK(layout_make(&layout, m, &settings, active) == 0, "%s", error_message());
    layout_free(&layout);
    m->node = own;
    munmap(memory, room + page);
    model_free(m);
}

void test_workspace(void) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        RUN_ROW(rows[i].name, workspace_by_hand, &rows[i]);
    for (int i = 0; tiny_models[i]; i++) RUN_ROW(tiny_models[i], rooms_are_apart, tiny_models[i]);
    RUN(reads_no_node_too_far);
}
