#include "paper.h"

#include <math.h>
#include <string.h>

/* Table 2 prints a model's four trainings side by side; a slash marks what was not run. */
#define T2(row, model, data, opt, m, duration, iterations, kind, score, loss) \
    { 2, row, model, data, opt, m, 1.0, duration, iterations, kind, score, loss, NAN }
#define IMAGES(row, model, data, opt, m, epochs, accuracy, loss) \
    T2(row, model, data, opt, m, epochs, false, SCORE_ACCURACY, accuracy, loss)
#define TEXT(row, data, opt, m, iterations, perplexity, loss) \
    T2(row, "gpt2-0.15B", data, opt, m, iterations, true, SCORE_PERPLEXITY, perplexity, loss)
#define GPT(table, row, opt, m, fraction, epochs, printed, loss, mib)           \
    {                                                                           \
        table, row, "gpt2-0.15B", "wikitext2", opt, m, fraction, epochs, false, \
            SCORE_TEN_PERPLEXITY, printed, loss, mib                            \
    }
#define RESNET14(row, m, fraction, epochs, accuracy, loss, mib)                            \
    {                                                                                      \
        10, row, "resnet14", "cifar10", "sgd", m, fraction, epochs, false, SCORE_ACCURACY, \
            accuracy, loss, mib                                                            \
    }

const PaperRow paper_rows[] = {
    IMAGES("ResNet8", "resnet8", "cifar10", "sgd", 1, 639, 86.9, 0.1671),
    IMAGES("ResNet8", "resnet8", "cifar10", "sgd", 3, 395, 87.2, 0.1783),
    IMAGES("ResNet8", "resnet8", "cifar10", "adam", 1, 389, 83.1, 0.3955),
    IMAGES("ResNet8", "resnet8", "cifar10", "adam", 3, 309, 86.0, 0.2279),
    IMAGES("ResNet14", "resnet14", "cifar10", "sgd", 1, 323, 88.9, 0.0708),
    IMAGES("ResNet14", "resnet14", "cifar10", "sgd", 3, 391, 89.0, 0.0613),
    IMAGES("ResNet14", "resnet14", "cifar10", "adam", 1, 491, 85.7, 0.0969),
    IMAGES("ResNet14", "resnet14", "cifar10", "adam", 3, 372, 87.6, 0.0527),
    IMAGES("ResNet20", "resnet20", "cifar10", "sgd", 1, 191, 88.7, 0.0574),
    IMAGES("ResNet20", "resnet20", "cifar10", "sgd", 3, 322, 88.7, 0.0263),
    IMAGES("ResNet20", "resnet20", "cifar10", "adam", 1, 768, 86.3, 0.0269),
    IMAGES("ResNet20", "resnet20", "cifar10", "adam", 3, 423, 88.3, 0.0222),
    IMAGES("ResNet50", "resnet50", "cifar10", "sgd", 1, 273, 90.4, 0.0260),
    IMAGES("ResNet50", "resnet50", "cifar10", "sgd", 3, 251, 88.9, 0.0120),
    IMAGES("ResNet101", "resnet101", "cifar100", "sgd", 1, 286, 70.9, 0.0691),
    IMAGES("ResNet101", "resnet101", "cifar100", "sgd", 3, 376, 70.1, 0.0411),
    TEXT("GPT2-wiki", "wikitext2", "sgd", 1, 111587, 6.9639, 1.9407),
    TEXT("GPT2-wiki", "wikitext2", "sgd", 3, 204575, 6.9189, 1.9343),
    TEXT("GPT2-wiki", "wikitext2", "adam", 1, 83690, 6.5988, 1.8869),
    TEXT("GPT2-wiki", "wikitext2", "adam", 3, 232471, 6.6263, 1.8910),
    TEXT("GPT2-web", "webtext2", "sgd", 1, 1045000, 28.733, 3.3580),
    TEXT("GPT2-web", "webtext2", "sgd", 3, 2770000, 31.285, 3.4430),
    TEXT("GPT2-web", "webtext2", "adam", 1, 499000, 28.735, 3.3580),
    TEXT("GPT2-web", "webtext2", "adam", 3, 1045000, 30.712, 3.4240),

    GPT(9, "0.9 1/3 SGD", "sgd", 3, 0.9, 40, 68.9, 1.9312, 1013.58),
    GPT(9, "1 1/3 SGD", "sgd", 3, 1.0, 44, 69.1, 1.9343, 1013.58),
    GPT(9, "1 1 SGD", "sgd", 1, 1.0, 24, 69.6, 1.9407, 1824.45),
    GPT(9, "0.9 1/3 Adam", "adam", 3, 0.9, 60, 67.5, 1.9110, 1216.30),
    GPT(9, "1 1/3 Adam", "adam", 3, 1.0, 50, 66.2, 1.8910, 1216.30),
    GPT(9, "1 1 Adam", "adam", 1, 1.0, 18, 65.9, 1.8869, 2432.60),

    RESNET14("0.9 1/3", 3, 0.9, 427, 88.7, 0.0616, 1.12),
    RESNET14("1 1/3", 3, 1.0, 391, 89.0, 0.0613, 1.12),
    RESNET14("1 1", 1, 1.0, 323, 88.9, 0.0708, 2.01),

    GPT(11, "1 SGD", "sgd", 1, 1.0, 24, 69.6, 1.9407, 1824.45),
    GPT(11, "1/2 SGD", "sgd", 2, 1.0, 40, 67.1, 1.9033, 1216.30),
    GPT(11, "1/3 SGD", "sgd", 3, 1.0, 44, 69.1, 1.9343, 1013.58),
    GPT(11, "1/4 SGD", "sgd", 4, 1.0, 50, 67.5, 1.9109, 912.23),
    GPT(11, "1 Adam", "adam", 1, 1.0, 18, 65.9, 1.8869, 2432.60),
    GPT(11, "1/2 Adam", "adam", 2, 1.0, 40, 66.3, 1.8924, 1520.38),
    GPT(11, "1/3 Adam", "adam", 3, 1.0, 50, 66.2, 1.8910, 1216.30),
    GPT(11, "1/4 Adam", "adam", 4, 1.0, 60, 66.8, 1.8995, 1064.26),
};
const size_t paper_row_count = sizeof paper_rows / sizeof *paper_rows;

const char *const paper_notes[PAPER_NOTES + 1] = {
    [PAPER_NOTE_ACC] =
        "The GPT cells under \"Acc\" in Tables 9 and 11 are 10 x perplexity, truncated (10 "
        "exp(1.9407) "
        "= "
        "69.6), in all their rows: higher is worse. They are shown here as perplexity.",
    [PAPER_NOTE_MULTIPLIER] =
        "The published average multiplier 1.39 is the mean of five Adam rows of unlike kind; the "
        "means "
        "of the image rows and of the language rows are given apart.",
    [PAPER_NOTE_EPOCH] =
        "One published epoch is one pass over the data, whichever submodel is active.",
    [PAPER_NOTE_MEMORY] =
        "The published \"Mem\" of Tables 9 to 11 is the closed form W (1 + k/M), W = 4 bytes per "
        "parameter, k = 2 for SGD with momentum and 3 for Adam; activations are not in it.",
    [PAPER_NOTE_CIFAR] =
        "The paper names CIFAR-10 for its ResNets; ResNet101's 70.9 % is most likely CIFAR-100 "
        "(inferred).",
    [PAPER_NOTE_GPT2] =
        "No natural configuration has the memory printed for the 0.15B GPT-2; 16 layers x 768 "
        "stand "
        "for it.",
    [PAPER_NOTE_CONVERGED] =
        "The paper says \"converged\" without a rule, and \"loss\" without saying whether of "
        "training "
        "or "
        "validation; both are compared with ours loosely.",
};

double paper_score(const PaperRow *row) {
    return row->score_kind == SCORE_TEN_PERPLEXITY ? row->score / 10 : row->score;
}

const PaperRow *paper_full(const PaperRow *row) {
    for (const PaperRow *p = paper_rows; p < paper_rows + paper_row_count; p++)
        if (p->table == row->table && p->submodels == 1 && p->fraction >= 1 &&
            !strcmp(p->model, row->model) && !strcmp(p->data, row->data) &&
            !strcmp(p->optimizer, row->optimizer))
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
    for (const PaperRow *p = paper_rows; p < paper_rows + paper_row_count; p++) {
        if (p->table != 2 || p->submodels == 1 || strcmp(p->optimizer, optimizer)) continue;
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
    for (const PaperRow *p = paper_rows; p < paper_rows + paper_row_count; p++) {
        if ((table && p->table != table) || is_images(p) != images || p->submodels != submodels ||
            fabs(p->fraction - fraction) > 1e-9 || strcmp(p->optimizer, kind))
            continue;
        bool same_model = !strcmp(p->model, model), same_data = !strcmp(p->data, data);
        int likeness = 1 + 4 * same_model + 2 * same_data;
        if (likeness <= best_likeness) continue; /* the first of equals: Table 2 stands before 9 */
        best = p;
        best_likeness = likeness;
        *exact = same_model && same_data && kind == optimizer;
    }
    return best;
}
