/* How many updates BCD takes to the same loss, over those of the full update.  Nobody knows this of
 * the training that is planned, so it is taken to be as in the trainings of this project, which are
 * of smaller models.  tests/paper/test_plan.py computes each number from experiments/results/. */
#include <math.h>

#include "plan.h"

typedef struct {
    int submodels;
    double updates;
} MeasuredPoint;

enum { POINTS = 3 };
static const struct {
    const char *trainings, *more;
    MeasuredPoint point[POINTS]; /* by rising submodels; those without are not measured */
} measured[PLAN_TASKS] = {
    [PLAN_IMAGES] =
        {"on CIFAR-10, ten of three seeds each, nine of ResNet-8x8 and one of ResNet-8 (mean)",
         ", 1.65 to 4.09 by training",
         {{3, 3.24}}},
    [PLAN_TEXT] = {"of a GPT of 4 layers and 1.1 million parameters at a constant rate, two seeds",
                   "",
                   {{2, 2.54}, {3, 3.50}, {4, 5.31}}},
    [PLAN_TUNING] = {"that fine-tune SmolLM2 of 135 million parameters, three seeds",
                     ", or more",
                     {{3, 2.66}, {6, 4.19}, {30, 4.90}}},
};

double plan_updates(PlanTask task, int submodels) {
    MeasuredPoint below = {1, 1}; /* the full update itself */
    for (int i = 0; i < POINTS && measured[task].point[i].submodels; i++) {
        const MeasuredPoint above = measured[task].point[i];
        const double part =
            (double)(submodels - below.submodels) / (above.submodels - below.submodels);
        if (part <= 1) return below.updates + part * (above.updates - below.updates);
        below = above;
    }
    return below.updates * submodels / below.submodels;
}

void plan_updates_note(Table *table, const PlanQuestion *q) {
    if (!isnan(q->multiplier)) {
        table_note(
            table,
            "updates: of BCD over those of the full update to the same loss, as --multiplier "
            "gives them for every number of submodels M.");
        return;
    }
    Text points = {""};
    int last = 1;
    for (int i = 0; i < POINTS && measured[q->task].point[i].submodels; i++) {
        const MeasuredPoint point = measured[q->task].point[i];
        text_add(&points, "%s%.2f at M = %d", i ? ", " : "x ", point.updates, point.submodels);
        last = point.submodels;
    }
    table_note(
        table,
        "updates: of BCD with M submodels over those of the full update, to the same loss.  "
        "Assumed to be as in trainings here %s: %s%s (measured), and 1 at M = 1; between "
        "these interpolated, beyond M = %d extrapolated, in proportion to M.  --multiplier X "
        "replaces them.",
        measured[q->task].trainings, points.text, measured[q->task].more, last);
    table_note(table,
               "Published, of five pairs with Adam: x 1.39 on average, x 0.70 of the ResNets and x "
               "2.44 of the language models, x 2.77 at most.%s",
               q->task == PLAN_TEXT ? "  With --init those of fine-tuning are taken." : "");
}
