"""Tables of trainings: a column says what is measured of a training, or of a BCD training and the full update of the
same seed; a row is a method, over its seeds."""
import math
import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import compare
import curves
from study import Training
from tables import MEASURED, MIB, NONE, NUMBER, TEXT, Cell, Column, Table

# How a column is made of the values of the seeds.
SPREAD = "mean and standard deviation"
MEAN = "mean alone"
RATIO = "mean over that of the full update, in a paired table"
COUNT = "how many seeds have a value"
# Of a measure that gives (BCD, full):
DIFFERENCE = "mean of BCD less full, with the standard deviation of the differences"
LOW, HIGH = "lower end of the 95 % interval of that mean", "its upper end"
VERDICT = "BCD ahead, full ahead or undecided, by Welch's t-test and Holm's correction for all rows of the column"

TIMES_NOTE = (
    "Seconds are compared only where both trainings had the same processor or GPU and as many threads.")
RANKS_NOTE = (
    "Peaks of trainings over ranks (--pipeline) are sums over the ranks, which may have reached theirs at different times; "
    "seconds are compared only where --pipeline, --replicas and the number of ranks were the same.")
TEST_NOTE = (
    "Verdict: one is ahead when the means of the two differ beyond chance (5 %) by Welch's t-test, which takes the seeds "
    "as independent, after Holm's correction for all rows of the column; with fewer than three seeds there is no verdict.")


class Pair(NamedTuple):
    """A training, and the full update of the same seed (None: there is none)."""
    training: Training
    full: Training | None


@dataclass(frozen=True)
class Measure:
    """A column, see tables.Column; of: what is measured of a Pair, NaN when it does not apply; how: as above."""
    name: str
    head: str
    below: str
    decimals: int
    of: Callable
    how: str = SPREAD
    source: str = MEASURED

    def cell(self, pairs):
        """The cell of a method, from the pairs of its seeds."""
        if self.how == VERDICT:
            return None  # after all rows, see judge
        values = [self.of(pair) for pair in pairs]
        if self.how == RATIO:
            values = [quotient(value, self.of(Pair(pair.full, pair.full))) for value, pair in zip(values, pairs)]
        if self.how in (LOW, HIGH):
            difference = welch_of(values)
            return Cell(difference.low if self.how == LOW else difference.high, self.source)
        if self.how == DIFFERENCE:
            values = [bcd - full for bcd, full in values]
        mean, spread, count = compare.mean(values)
        if self.how == COUNT:
            return Cell(count, self.source)
        return Cell(mean, self.source, spread if self.how in (SPREAD, DIFFERENCE) else math.nan)


@dataclass
class MeasureTable:
    """name, title, notes: as in tables.Table; selects: which methods have a row; paired: only BCD has rows, and from
    seeds with a full update to compare with."""
    name: str
    title: str
    measures: list
    notes: list = field(default_factory=list)
    selects: Callable = lambda method: True
    paired: bool = False

    def empty(self):
        """The table without rows."""
        return Table(self.name, self.title, "training", [
            Column(m.name, m.head, m.below, m.decimals, NONE, TEXT if m.how == VERDICT else NUMBER) for m in self.measures])

    def pairs(self, method):
        found = [Pair(*pair) for pair in method.case.pairs(method)]
        return [pair for pair in found if pair.full is not None] if self.paired else found

    def cells(self, method):
        return [m.cell(self.pairs(method)) for m in self.measures]

    def make(self, cases):
        """The table of all methods that it is about."""
        methods = [method for method in cases.methods if self.selects(method) and
                   (not self.paired or method.first["submodels"] > 1 and self.pairs(method))]
        table = self.empty()
        for method in methods:
            table.row(method.label, *self.cells(method))
        self.judge(table, methods)
        for note in self.notes:
            table.note(note)
        if self.has_peaks and any(one.ranks for method in methods for pair in self.pairs(method) for one in pair if one):
            table.note(RANKS_NOTE)
        return table

    @property
    def has_peaks(self):
        return any(measure.of in (peak, trained_memory) for measure in self.measures)

    def judge(self, table, methods):
        """Fills the columns of verdicts, of which each is corrected for the number of its rows."""
        for place, measure in enumerate(self.measures):
            if measure.how != VERDICT:
                continue
            found = [welch_of([measure.of(pair) for pair in self.pairs(method)]) for method in methods]
            adjusted = compare.holm([difference.p if difference.seeds >= compare.TESTED else math.nan for difference in found])
            for row, method, difference, p in zip(table.rows, methods, found, adjusted):
                row[place] = Cell(compare.verdict(difference.value, p, method.first.is_images))


def welch_of(values):
    """Welch's test of (BCD, full) values, of which those count that are known of both."""
    known = [pair for pair in values if all(map(math.isfinite, pair))]
    return compare.welch([bcd for bcd, _ in known], [full for _, full in known])


def mean_cell(values, mean=compare.mean_of_all):
    """Of measured values: their mean, by a function of compare.py, and the standard deviation of one."""
    value, spread, _ = mean(values)
    return Cell(value, MEASURED, spread)


def quotient(a, b):
    return a / b if b else math.nan


# ---- what is measured ---------------------------------------------------------------------------

def column(name, scale=1.0):
    """The value of a column of the study."""
    return lambda pair: pair.training[name] * scale


def is_bcd(pair):
    return pair.training["submodels"] > 1


def of_bcd(name):
    """The value of a column, NaN for full updates."""
    return lambda pair: pair.training[name] if is_bcd(pair) else math.nan


def one(pair):
    return 1.0


def score(pair):
    """Per cent correct, or perplexity."""
    return 100 * pair.training["accuracy"] if pair.training.is_images else pair.training["perplexity"]


def per_update(training, axis):
    return quotient(curves.total_cost(training, axis), curves.total_cost(training, curves.UPDATES))


def time_ratio(pair):
    """The time of an update over that of a full one; NaN when times are not comparable."""
    if pair.full is None or not pair.training.times_comparable(pair.full):
        return math.nan
    return quotient(per_update(pair.training, curves.SECONDS), per_update(pair.full, curves.SECONDS))


peak, trained_memory = operator.attrgetter("training.peak"), operator.attrgetter("training.trained_memory")
closed_form = column("closed_form", 1 / MIB)
multiplier, valid_multiplier = of_bcd("multiplier"), of_bcd("valid_multiplier")
SEEDS = Measure("seeds", "seeds", "", 0, one, COUNT, NONE)
