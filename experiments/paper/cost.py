"""`bcd experiment cost`: what a training costs by the published times and prices."""
import math

import compare
import cost_tables
import published
import study
from errors import Refused


def multiplier(text):
    """--multiplier, a B-F multiplier: a number such as "2.5", or files of results ("validity.h5",
    "full/run.h5,bcd/run.h5").  Returns it, NaN for "", and whether it comes from files."""
    if not text:
        return math.nan, False
    try:
        value = float(text)
    except ValueError:
        return compare.measured_multiplier(study.read(text.split(",")), f"--multiplier {text}"), True
    if not 0 < value < math.inf:
        raise Refused(f"--multiplier {text}: it takes a number above 0, or files of results")
    return value, False


def prices(text):
    """--price, as in rtx4090=0.31,a100=1.12: dollars per hour of the GPUs that it names, of those that have a price in
    section 4.4.1; None for ""."""
    if not text:
        return None
    known = dict.fromkeys(published.section_prices())
    for item in text.split(","):
        gpu, _, price = item.partition("=")
        if gpu not in known:
            raise Refused(f"--price {text}: \"{gpu}\" has no price in section 4.4.1, which has {', '.join(known)}")
        if known[gpu] is not None:
            raise Refused(f"--price: {gpu} is given twice")
        try:
            known[gpu] = float(price)
        except ValueError:
            known[gpu] = math.nan
        if not 0 < known[gpu] < math.inf:
            raise Refused(f"--price {item}: it takes GPU=DOLLARS, more than 0 per hour")
    return {gpu: price for gpu, price in known.items() if price}


def make(options):
    ours, is_measured = multiplier(options.multiplier)
    multipliers = cost_tables.Multipliers(ours=ours, is_measured=is_measured)
    return [cost_tables.cards(), *cost_tables.all_reductions(multipliers), cost_tables.claims(multipliers),
            cost_tables.speedups(), cost_tables.sentences(),
            cost_tables.prices(multipliers.published["tables"], prices(options.price))], {}
