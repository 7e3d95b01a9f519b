"""The trainings of the record by name, paired: scores, gaps against budget, multipliers, and what three seeds decide.

A score is the accuracy in per cent or the perplexity, on data not trained on, as the mean of curves.MEAN evaluations;
the last of them is the one that it belongs to."""
import functools
import itertools
import math
import pathlib

import numpy as np
from scipy import stats

import compare
import curves
import registered
import study
from cases import Cases

RESULTS = pathlib.Path(__file__).resolve().parents[1] / "results"
LONG, PLAIN_IMAGES, PILOT = ("converged.h5",), ("no-augmentation.h5",), ("converged-pilot.h5",)
# A network of the record: its name in tables, its files and its case in them.
NETWORKS = {
    "half10": ("ResNet-8x8, 10,000 images", LONG, "resnet-8x8 cifar10[:10000] sgd"),
    "half10-cosine": ("the same, cosine", LONG, "resnet-8x8 cifar10[:10000] sgd cosine"),
    "half10-changed": ("the same, with changes", (*LONG, "remedies.h5"), "resnet-8x8 cifar10[:10000] sgd cosine"),
    "half10-adam": ("the same, Adam", LONG, "resnet-8x8 cifar10[:10000] adam"),
    "half": ("ResNet-8x8, all images", LONG, "resnet-8x8 cifar10 sgd"),
    "half-longest": ("ResNet-8x8, all images, longest", ("plateau.h5",), "resnet-8x8 cifar10 sgd"),
    "half-longest-cosine": ("ResNet-8x8, longest, cosine", ("plateau.h5",), "resnet-8x8 cifar10 sgd cosine"),
    "resnet8": ("ResNet-8, all images", LONG, "resnet8 cifar10 sgd"),
    "resnet8-plain": ("ResNet-8, no augmentation", ("resnet8-cifar10-full.h5", "resnet8-cifar10-bcd3.h5"),
                      "resnet8 cifar10 sgd"),
    "half-plain": ("ResNet-8x8, no augmentation", PLAIN_IMAGES, "resnet-8x8 cifar10 sgd"),
    "half-plain-adam": ("the same, Adam", PLAIN_IMAGES, "resnet-8x8 cifar10 adam"),
    "resnet14": ("ResNet-14, all images", LONG, "resnet14 cifar10 sgd"),
    "resnet20": ("ResNet-20, all images", LONG, "resnet20 cifar10 sgd"),
    "gpt": ("GPT 4x128", LONG, "gpt-4x128 wikitext2:2048 adam"),
    "gpt-cosine": ("GPT 4x128, cosine", LONG, "gpt-4x128 wikitext2:2048 adam cosine"),
    "gpt8": ("GPT 4x128, 8 epochs", ("converged-gpt-8-epochs.h5",), "gpt-4x128 wikitext2:2048 adam"),
    "gpt4": ("GPT 4x128, 4 epochs", ("remedies.h5",), "gpt-4x128 wikitext2:2048 adam"),
    "pilot-half": ("ResNet-8x8, SGD", PILOT, "resnet-8x8 cifar10 sgd"),
    "pilot-half-adam": ("ResNet-8x8, Adam", PILOT, "resnet-8x8 cifar10 adam"),
    "pilot-resnet8": ("ResNet-8, SGD", PILOT, "resnet8 cifar10 sgd"),
    "pilot-gpt": ("GPT, Adam", PILOT, "gpt-4x128 wikitext2:2048 adam"),
}


# ---- trainings ----------------------------------------------------------------------------------

@functools.cache
def trainings(*names):
    """The trainings of files of results, with what follows from their curves."""
    found = study.read([str(RESULTS / name) for name in names])
    compare.converge(found)
    return found


@functools.cache
def cases(*names):
    """The cases of files of results, by name.  What a method is called depends on the others of its case, so a file
    alone and the same file among others may call it differently."""
    return {case.name: case for case in Cases(trainings(*names)).cases}


def case(network):
    _, files, name = NETWORKS[network]
    return cases(*files)[name]


@functools.cache
def find(network, method):
    """A cases.Method by its name in its case: "full", "1/3 x.9", "BCD-1/3 every 2e", "BCD-1/3 always-active ends".  Where
    no other differs in its phases alone, it may be named without these."""
    methods = case(network).methods
    found = [each for each in methods if method == each.name] or [
        each for each in methods if method == each.named(without={"switch-every"})]
    if len(found) != 1:
        raise KeyError(f"{network}: {len(found)} methods {method}")
    return found[0]


# BCD of group 2 at a constant rate, as far as it is complete, in words; its names depend on the others of their case.
LONGEST_THIRDS = {"BCD-1/3": "phases of an epoch"}
LONGEST = "half-longest", next(iter(LONGEST_THIRDS))


def thirds_of(network):
    """The name of BCD-1/3 there, with phases of 40 updates where the first trainings have others too."""
    return "BCD-1/3 every 40" if network in ("half", "half10") else dict([LONGEST]).get(network, "BCD-1/3")


def score_at(training, part=1.0):
    """The score after a part of a training, between two evaluations interpolated; NaN before the first mean, of a part
    of a cosine, and of a training that diverged."""
    if not training.is_finished or part < 1 and not curves.may_be_cut(training):
        return math.nan
    return registered.end_score(training) if part == 1 else curves.mean_score_at(training, part * training["steps"])


def scores(network, method, part=1.0):
    return [score_at(each, part) for each in find(network, method).trainings]


def pairs(network, method, full=None):
    """The trainings of BCD and of the full update, of that network or of another one, that have the same seed."""
    bcd, full = find(network, method).by_seed, find(full or network, "full").by_seed
    return [(bcd[seed], full[seed]) for seed in sorted(set(bcd) & set(full))]


# ---- budgets ------------------------------------------------------------------------------------

def gaps(network, method, part=1.0, full=None):
    """BCD - full for each seed, after the same part of both trainings."""
    return [score_at(bcd, part) - score_at(other, part) for bcd, other in pairs(network, method, full)]


def behind(network, method):
    """For each seed that has both scores whether BCD ends at a worse one."""
    return [(gap < 0) == bcd.is_images for gap, (bcd, _) in zip(gaps(network, method), pairs(network, method))
            if math.isfinite(gap)]


def ends_apart(network, method, other, other_method):
    """What a method of one network ends above one of another, in the mean of the seeds."""
    first, second = (float(np.mean(scores(*what))) for what in ((network, method), (other, other_method)))
    return first - second


# ---- multipliers --------------------------------------------------------------------------------

def same_training_loss(bcd, full):
    return bcd["multiplier"]


def gain(training, part=None):
    """What a training gains to its end, after a part of it, or after its plateau; NaN with a cosine, of which it is the
    decay."""
    if not curves.may_be_cut(training):
        return math.nan
    return score_at(training) - (training["plateau_score"] if part is None else score_at(training, part))


def multipliers(network, method, rule, every_pair=False):
    """A rule's multiplier for each seed, or for each training of BCD with each full update; NaN where it gives none, or
    the two can be compared at their ends only."""
    found = (itertools.product(find(network, method).trainings, find(network, "full").trainings) if every_pair
             else pairs(network, method))
    return [rule(bcd, full) if curves.comparable(bcd, full) else math.nan for bcd, full in found]


# ---- what the seeds decide ----------------------------------------------------------------------

def compared(network, method, other="full", part=1.0, other_part=1.0):
    """Welch's test of the scores of a method and of another one, after parts of their trainings."""
    return compare.welch(scores(network, method, part), scores(network, other, other_part))


# Every comparison with three seeds, and with fewer.
THREE_SEEDS = [
    ("resnet8", "BCD-1/3"), ("half", "BCD-1/3 every 40"), ("half", "BCD-1/3 every 1e"), ("half", "BCD-1/3 every auto"),
    ("half", "1/3 x.9"), ("half", "1/3 x.3"), ("half10", "BCD-1/3 every 40"), ("half10", "BCD-1/3 every 2e"),
    ("half10", "1/3 x.9"), ("half10", "1/3 x.3"), ("half10-cosine", "BCD-1/3"), ("half10-adam", "BCD-1/3")]
FEWER_SEEDS = [("gpt", "BCD-1/2"), ("gpt", "BCD-1/3"), ("gpt", "BCD-1/4"), ("gpt", "1/3 x.9"),
               ("gpt-cosine", "BCD-1/3"), ("resnet14", "BCD-1/3"), ("resnet20", "BCD-1/3")]
# Groups 2 and 5 of the second trainings, with three seeds, whose comparisons are corrected by group.
SECOND_TRAININGS = [*(("half-longest", method) for method in LONGEST_THIRDS), ("half-longest-cosine", "BCD-1/3"),
                    ("half-plain", "BCD-1/3"), ("half-plain-adam", "BCD-1/3")]
# Those whose epochs are of all data, so that epochs are updates.
ALL_DATA = [what for what in THREE_SEEDS + FEWER_SEEDS + SECOND_TRAININGS if " x." not in what[1]]
# Those at a constant rate which tables list: of a network's phases the main ones, and an epoch.
CONSTANT = [
    ("half10", "BCD-1/3 every 40"), ("half10-adam", "BCD-1/3"), ("half", "BCD-1/3 every 40"),
    ("half", "BCD-1/3 every 1e"), *(("half-longest", method) for method in LONGEST_THIRDS), ("half-plain", "BCD-1/3"),
    ("half-plain-adam", "BCD-1/3"),
    ("resnet8", "BCD-1/3"), ("resnet14", "BCD-1/3"), ("resnet20", "BCD-1/3"), ("gpt", "BCD-1/2"), ("gpt", "BCD-1/3"),
    ("gpt", "BCD-1/4")]


@functools.cache
def decided(paired=False):
    """For each comparison of THREE_SEEDS: p, corrected for their number; `paired`: by seed, else Welch's."""
    if paired:
        ps = [float(stats.ttest_1samp(gaps(*what), 0).pvalue) for what in THREE_SEEDS]
    else:
        ps = [compared(*what).p for what in THREE_SEEDS]
    return dict(zip(THREE_SEEDS, compare.holm(ps)))


def correlations():
    """The correlation of the scores of BCD and of the full update over seeds, for each of THREE_SEEDS."""
    return [float(np.corrcoef(*zip(*((score_at(bcd), score_at(full)) for bcd, full in pairs(*what))))[0, 1])
            for what in THREE_SEEDS]


def found_in_four_of_five(spreads, seeds, level):
    """The difference that Welch's test, two-sided at this level, finds in four of five cases, by simulation of normal
    scores with these two spreads."""
    rng, trials = np.random.default_rng(1), 40000
    a, b = (spread * rng.standard_normal((trials, seeds)) for spread in spreads)
    variances = [side.var(axis=1, ddof=1) / seeds for side in (a, b)]
    error, noise = np.sqrt(sum(variances)), a.mean(axis=1) - b.mean(axis=1)
    freedom = sum(variances)**2 * (seeds - 1) / sum(variance**2 for variance in variances)
    needed = stats.t.ppf(1 - level / 2, freedom) * error
    return float(np.quantile(needed - noise, 0.8))  # on the wrong side of zero such a difference is never found


def seeds_for(difference, spread):
    """The seeds of each method with which a two-sided test at 5 % finds a difference in four of five times."""
    return math.ceil(2 * (spread / difference)**2 * (stats.norm.ppf(0.975) + stats.norm.ppf(0.8))**2)
