"""Table 2, validity: models trained by full update and by BCD-1/3."""
from dataclasses import replace

import comparison
import measures
from comparison import Comparison

INFERRED = ("The paper names CIFAR-10 for its ResNets; ResNet101's 70.9 % is most likely CIFAR-100 (inferred).")


def label(row):
    """"ResNet8 SGD, 1/3"."""
    return f"{row.row} {'SGD' if row.optimizer == 'sgd' else 'Adam'}, {'full' if row.submodels == 1 else '1/3'}"


def in_updates(measure):
    """Of language models the table counts iterations."""
    if measure.name == "trained":
        return replace(measure, below="updates", of=measures.column("steps"))
    if measure.name == "to_level":
        return replace(measure, below="updates", of=measures.column("steps_to_converge"), decimals=0)
    return measure


COMPARISONS = [
    Comparison(2, True, "table2_images", "Table 2, image models: full update and BCD-1/3", comparison.IMAGES,
               lambda training: training.is_bcd3, [comparison.NO_RULE, INFERRED, comparison.EPOCH], label),
    Comparison(2, False, "table2_language", "Table 2, language models: full update and BCD-1/3",
               [in_updates(measure) for measure in comparison.TEXT],
               lambda training: training.is_bcd3, [comparison.VOCABULARY, comparison.NO_RULE, comparison.STAND_IN], label),
]
