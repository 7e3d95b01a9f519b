#include "trainings.h"

#include <math.h>
#include <string.h>

const char *const paper_notes[PAPER_NOTES + 1] = {
    [PAPER_NOTE_ACC] =
        "The GPT cells under \"Acc\" in Tables 9 and 11 are 10 x perplexity, truncated (10 "
        "exp(1.9407) = 69.6), in all their rows: higher is worse. They are shown here as "
        "perplexity.",
    [PAPER_NOTE_MULTIPLIER] =
        "The published average multiplier 1.39 is the mean over five Adam rows, of image models "
        "and of language models; the means of the two are given separately.",
    [PAPER_NOTE_EPOCH] =
        "One published epoch is one pass over the data, whichever submodel is active.",
    [PAPER_NOTE_MEMORY] =
        "The published \"Mem\" of Tables 9 to 11 is the closed form W (1 + k/M), W = 4 bytes per "
        "parameter, k = 2 for SGD with momentum and 3 for Adam; activations are not in it.",
    [PAPER_NOTE_CIFAR] =
        "The paper names CIFAR-10 for its ResNets; ResNet101's 70.9 % is most likely CIFAR-100 "
        "(inferred).",
    [PAPER_NOTE_GPT2] =
        "No usual configuration of GPT-2 has the memory printed for 0.15B; 16 layers of width 768 "
        "stand in for it.",
    [PAPER_NOTE_CONVERGED] =
        "The paper gives no rule for \"converged\", and does not say whether \"loss\" is of "
        "training or validation, so that comparisons with ours are rough.",
};

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
                           const char *optimizer, int submodels, double fraction, bool *exact) {
    const char *kind = strcmp(optimizer, "adamw") ? optimizer : "adam";
    const PaperRow *best = NULL;
    int best_likeness = 0;
    for (const PaperRow *p = paper_rows(table); p->table; p++) {
        if (is_images(p) != images || p->submodels != submodels ||
            fabs(p->fraction - fraction) > 1e-9 || strcmp(p->optimizer, kind))
            continue;
        bool same_model = !strcmp(p->model, model), same_data = !strcmp(p->data, data);
        int likeness = 1 + 4 * same_model + 2 * same_data;
        if (likeness <= best_likeness) continue; /* of equals, the first is taken */
        best = p;
        best_likeness = likeness;
        *exact = same_model && same_data && kind == optimizer;
    }
    return best;
}
