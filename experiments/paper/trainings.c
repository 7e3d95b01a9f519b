#include "trainings.h"

#include <math.h>
#include <string.h>

const PaperRow *paper_rows(int table) {
    return table == 2    ? paper_table2
           : table == 9  ? paper_table9
           : table == 10 ? paper_table10
                         : paper_table11;
}

double paper_score(const PaperRow *row) {
    return row->score_kind == SCORE_TEN_PERPLEXITY ? row->score / 10 : row->score;
}

const PaperRow *paper_full(const PaperRow *row) {
    for (const PaperRow *p = paper_rows(row->table); p->table; p++)
        if (p->submodels == 1 && p->fraction >= 1 && !strcmp(p->model, row->model) &&
            !strcmp(p->data, row->data) && !strcmp(p->optimizer, row->optimizer))
            return p;
    return NULL;
}

double paper_multiplier(const PaperRow *row) {
    const PaperRow *full = paper_full(row);
    return full && row->submodels > 1 ? row->duration / full->duration : NAN;
}

static bool is_images(const PaperRow *row) { return row->score_kind == SCORE_ACCURACY; }

double paper_mean_multiplier(const char *optimizer, int images) {
    double sum = 0;
    int count = 0;
    for (const PaperRow *p = paper_table2; p->table; p++) {
        if (p->submodels == 1 || strcmp(p->optimizer, optimizer)) continue;
        if (images >= 0 && is_images(p) != (images == 1)) continue;
        sum += paper_multiplier(p);
        count++;
    }
    return count ? sum / count : NAN;
}

const PaperRow *paper_find(int table, const char *model, const char *data, bool images,
                           const char *optimizer, int submodels, double fraction) {
    const char *kind = strcmp(optimizer, "adamw") ? optimizer : "adam";
    const PaperRow *best = NULL;
    int best_likeness = 0;
    for (const PaperRow *p = paper_rows(table); p->table; p++) {
        if (is_images(p) != images || p->submodels != submodels ||
            fabs(p->fraction - fraction) > 1e-9 || strcmp(p->optimizer, kind))
            continue;
        int likeness = 1 + 4 * !strcmp(p->model, model) + 2 * !strcmp(p->data, data);
        if (likeness <= best_likeness) continue; /* of equals, the first is taken */
        best = p;
        best_likeness = likeness;
    }
    return best;
}
