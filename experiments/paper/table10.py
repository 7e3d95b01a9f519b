"""Table 10, compression of the data: each submodel of a ResNet-14 sees a part of it."""
import comparison
from comparison import Comparison

COMPARISONS = [
    Comparison(10, True, "table10", "Table 10: ResNet-14 by part of the data and of the parameters", comparison.IMAGES,
               lambda training: training.setting("fraction") < 1,
               [comparison.NO_RULE, comparison.CLOSED_FORM_MEMORY, comparison.EPOCH]),
]
