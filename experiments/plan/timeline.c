/* The passes of a plan. */
#include "../tables/timeline.h"

#include "plan.h"

int plan_timeline(Tables *tables, const Plan *plan) {
    enum { RANKS_SHOWN = 16 };
    const Configuration *c = &plan->configuration;
    if (c->pipeline == 1 || c->pipeline > RANKS_SHOWN) return 0;
    char title[160];
    int submodel = c->submodels / 2;
    snprintf(title, sizeof title, "Passes of %s, submodel %d", way_names[plan->way], submodel + 1);
    return timeline_add(tables, "timeline", title, c, submodel);
}
