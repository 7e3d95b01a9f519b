"""The trainings of protocol.md by its rules: the score of a training, the best rate of each method, and the answers about
BCD and the full update.  Trainings that began before the protocol was registered have no rows."""
import math
import os
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import compare
import curves
import trainings
from cases import Method, is_older, own_name, partner
from measures import mean_cell
from tables import FREE, MEASURED, NONE, TEXT, Column, Table

RULES = "By the rules of the second trainings (experiments/paper/protocol.md)"


def methods(cases):
    """Those that were registered."""
    return [method for method in cases.methods if method.is_registered]


# ---- scores -------------------------------------------------------------------------------------

@dataclass(frozen=True)
class Score:
    """margin: by how much BCD may be worse and still be called as good, a part of the full update's score if
    `relative`; more_is_better: of accuracies."""
    margin: float
    relative: bool
    more_is_better: bool


ACCURACY = Score(0.5, False, True)  # in per cent
PERPLEXITY = Score(0.01, True, False)
LOSS = Score(0.01, False, False)  # of fine-tuning


def kind_of(training):
    return ACCURACY if training.is_images else LOSS if training.setting("init") else PERPLEXITY


def evaluated(training):
    return training.evaluation["loss"] if kind_of(training) is LOSS else curves.scores(training)


def at_the_end(training):
    """At a constant rate the mean of the last evaluations, with a cosine the last one; NaN for a training that diverged,
    has not finished, or has too few evaluations."""
    scores = evaluated(training)
    if not training.is_finished or not len(scores):
        return math.nan
    return curves.mean_of_last(training, scores)[0] if curves.may_be_cut(training) else float(scores[-1])


def end_score(training):
    """The same for what began after the protocol was registered; of what is older, always the mean."""
    return training["end_score"] if is_older(training) or curves.may_be_cut(training) else at_the_end(training)


def at_its_best(training):
    """The best mean of consecutive evaluations, which stands for early stopping; NaN as at the end."""
    means = curves.trailing(evaluated(training), curves.MEAN)
    if not training.is_finished or not len(means):
        return math.nan
    return float(means.max() if kind_of(training).more_is_better else means.min())


def mean_over_seeds(score, method):
    """NaN where a seed has no score."""
    return compare.mean_of_all(map(score, method.trainings))[0]


def is_without_augmentation(training):
    return training.is_images and not training.setting("augment")


# ---- the best rates -----------------------------------------------------------------------------

def grids(cases):
    """The methods of each case that differ in the rate alone, by rising rate: those with two rates or more."""
    for case in cases.cases:
        found = {}
        for method in methods(case):
            found.setdefault(method.named(without=("lr",)), []).append(method)
        for grid in found.values():
            if len(grid) > 1:
                yield sorted(grid, key=lambda method: method.first.setting("lr"))


def best_rates(cases):
    """The table of the best rates."""
    table = Table("rates", "The best learning rate of each method", "training", [
        Column("tried", "rates", "tried", kind=TEXT), Column("best", "best", "rate", FREE, NONE),
        Column("score", "score", "", 3, MEASURED), Column("lower", "score", "next lower", 3, MEASURED),
        Column("higher", "score", "next higher", 3, MEASURED), Column("place", "in the grid", kind=TEXT)])
    for grid in grids(cases):
        first = grid[0].first
        rates = [method.first.setting("lr") for method in grid]
        scores = [mean_over_seeds(at_the_end, method) for method in grid]
        tried = " ".join(f"{rate:g}" + (" (diverged)" if method.diverged else "") for rate, method in zip(rates, grid))
        finite = [number for number, score in enumerate(scores) if math.isfinite(score)]
        if not finite:
            table.row(grid_name(grid[0]), tried)
            continue
        best = (max if kind_of(first).more_is_better else min)(finite, key=lambda number: scores[number])
        table.row(grid_name(grid[0]), tried, rates[best], scores[best],
                  scores[best - 1] if best else None, scores[best + 1] if best + 1 < len(grid) else None,
                  "the lowest" if best == 0 else "the highest" if best + 1 == len(grid) else "inside")
    table.note(RULES + ": scores at a constant rate are means of the last five evaluations, with a cosine the last one; per "
               "cent, perplexity, or the loss of fine-tuning.  A best rate that is the lowest or the highest asks for one "
               "beyond it.  An empty score next to it: it diverged, or there is none.")
    return table


def grid_name(method):
    return f"{method.case.name} {method.named(without=('lr',))}"


# ---- the answers --------------------------------------------------------------------------------

READINGS = [("", at_the_end, lambda training: True), (", at its best", at_its_best, is_without_augmentation)]


def tuning_of(training):
    """What trainings have in common that fine-tune the same model on the same data, by whatever method."""
    return (training["model"], training["steps"], training["batch"], training["checksum"], training.setting("context"),
            training.setting("eval-samples"), *(own_name(training.setting(flag)) for flag in ("init", "valid")))


def full_update_of(cases, method):
    """The full update that a method is compared with: in fine-tuning that of AdamW; None when there is none, or it is
    the method itself."""
    first = method.first
    if first.setting("init"):
        found = partner(method, [other for other in cases.methods if other.first.is_full
                                 and other.first["optimizer"] == "adamw" and tuning_of(other.first) == tuning_of(first)])
        return None if found is method else found
    return method.case.full_update(method) if first["submodels"] > 1 else None


@dataclass(frozen=True)
class Comparison:
    """reading: its name, and the score of a training."""
    method: Method
    full: Method
    reading: str
    score: Callable

    @property
    def kind(self):
        return kind_of(self.method.first)

    @property
    def difference(self):
        """Positive where the method is better; NaN where a seed has no score."""
        better, worse = (self.method, self.full) if self.kind.more_is_better else (self.full, self.method)
        return compare.welch(*([self.score(training) for training in side.trainings] for side in (better, worse)))

    @property
    def margin(self):
        return self.kind.margin * (mean_over_seeds(self.score, self.full) if self.kind.relative else 1)


def answer(difference, margin, adjusted):
    """Whether a method is as good as the full update, by the interval of its difference and the corrected p."""
    if math.isnan(adjusted):
        return ""
    as_good, worse = difference.low > -margin, difference.high < 0 and adjusted < compare.CHANCE
    if as_good and worse:
        return "worse by less than the margin"
    return "yes" if as_good else "no" if worse else "undecided"


def comparisons(cases):
    for method in methods(cases):
        full = full_update_of(cases, method)
        for reading, score, applies in READINGS:
            if full is not None and applies(method.first):
                yield Comparison(method, full, reading, score)


def group_of(training):
    """The experiment that trained it; of what has none, or is older, the name of its file."""
    return training["experiment"] or os.path.splitext(os.path.basename(training.file))[0]


def planned(group):
    """How many comparisons were registered for a group of the protocol; None of others."""
    return trainings.experiments().get(group, {}).get("comparisons")


def by_group(cases):
    """The comparisons that have two seeds or more on both sides, by their groups; not those of a group for which none
    were registered: it has no answers."""
    groups = {}
    for made in comparisons(cases):
        group = group_of(made.method.first)
        if made.difference.seeds > 1 and planned(group) != 0:
            groups.setdefault(group, []).append(made)
    return groups


def judged(cases):
    """(comparison, difference, p by Holm's correction, answer) of each that has two seeds or more on both sides.
    Those of one experiment are corrected together, for all that were registered: it is a group of the protocol, or what
    was added to it."""
    return [(made, made.difference, p, answer(made.difference, made.margin, p)) for group, together in by_group(cases).items()
            for made, p in zip(together, compare.holm([made.difference.p for made in together], planned(group) or 0))]


def missing(cases):
    """Notes on comparisons that were registered, and are not there."""
    for group, together in by_group(cases).items():
        if len(together) < (planned(group) or 0):
            yield f"{len(together)} of the {planned(group)} comparisons that were registered are here; p is corrected for all of them."
    alone = [method.label for method in methods(cases) if method.first["submodels"] > 1 and not full_update_of(cases, method)]
    if alone:
        yield f"Without a full update to compare with: {', '.join(alone)}."


def answers(cases):
    """The table of the answers: of comparisons with two seeds or more on both sides."""
    table = Table("answers", "As good as the full update?", "training", [
        Column("seeds", "seeds", "", 0), Column("score", "score", "", 3, MEASURED),
        Column("full", "score", "full update", 3, MEASURED), Column("difference", "better by", "", 3, MEASURED),
        Column("low", "better by", "95 %, from", 3, MEASURED), Column("high", "better by", "95 %, to", 3, MEASURED),
        Column("margin", "margin", "", 3, NONE), Column("p", "p", "corrected", 3, MEASURED),
        Column("answer", "as good?", kind=TEXT)])
    for made, difference, p, is_as_good in judged(cases):
        table.row(made.method.label + made.reading, float(difference.seeds),
                  *(mean_cell(map(made.score, side.trainings)) for side in (made.method, made.full)),
                  difference.value, difference.low, difference.high, made.margin, p,
                  is_as_good or (f"full update{made.full.diverged}" if made.full.diverged else ""))
    table.note(RULES + ": means over seeds; the difference with its 95 % interval by Welch's t-test, positive where the method "
               "is better; p by Holm's correction for the comparisons of each group.  \"yes\": the interval lies above minus the "
               "margin; \"no\": it lies below zero, and p is below 0.05; \"undecided\": neither.  Where a seed diverged "
               "there is no answer.")
    for note in missing(cases):
        table.note(note)
    return table


# ---- plateaus -----------------------------------------------------------------------------------

NEAR, CLIMBS = 0.2, 0.3  # points of accuracy


def updates_to_its_best(training):
    """The updates to the first mean of consecutive evaluations that is near its best; NaN for one that diverged."""
    if math.isnan(at_the_end(training)):
        return math.nan
    means = curves.trailing(evaluated(training), curves.MEAN)
    return float(training.evaluation["step"][int(np.argmax(means >= means.max() - NEAR - curves.ROUNDING)) + curves.MEAN - 1])


def last_gain(training):
    """What the mean of the last fifth of the evaluations is above that of the fifth before; NaN as above."""
    scores = evaluated(training)
    fifth = len(scores) // 5
    if math.isnan(at_the_end(training)):
        return math.nan
    return float(scores[-fifth:].mean() - scores[-2 * fifth:-fifth].mean())


def multiplier_to_its_best(method, full):
    """The updates of a method to its best over those of the full update to its own, means over seeds."""
    return mean_over_seeds(updates_to_its_best, method) / mean_over_seeds(updates_to_its_best, full) if full else math.nan


def has_plateau(method):
    first = method.first
    return method.is_registered and first.is_images and curves.may_be_cut(first) and any(
        len(evaluated(training)) >= 5 for training in method.trainings)


def plateaus(cases):
    """The table of plateaus of image trainings at a constant rate."""
    table = Table("plateaus", "To its own plateau, and whether that stays", "training", [
        Column("seeds", "seeds", "", 0), Column("updates", "updates", "to its best", 0, MEASURED),
        Column("multiplier", "B-F", "own plateau", 2, MEASURED), Column("gain", "last fifth", "points", 2, MEASURED),
        Column("stays", "plateau", kind=TEXT)])
    for method in filter(has_plateau, cases.methods):
        updates, gain = (mean_cell(map(of, method.trainings)) for of in (updates_to_its_best, last_gain))
        table.row(method.label, float(len(method.trainings)), updates,
                  multiplier_to_its_best(method, full_update_of(cases, method)), gain,
                  "" if math.isnan(gain.value) else "stays" if gain.value < CLIMBS else "still climbing")
    table.note(RULES + f": updates to the first mean of five evaluations that is within {NEAR} points of its best; B-F: over "
               "those of the full update, means over seeds.  Last fifth: the mean of the last fifth of the evaluations less "
               f"that of the fifth before; below {CLIMBS} points the plateau stays, also where it falls.")
    return table
