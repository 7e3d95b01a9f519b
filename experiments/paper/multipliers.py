"""The mean B-F multipliers of Table 2, published and here."""
import compare
import published
from tables import MEASURED, NONE, RECOMPUTED, Cell, Column, Table

ROWS = [  # label, optimizer, of image models
    ("SGD, image models", "sgd", True),
    ("SGD, language models", "sgd", False),
    ("Adam, image models", "adam", True),
    ("Adam, language models", "adam", False),
    ("Adam, all (printed: 1.39)", "adam", None),
]


def table(cases):
    found = Table("multipliers", "B-F multipliers: updates of BCD-1/3 over full updates", "optimizer, networks", [
        Column("published", "Table 2", "mean", 2, RECOMPUTED),
        Column("trainings", "trainings", "here", 0, NONE),
        Column("training_loss", "to equal loss", "in training", 2, MEASURED),
        Column("validation_loss", "to equal loss", "in validation", 2, MEASURED)])
    for label, optimizer, images in ROWS:
        training, validation = map(compare.mean, compare.multipliers(cases, optimizer, images))
        found.row(label, published.mean_multiplier(optimizer, images), training[2],
                  Cell(training[0], MEASURED, training[1]), Cell(validation[0], MEASURED, validation[1]))
    found.note("Means over the trainings here in three submodels, on all of the data, with a full update of the same seed; "
               "of variants in phases, order or rate the first counts.  Spread: the standard deviation of a single "
               "training.  Adam includes AdamW.")
    found.note("BCD-1/3 updates a parameter once in three updates, so that short trainings, which are far from convergence, "
               "are expected to need about three times as many.  The published trainings ran to convergence.")
    found.note("The published average multiplier 1.39 is the mean over five Adam rows, of image models and of language "
               "models; the means of the two are given separately.")
    return found
