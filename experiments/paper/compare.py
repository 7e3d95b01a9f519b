"""Trainings compared: means over seeds, B-F multipliers of pairs, tests and intervals (scipy)."""
import math
from dataclasses import dataclass

import numpy as np
from scipy import stats

import curves
from cases import Cases
from errors import Refused

NAN = math.nan
CHANCE = 0.05  # of a verdict that is wrong, and of an interval that misses
TESTED = 3  # seeds of each side that a verdict takes: of two, hardly any difference is beyond chance


# ---- means --------------------------------------------------------------------------------------

def mean(values):
    """(mean, standard deviation of a single value, count) of the finite values; NaN where there are too few."""
    finite = np.array([value for value in values if math.isfinite(value)])
    return (float(finite.mean()) if len(finite) else NAN, float(finite.std(ddof=1)) if len(finite) > 1 else NAN,
            len(finite))


def mean_of_all(values):
    """The same of values of which each counts: NaN where one of them is."""
    values = list(values)
    return mean(values) if all(map(math.isfinite, values)) else (NAN, NAN, len(values))


# ---- tests --------------------------------------------------------------------------------------

@dataclass(frozen=True)
class Difference:
    """The difference of two means (the first less the second), its interval, and the probability of one as
    large by chance; NaN where one of the two has less than two values.  seeds: the smaller number of values."""
    value: float
    low: float
    high: float
    p: float
    seeds: int


def welch(first, second):
    """Welch's t-test (1947): unpaired, since trainings of the same seed are as different as others; the variances may
    differ.  (scipy 1.10, which Debian 12 has, gives it no interval.)"""
    seeds = min(len(first), len(second))
    value = float(np.mean(first) - np.mean(second)) if seeds else NAN
    if seeds < 2:
        return Difference(value, NAN, NAN, NAN, seeds)
    parts = [np.var(sample, ddof=1) / len(sample) for sample in (first, second)]
    error = math.sqrt(sum(parts))
    if error == 0:
        return Difference(value, value, value, 0.0 if value else 1.0, seeds)
    freedom = sum(parts)**2 / sum(part**2 / (len(sample) - 1) for part, sample in zip(parts, (first, second)))
    half = float(stats.t.ppf(1 - CHANCE / 2, freedom)) * error
    return Difference(value, value - half, value + half, float(2 * stats.t.sf(abs(value) / error, freedom)), seeds)


def holm(probabilities, planned=0):
    """Holm's correction (1979) for that many tests, or for as many as were planned: the adjusted probabilities, in the
    same order; NaN are no tests."""
    tests = sorted((p, number) for number, p in enumerate(probabilities) if not math.isnan(p))
    count = max(len(tests), planned - (len(probabilities) - len(tests)))
    adjusted, last = [NAN] * len(probabilities), 0.0
    for rank, (p, number) in enumerate(tests):
        last = max(last, min(1.0, (count - rank) * p))
        adjusted[number] = last
    return adjusted


def verdict(difference, adjusted, more_is_better):
    """What a difference of BCD less full says, with its probability after Holm's correction; "" where it was not tested."""
    if math.isnan(adjusted):
        return ""
    if adjusted >= CHANCE:
        return "undecided"
    return "BCD ahead" if (difference > 0) == more_is_better else "full ahead"


# ---- B-F multipliers ----------------------------------------------------------------------------

def converge(trainings):
    """Fills what is computed of trainings: train_loss and plateau_steps ... end_spread of all; and level,
    steps_to_converge, epochs_to_converge, multiplier, and the same by validation loss, of every BCD training that can
    be compared with a full update before the end of both.  A full update has multiplier 1 and no level; it reached the
    level of a BCD training after that one's steps_to_converge / multiplier updates."""
    for training in trainings:
        training.row.update(alone(training))
    for method in Cases(trainings).methods:
        if method.first["submodels"] > 1:
            for training, full in method.case.pairs(method):
                if full is not None and curves.comparable(training, full):
                    training.row.update(paired(training, full))


def alone(training):
    row = dict.fromkeys(["level", "steps_to_converge", "epochs_to_converge", "valid_level", "valid_steps", "plateau_steps",
                         "plateau_epochs", "plateau_score", "plateau_spread"], NAN)
    row |= dict.fromkeys(["multiplier", "valid_multiplier"], 1.0 if training["submodels"] == 1 else NAN)
    at_the_end = "train_loss", "end_score", "end_spread"
    row |= zip(at_the_end, [NAN] * 3 if training.has_diverged else
               [curves.end_train_loss(training), *curves.mean_score(training)])
    at = curves.plateau(training)
    if at is not None:
        row["plateau_steps"] = float(training.evaluation["step"][at])
        row["plateau_epochs"] = curves.epochs_at(training, row["plateau_steps"])
        row["plateau_score"], row["plateau_spread"] = curves.mean_score(training, row["plateau_steps"])
    return row


def paired(training, full):
    row = dict(zip(["level", "steps_to_converge", "multiplier"], curves.training_multiplier(training, full)))
    row |= zip(["valid_level", "valid_steps", "valid_multiplier"], curves.validation_multiplier(training, full))
    row["epochs_to_converge"] = curves.epochs_at(training, row["steps_to_converge"])
    return row


def multipliers(cases, optimizer, images=None):
    """The multipliers by training and by validation loss of the BCD-1/3 trainings on all of the data with an optimizer
    of that name; "adam" includes adamw, because the paper's Adam may be either.  Of image models (images=True), language
    models (False), or both."""
    found = [training for method in cases.methods for training in method.trainings
             if method.first.is_bcd3 and method.is_plain and method.first["optimizer"].startswith(optimizer)
             and images in (None, method.first.is_images)]
    return [t["multiplier"] for t in found], [t["valid_multiplier"] for t in found]


def measured_multiplier(trainings, what):
    """The mean multiplier of the first kind that was trained: language models with Adam, which are what is priced,
    those with SGD, image models with Adam, with SGD.  what: names the trainings in a refusal."""
    converge(trainings)
    cases = Cases(trainings)
    for images in (False, True):
        for optimizer in ("adam", "sgd"):
            value, _, count = mean(multipliers(cases, optimizer, images)[0])
            if count:
                return value
    raise Refused(f"{what}: no BCD-1/3 on all of the data with a full update of its seed")
