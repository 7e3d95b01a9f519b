"""Tables 2, 9, 10 and 11: below each published training those of ours that are most like it; mean multipliers."""
from collections.abc import Callable
from dataclasses import dataclass, replace

import compare
import curves
import measures
import published
import registered
from measures import MEAN, SEEDS, Measure, MeasureTable
from tables import CLOSED_FORM, FREE, MEASURED, NONE, PUBLISHED, RECOMPUTED, Cell, Column, Table

NO_RULE = ("The paper gives no rule for \"converged\", and does not say whether \"loss\" is of training or validation, so "
           "that comparisons with ours are rough.")
TEN_PERPLEXITY = ("The GPT cells under \"Acc\" in Tables 9 and 11 are 10 x perplexity (10 exp(1.9407) = 69.6), truncated in "
                  "all rows but that of BCD-1/2 with SGD: higher is worse. They are shown here as perplexity.")
VOCABULARY = ("Perplexity and loss are per token: ours can be compared with the published ones only where vocabulary and "
              "context are the same, and wikitext2:2048 has 2,048 tokens.")
CLOSED_FORM_MEMORY = ("The published \"Mem\" of Tables 9 to 11 is the closed form W (1 + (1 + k)/M), W = 4 bytes per "
                      "parameter, k = 1 for SGD with momentum and 2 for Adam; activations are not in it.")
STAND_IN = ("No usual configuration of GPT-2 has the memory printed for 0.15B; 16 layers of width 768 stand in for it.")
INFERRED = ("The paper names CIFAR-10 for its ResNets; ResNet101's 70.9 % is most likely CIFAR-100 (inferred).")
EPOCH = "One published epoch is one pass over the data, whichever submodel is active."
OURS = ("Below a published training, \"here\": ours of that kind, with the network, data and settings that its row names; "
        "means and spreads over seeds.  Losses and scores are at the end of the training; a score and a validation loss are "
        "means of the last five evaluations where there are ten or more; the score of a cosine that was registered is "
        "the last one.")
LEVEL = ("Trained: the published ones until they were called converged.  To level: until the smoothed training loss of BCD "
         "was at the lowest value that both it and the full update of the same seed reached; B-F is that over what the full "
         "update took.")


def is_short(training):
    """The last evaluations of a short training are far apart, so that their mean says little."""
    return len(training.evaluation["step"]) < 2 * curves.MEAN


def score(pair):
    return measures.score(pair) if is_short(pair.training) else registered.end_score(pair.training)


def valid_loss(pair):
    if pair.training.has_diverged or is_short(pair.training):
        return pair.training["valid_loss"]
    return curves.mean_loss(pair.training)[0]


def rounded_epochs(pair):
    """To two digits after the point; published ones are whole numbers."""
    return round(100 * pair.training["epochs"]) / 100


IMAGES = [
    SEEDS,
    Measure("rate", "rate", "", FREE, lambda pair: pair.training.setting("lr"), MEAN, NONE),
    Measure("trained", "trained", "epochs", FREE, rounded_epochs, MEAN, NONE),
    Measure("to_level", "to level", "epochs", 2, measures.column("epochs_to_converge")),
    Measure("multiplier", "B-F", "", 2, measures.multiplier),
    Measure("score", "accuracy", "%", 1, score),
    Measure("train_loss", "loss", "training", 4, measures.column("train_loss")),
    Measure("memory", "P+G+S", "MiB", 2, measures.trained_memory, MEAN),
    Measure("closed_form", "equal parts", "MiB", 2, measures.closed_form, MEAN, CLOSED_FORM),
    Measure("valid_loss", "loss", "validation", 4, valid_loss),
]
TEXT = [replace(measure, head="perplexity", below="", decimals=2) if measure.name == "score" else measure
        for measure in IMAGES[:-1]]  # a perplexity is a validation loss


def in_updates(measure):
    """Of language models Table 2 counts iterations."""
    if measure.name == "trained":
        return replace(measure, below="updates", of=measures.column("steps"))
    if measure.name == "to_level":
        return replace(measure, below="updates", of=measures.column("steps_to_converge"), decimals=0)
    return measure


def label(row):
    """Of a published row; in Table 2 "ResNet8 SGD, 1/3"."""
    if row.table != 2:
        return row.row
    return f"{row.row} {'SGD' if row.optimizer == 'sgd' else 'Adam'}, {'full' if row.submodels == 1 else '1/3'}"


@dataclass
class Comparison:
    """table: its number; is_subject: which of our trainings it is about: a full update alone, or one of another network,
    was trained for another comparison."""
    table: int
    images: bool
    name: str
    title: str
    measures: list
    is_subject: Callable
    notes: list

    def published_row(self, training):
        """The published row that a training is compared with, or None."""
        if training.is_images != self.images or training.is_offload or training.setting("init"):
            return None
        return published.find(self.table, training["model"], training["data"], self.images, training["optimizer"],
                              training["submodels"], training.setting("fraction"))

    def methods(self, cases):
        """The methods of cases that the table is about, each with its published row."""
        def has_subject(case):
            return any(self.published_row(method.first) and self.is_subject(method.first) for method in case.methods)
        return [(method, self.published_row(method.first)) for case in cases.cases if has_subject(case)
                for method in case.methods if method.is_plain]

    def make(self, cases):
        """The table, without rows where there are no trainings for it."""
        methods = self.methods(cases)
        ours = MeasureTable(self.name, self.title, self.measures)
        table = ours.empty()
        for row in published.trainings(self.table) if methods else ():
            if row.is_images != self.images:
                continue
            self.put_published(table, row)
            for method, like in methods:
                if like == row:
                    table.row(f"  here: {method.label}", *ours.cells(method))
        for note in [OURS, LEVEL, *self.notes]:
            table.note(note)
        return table

    def put_published(self, table, row):
        source = RECOMPUTED if row.is_ten_perplexity else PUBLISHED
        table.row(label(row), trained=Cell(float(row.duration), PUBLISHED),
                  multiplier=Cell(row.multiplier, RECOMPUTED), score=Cell(row.score, source),
                  train_loss=Cell(row.loss, PUBLISHED), memory=Cell(row.mib, PUBLISHED))


def is_less_data(training):
    return training.setting("fraction") < 1


COMPARISONS = [
    Comparison(2, True, "table2_images", "Table 2, image models: full update and BCD-1/3", IMAGES,
               lambda training: training.is_bcd3, [NO_RULE, INFERRED, EPOCH]),
    Comparison(2, False, "table2_language", "Table 2, language models: full update and BCD-1/3",
               [in_updates(measure) for measure in TEXT], lambda training: training.is_bcd3,
               [VOCABULARY, NO_RULE, STAND_IN]),
    Comparison(9, False, "table9", "Table 9: GPT-2 by part of the data and of the parameters", TEXT, is_less_data,
               [VOCABULARY, NO_RULE, TEN_PERPLEXITY, CLOSED_FORM_MEMORY, STAND_IN, EPOCH]),
    Comparison(10, True, "table10", "Table 10: ResNet-14 by part of the data and of the parameters", IMAGES,
               is_less_data, [NO_RULE, CLOSED_FORM_MEMORY, EPOCH]),
    Comparison(11, False, "table11", "Table 11: GPT-2 in one to four submodels", TEXT,
               lambda training: training["submodels"] in (2, 4),
               [VOCABULARY, NO_RULE, TEN_PERPLEXITY, CLOSED_FORM_MEMORY, STAND_IN, EPOCH]),
]


# ---- the mean B-F multipliers of Table 2 --------------------------------------------------------

KINDS = [  # label, optimizer, of image models
    ("SGD, image models", "sgd", True),
    ("SGD, language models", "sgd", False),
    ("Adam, image models", "adam", True),
    ("Adam, language models", "adam", False),
    ("Adam, all (printed: 1.39)", "adam", None),
]


def multipliers(cases):
    """The mean B-F multipliers of Table 2, published and here."""
    table = Table("multipliers", "B-F multipliers: updates of BCD-1/3 over full updates", "optimizer, networks", [
        Column("published", "Table 2", "mean", 2, RECOMPUTED),
        Column("trainings", "trainings", "here", 0, NONE),
        Column("training_loss", "to equal loss", "in training", 2, MEASURED),
        Column("validation_loss", "to equal loss", "in validation", 2, MEASURED)])
    for label, optimizer, images in KINDS:
        training, validation = compare.multipliers(cases, optimizer, images)
        table.row(label, published.mean_multiplier(optimizer, images), compare.mean(training)[2],
                  *(measures.mean_cell(values, compare.mean) for values in (training, validation)))
    table.note("Means over the trainings here in three submodels, on all of the data, with a full update of the same seed; "
               "of variants in phases, order or rate the first counts.  Spread: the standard deviation of a single "
               "training.  Adam includes AdamW.")
    table.note("BCD-1/3 updates a parameter once in three updates, so that short trainings, which are far from convergence, "
               "are expected to need about three times as many.  The published trainings were called converged.")
    table.note("The published average multiplier 1.39 is the mean over five Adam rows, of image models and of language "
               "models; the means of the two are given separately.")
    return table
