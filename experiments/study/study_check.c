/* Whether what a file says can be a training: a report is made of nothing else. */
#include <inttypes.h>
#include <limits.h>
#include <math.h>

#include "../../ref/error.h"
#include "study.h"

/* Its losses are numbers (a training that comes to another one stops), its updates come in order.
 */
static int check_curve(const StudyRow *row, const char *path) {
    for (size_t i = 0; i < row->curve_rows; i++) {
        const CurveRow *here = &row->curve[i];
        if (!isfinite(here->loss))
            return error_set("%s: %s: damaged: the loss of update %" PRIu64 " is %g", path,
                             row->name, here->step, here->loss);
        if (here->step <= (i ? here[-1].step : 0) || !(here->seconds >= (i ? here[-1].seconds : 0)))
            return error_set("%s: %s: damaged: row %zu of its curve is before row %zu", path,
                             row->name, i + 1, i);
    }
    for (size_t e = 1; e < row->evaluation_rows; e++)
        if (row->evaluation[e].step < row->evaluation[e - 1].step)
            return error_set("%s: %s: damaged: evaluation %zu is before evaluation %zu", path,
                             row->name, e + 1, e);
    return 0;
}

int study_check(const StudyRow *row, const char *path) {
    if (row->submodels < 1 || row->submodels > INT_MAX)
        return error_set("%s: %s: damaged: it tells %" PRId64 " submodels", path, row->name,
                         row->submodels);
    if (row->steps < 0 || row->batch < 1)
        return error_set("%s: %s: damaged: it tells %" PRId64 " updates of %" PRId64 " samples",
                         path, row->name, row->steps, row->batch);
    return check_curve(row, path);
}
