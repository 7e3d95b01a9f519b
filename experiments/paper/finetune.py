"""Fine-tuning (trainings with --init) by full update and by BCD, next to what the second version of the paper (arXiv
2506.12037v2, 26 September 2025) publishes about it."""
import math

import measures
from measures import MEAN, SEEDS, Measure, MeasureTable
from tables import CLOSED_FORM, MIB, NONE


def loss_before(pair):
    """All seeds and methods start from the same weights."""
    evaluation = pair.training.evaluation
    return float(evaluation["loss"][0]) if len(evaluation["step"]) and evaluation["step"][0] == 0 else math.nan


def at_its_lowest(pair):
    losses = pair.training.evaluation["loss"]
    return float(losses.min()) if len(losses) else math.nan


FINETUNE = MeasureTable(
    "finetune", "Fine-tuning by full update and by BCD", [
        SEEDS,
        Measure("validation_loss", "valid. loss", "", 4, measures.column("valid_loss")),
        Measure("perplexity", "perplexity", "", 2, measures.column("perplexity")),
        Measure("lowest", "valid. loss", "lowest", 4, at_its_lowest),
        Measure("before", "valid. loss", "before", 4, loss_before, MEAN),
        Measure("updates", "updates", "", 0, measures.column("steps"), MEAN, NONE),
        Measure("seconds", "training", "s", 1, measures.column("seconds")),
        Measure("trained_memory", "P+G+S", "MiB", 2, measures.trained_memory, MEAN),
        Measure("closed_form", "equal parts", "P+G+S, MiB", 2, measures.closed_form, MEAN, CLOSED_FORM),
        Measure("memory", "memory", "MiB", 2, measures.peak, MEAN),
        Measure("resident", "resident", "MiB", 0, measures.column("resident", 1 / MIB), MEAN),
    ],
    ["All trainings of a network start from the same weights.  Means and spreads over seeds.  Memory: the peak of all "
     "roles; P+G+S: parameters, gradients, optimizer state.",
     "Equal parts: P+G+S of submodels of equal size; of LoRA with its adapters, whose gradients and state alone there are.  "
     "Resident: of the process, by the operating system, mapped files and tokens included.  Training: on a machine on which "
     "other work may have run at the same time.",
     "Published, in the abstract of the second version of the paper (arXiv 2506.12037v2): BCD reduces \"the training cost "
     "of a 7B model to 33% on A100/A800 and only 2.6% on RTX 4090\", and is in most cases at least as accurate as the full "
     "update and other ways to fine-tune.  The accuracies are in tables that we do not have."],
    selects=lambda method: bool(method.first.setting("init")))
