/* The orders in which submodels train.  Each sees the state of the training and the engine, so that
 * an order can depend on gradients.  To add one, give it a kind in bcd.h, write its function here,
 * and add its row to the list below; the program then offers it, and the help of --order can say
 * what it does (experiments/cli/options_table.c).  The row says whether the phase alone decides and
 * the phases k M to k M + M - 1 train each submodel once, for every k: memory is then planned for
 * the submodels that do train, and otherwise for any.  It also says whether the order measures
 * gradients, which pipelines refuse. tests/ref/test_bcd_loop.c has a test for each.  A submodel
 * that is chosen twice in a row (random_order avoids it) trains on with the optimizer state that it
 * has; all else of a phase begins anew: warm-up, subset of the data, windows of the switch rule.
 *
 * An order may remember nothing between its calls: BcdState, the seed and the tensors are all that
 * a checkpoint holds, so whatever else it kept would be lost by a resume, which would then train
 * another submodel without a word.  One that needs memory, such as the loss at the end of the last
 * phase, needs a field in BcdState, which the loop of bcd.c fills, and one in the checkpoint
 * (experiments/train/checkpoint.c). */
#include <assert.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/random.h"
#include "bcd.h"

typedef struct {
    const BcdState *state;
    const BcdSettings *settings;
    Engine *engine;
    const Batch *next;
} Selection;

/* Returns the position of this phase in its cycle. */
static int turn_of(const Selection *s) {
    return (int)(s->state->phase % (uint64_t)s->settings->partition.submodels);
}

/* 0, 1, ... M - 1, 0, ... */
static int cyclic(const Selection *s) { return turn_of(s); }

/* M - 1, ... 1, 0, M - 1, ... */
static int descending(const Selection *s) {
    return s->settings->partition.submodels - 1 - turn_of(s);
}

/* Draws a new random permutation for each cycle.  If one began with the submodel that ended the
 * cycle before, that submodel would train twice in a row, so the first two trade places.  Two
 * submodels can then only alternate, and every cycle uses the first permutation. */
static int random_order(const Selection *s) {
    int submodels = s->settings->partition.submodels, turn = turn_of(s);
    uint64_t seed = s->settings->seed;
    uint64_t cycle = submodels > 2 ? s->state->phase / (uint64_t)submodels : 0;
    int *order = malloc(2 * (size_t)submodels * sizeof *order), *before = order + submodels;
    if (!order) return error_set("bcd: out of memory");
    random_permutation(order, submodels, seed, STREAM_ORDER, cycle);
    if (cycle > 0) random_permutation(before, submodels, seed, STREAM_ORDER, cycle - 1);
    bool again = cycle > 0 && order[0] == before[submodels - 1];
    int chosen = order[again && turn < 2 ? 1 - turn : turn];
    free(order);
    return chosen;
}

/* Chooses the submodel with the largest gradient norm, on a tie the lowest one (the Gauss-Southwell
 * rule for blocks: Nutini, Laradji and Schmidt 2022).  Of two or more, each is activated in turn
 * and its gradient computed, which costs M forward and backward passes at each switch, but no more
 * memory than training.  As the others were active in between, the optimizer of the chosen one
 * starts anew even if it trained just before; with keep_state it goes on, but measuring has then
 * allocated the state of all submodels. */
static int gauss_southwell(const Selection *s) {
    int largest = -1;
    double largest_norm = -1;
    if (s->settings->partition.submodels == 1) return 0; /* nothing to measure */
    if (!s->engine->is->gradient_norm)
        return error_set("bcd: an order by gradients trains on one device, not in a pipeline");
    for (int m = 0; m < s->settings->partition.submodels; m++) {
        double norm;
        if (bcd_activate(s->settings, s->engine, m) ||
            engine_gradient_norm(s->engine, s->next, &norm))
            return -1;
        if (norm > largest_norm) {
            largest = m;
            largest_norm = norm;
        }
    }
    return largest;
}

/* A row has the kind, the name, the function, which returns a submodel, or -1 and an error, whether
 * the order goes by the phase (order_by_phase), and whether by gradients (order_by_gradients). */
#define ORDERS(ROW)                                              \
    ROW(ORDER_CYCLIC, "cyclic", cyclic, true, false)             \
    ROW(ORDER_DESCENDING, "descending", descending, true, false) \
    ROW(ORDER_RANDOM, "random", random_order, true, false)       \
    ROW(ORDER_GAUSS_SOUTHWELL, "gauss-southwell", gauss_southwell, false, true)

#define FUNCTION_OF(kind, name, function, phase, gradients) [kind] = function,
#define NAME_OF(kind, name, function, phase, gradients) [kind] = name,
#define BY_PHASE(kind, name, function, phase, gradients) [kind] = phase,
#define BY_GRADIENTS(kind, name, function, phase, gradients) [kind] = gradients,
#define ONE(kind, name, function, phase, gradients) +1
static int (*const choose[ORDER_KINDS])(const Selection *) = {ORDERS(FUNCTION_OF)};
const char *const order_names[ORDER_KINDS] = {ORDERS(NAME_OF)};
const bool order_by_phase[ORDER_KINDS] = {ORDERS(BY_PHASE)};
const bool order_by_gradients[ORDER_KINDS] = {ORDERS(BY_GRADIENTS)};
static_assert(ORDERS(ONE) == ORDER_KINDS, "a row for every order");

int bcd_select(const BcdState *state, const BcdSettings *settings, Engine *engine,
               const Batch *next) {
    const int submodels = settings->partition.submodels;
    const int chosen = choose[settings->order](&(Selection){state, settings, engine, next});
    if (chosen >= -1 && chosen < submodels) return chosen;
    return error_set("bcd: the %s order chose submodel %d, counted from 0, of %d",
                     order_names[settings->order], chosen, submodels);
}

int bcd_activate(const BcdSettings *settings, Engine *engine, int submodel) {
    const Model *model = engine->model;
    bool *active = malloc((size_t)model->blocks * sizeof *active);
    if (!active) return error_set("bcd: out of memory");
    partition_active(&settings->partition, model, submodel, active);
    int failed = engine_activate(engine, active);
    free(active);
    return failed;
}
