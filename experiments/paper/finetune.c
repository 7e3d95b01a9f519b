/* Fine-tuning (trainings with --init) by full update and by BCD, next to what the second version of
 * the paper (arXiv 2506.12037v2, 26 September 2025) publishes about it. */
#include <math.h>

#include "trainings.h"

static bool is_fine_tuned(const CaseMethod *method) { return *method->row[0]->settings.init != 0; }

/* All seeds and methods start from the same weights. */
static double loss_before(const MeasurePair *pair) {
    const StudyRow *row = pair->row;
    return row->evaluation_rows && !row->evaluation[0].step ? row->evaluation[0].loss : NAN;
}

const MeasureTable paper_finetuned = {
    .name = "finetune",
    .title = "Fine-tuning by full update and by BCD",
    .selects = is_fine_tuned,
    .column =
        {
            {"validation_loss", "valid. loss", "", 4, SOURCE_MEASURED, measure_valid_loss,
             OVER_SEEDS},
            {"perplexity", "perplexity", "", 2, SOURCE_MEASURED, measure_perplexity, OVER_SEEDS},
            {"before", "valid. loss", "before", 4, SOURCE_MEASURED, loss_before, MEAN_ALONE},
            {"updates", "updates", "", 0, SOURCE_NONE, measure_steps, MEAN_ALONE},
            {"seconds", "training", "s", 1, SOURCE_MEASURED, measure_seconds, OVER_SEEDS},
            {"trained_memory", "P+G+S", "MiB", 2, SOURCE_MEASURED, measure_trained, MEAN_ALONE},
            {"memory", "memory", "MiB", 2, SOURCE_MEASURED, measure_peak, MEAN_ALONE},
        },
    .note =
        {"All trainings of a network start from the same weights.  Means and spreads over seeds.  "
         "Memory: the peak of all roles; P+G+S: parameters, gradients, optimizer state.",
         "Published, in the abstract of the second version of the paper (arXiv 2506.12037v2): BCD "
         "reduces \"the training cost of a 7B model to 33% on A100/A800 and only 2.6% on RTX "
         "4090\", and is in most cases at least as accurate as the full update and other ways to "
         "fine-tune.  The accuracies are in tables that we do not have."},
};
