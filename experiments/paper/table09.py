"""Table 9, compression of the data: each submodel of a GPT-2 sees a part of it."""
import comparison
from comparison import Comparison

COMPARISONS = [
    Comparison(9, False, "table9", "Table 9: GPT-2 by part of the data and of the parameters", comparison.TEXT,
               lambda training: training.setting("fraction") < 1,
               [comparison.VOCABULARY, comparison.NO_RULE, comparison.TEN_PERPLEXITY, comparison.CLOSED_FORM_MEMORY,
                comparison.STAND_IN, comparison.EPOCH]),
]
