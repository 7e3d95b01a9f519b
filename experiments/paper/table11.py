"""Table 11, UFP: a GPT-2 in one to four submodels."""
import comparison
from comparison import Comparison

COMPARISONS = [
    Comparison(11, False, "table11", "Table 11: GPT-2 in one to four submodels", comparison.TEXT,
               lambda training: training["submodels"] in (2, 4),
               [comparison.VOCABULARY, comparison.NO_RULE, comparison.TEN_PERPLEXITY, comparison.CLOSED_FORM_MEMORY,
                comparison.STAND_IN, comparison.EPOCH]),
]
