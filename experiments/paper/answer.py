"""Does BCD match the full update?  What it costs, and its score at equal updates, operations, seconds and memory."""
import math

import curves
import measures
from cases import alike_key, partner
from measures import DIFFERENCE, MEAN, RATIO, SEEDS, VERDICT, Measure, MeasureTable, Pair
from tables import NONE

UNKNOWN = math.nan, math.nan


def scores_within(pair, axis):
    """The scores (BCD, full) when each has spent as much as the one of the two that spends less; NaN when that is not
    known of both."""
    training, full = pair
    totals = [curves.total_cost(one, axis) for one in pair]
    budget = min(totals)
    if training.has_diverged or full.has_diverged or not all(map(math.isfinite, totals)) or (
            axis == curves.SECONDS and not training.times_comparable(full)):
        return UNKNOWN
    cut = [one for one, total in zip(pair, totals) if total > budget]
    if not all(map(curves.may_be_cut, cut)):
        return UNKNOWN
    return tuple(curves.mean_score_at(one, curves.updates_within(one, axis, budget), 1) for one in pair)


def at_equal(axis):
    return lambda pair: scores_within(pair, axis)


def find_fitting(cases, method):
    """The full update with the highest peak memory that is not above that of a method, among all networks that were
    trained alike; None when there is none."""
    alike = alike_key(method.first)
    fitting = [other for other in cases.methods if other.first.is_full
               and 0 < other.first["peak_total"] <= method.first["peak_total"] and alike_key(other.first) == alike]
    largest = max((other.first["peak_total"] for other in fitting), default=0)
    return partner(method, [other for other in fitting if other.first["peak_total"] == largest])


def at_equal_memory(cases):
    small = {training: find_fitting(cases, method) for method in cases.methods for training in method.trainings}

    def scores(pair):
        full = small[pair.training] and small[pair.training].by_seed.get(pair.training["seed"])
        return scores_within(Pair(pair.training, full), curves.UPDATES) if full is not None else UNKNOWN
    return scores


def table(cases):
    """The table that compares each BCD method with the full updates of the same seeds; of a single method the
    title says what it costs."""
    equal = {axis: at_equal(axis) for axis in (curves.UPDATES, curves.OPERATIONS, curves.SECONDS)}
    equal["memory"] = at_equal_memory(cases)
    found = MeasureTable(
        "answer", "Does BCD match the full update?", [
            SEEDS,
            Measure("memory", "memory", "/ full", 2, measures.peak, RATIO),
            Measure("time", "seconds", "/ full, an update", 2, measures.time_ratio),
            Measure("updates", "updates", "/ full", 2, measures.multiplier),
            Measure("bcd", "score", "BCD", 2, lambda pair: equal[curves.UPDATES](pair)[0], MEAN),
            Measure("full", "score", "full", 2, lambda pair: equal[curves.UPDATES](pair)[1], MEAN),
            *(measure for name, of in equal.items() for measure in (
                Measure(f"equal_{name}", f"equal {name}", "BCD - full", 2, of, DIFFERENCE),
                Measure(f"{name}_verdict", f"equal {name}", "verdict", 0, of, VERDICT, NONE))),
        ],
        ["Memory: the peak of all roles.  Updates: to the same smoothed training loss.  Equal memory: at equal updates, "
         "next to the full update of another network: the largest here whose peak is not above BCD's.",
         "Score: accuracy in %, or perplexity, on the validation split after as many updates as the shorter of the two "
         "had; differences also after as many operations or seconds as the one that took less.  Interpolated between "
         "evaluations; not the best until then.  Operations are counted from shapes.  A training with a cosine is "
         "compared only as a whole.",
         measures.TEST_NOTE, measures.TIMES_NOTE],
        paired=True).make(cases)
    if len(found.rows) == 1:
        found.title = sentence(found)
    return found


def sentence(table):
    """"resnet8 BCD-1/3: 0.84 x memory, 0.59 x time per update, 4.32 x updates"."""
    label, = table.labels
    parts = [(table.value(label, name), words) for name, words in
             [("memory", "memory"), ("time", "time per update"), ("updates", "updates")]]
    return label + ": " + ", ".join(f"{value:.2f} x {words}" for value, words in parts if not math.isnan(value))
