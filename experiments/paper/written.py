"""Numbers as the documents have them: means, spans, intervals and probabilities, as text."""
import math

import compare
import tables


def mean(values, decimals=2, sign=""):
    """The mean over seeds and their standard deviation: "84.29 ± 0.44".  NaN has no place in it, which is said:
    "1.43 ± 0.36 (2 of 3)"; of nothing: "–"."""
    value, spread, known = compare.mean(values)
    if not known:
        return "–"
    text = f"{value:{sign}.{decimals}f}" + (f" ± {spread:.{decimals}f}" if known > 1 else "")
    return text if known == len(values) else f"{text} ({known} of {len(values)})"


def span(values, decimals=2, sign=""):
    """The lowest and the highest value: "0.63 to 0.74"; none may be missing."""
    if any(map(math.isnan, values)):
        raise ValueError(f"no span of {values}")
    return " to ".join(tables.format_number(value, decimals, sign) for value in (min(values), max(values)))


def bounds(low, high, decimals=2, sign="+"):
    """Of an interval.  A bound that rounds to zero keeps its sign, which says on which side the interval ends."""
    return f"{low:{sign}.{decimals}f} to {high:{sign}.{decimals}f}"


def with_interval(value, low, high, decimals=2, sign="+"):
    """A difference and its interval: "+1.10 (+0.51 to +1.70)"."""
    return f"{value:{sign}.{decimals}f} ({bounds(low, high, decimals, sign)})"


def p_value(p):
    if p < 0.0005:
        return "< 0.001"
    return f"{p:.3f}" if p < 0.0995 else f"{p:.2f}"


def listed(values):
    return ", ".join(f"{value:.2f}" for value in values)
