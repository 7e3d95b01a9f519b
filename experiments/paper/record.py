"""The trainings of the record by name, paired: scores, gaps against budget, multipliers, and what three seeds decide.

A score is the accuracy in per cent or the perplexity, on data not trained on, as the mean of curves.MEAN evaluations;
the last of them is the one that it belongs to."""
import functools
import math
import pathlib

import numpy as np
from scipy import stats

import compare
import curves
import study

RESULTS = pathlib.Path(__file__).resolve().parents[1] / "results"
GPT = "gpt:layers=4,width=128,heads=4,context=64"
HALF = "resnet:depth=8,width=8"
LONG, REMEDIES, PILOT = ("converged.h5",), ("remedies.h5",), ("converged-pilot.h5",)
RUNS = "resnet8-cifar10-full.h5", "resnet8-cifar10-bcd3.h5"
PLAIN_IMAGES, LONGEST = ("no-augmentation.h5",), ("plateau.h5",)
FEW = dict(model=HALF, limit=10000)
ALL = dict(limit=0, schedule="constant")
# A network of the record: its name in tables, the files and the settings that its trainings share.
NETWORKS = {
    "half10": ("ResNet-8x8, 10,000 images", LONG, dict(FEW, optimizer="sgd", schedule="constant")),
    "half10-cosine": ("the same, cosine", LONG + REMEDIES, dict(FEW, optimizer="sgd", schedule="cosine")),
    "half10-adam": ("the same, Adam", LONG, dict(FEW, optimizer="adam", schedule="constant")),
    "half": ("ResNet-8x8, all images", LONG, dict(ALL, model=HALF)),
    "half-longest": ("ResNet-8x8, all images, longest", LONGEST, dict(ALL, model=HALF)),
    "resnet8": ("ResNet-8, all images", LONG, dict(ALL, model="resnet8")),
    "resnet8-plain": ("ResNet-8, no augmentation", RUNS, dict(ALL, model="resnet8", augment=0)),
    "half-plain": ("ResNet-8x8, no augmentation", PLAIN_IMAGES, dict(ALL, model=HALF, optimizer="sgd", augment=0)),
    "half-plain-adam": ("the same, Adam", PLAIN_IMAGES, dict(ALL, model=HALF, optimizer="adam", augment=0)),
    "resnet14": ("ResNet-14, all images", LONG, dict(ALL, model="resnet14")),
    "resnet20": ("ResNet-20, all images", LONG, dict(ALL, model="resnet20")),
    "gpt": ("GPT 4x128", LONG, dict(ALL, model=GPT)),
    "gpt-cosine": ("GPT 4x128, cosine", LONG, dict(model=GPT, schedule="cosine")),
    "gpt8": ("GPT 4x128, 8 epochs", ("converged-gpt-8-epochs.h5",), dict(ALL, model=GPT)),
    "gpt4": ("GPT 4x128, 4 epochs", REMEDIES, dict(ALL, model=GPT)),
    "pilot-half": ("ResNet-8x8, SGD", PILOT, dict(ALL, model=HALF, optimizer="sgd")),
    "pilot-half-adam": ("ResNet-8x8, Adam", PILOT, dict(ALL, model=HALF, optimizer="adam")),
    "pilot-resnet8": ("ResNet-8, SGD", PILOT, dict(ALL, model="resnet8")),
    "pilot-gpt": ("GPT, Adam", PILOT, dict(ALL, model=GPT)),
}
# The phases of a method that names none: 40 updates, a quarter of an epoch, an epoch.
PHASES = dict.fromkeys(NETWORKS, "40") | dict.fromkeys(
    ["gpt", "gpt-cosine", "gpt4", "pilot-gpt", "resnet8-plain"], "0.25e") | dict.fromkeys(
    ["half-longest", "half-plain", "half-plain-adam", "pilot-half", "pilot-half-adam", "pilot-resnet8"], "1e")


# ---- trainings ----------------------------------------------------------------------------------

@functools.cache
def trainings(*names):
    """The trainings of files of results, with what follows from their curves."""
    found = study.read([str(RESULTS / name) for name in names])
    compare.converge(found)
    return found


# What a method's settings are unless it names another one.
PLAIN = {"always-active": "", "submodel-lr": "", "order": "cyclic", "keep-state": 0, "correct-above": 0,
         "switch-warmup": 0, "frozen-norm": "running"}


@functools.cache
def seeds(network, method):
    """The trainings of a method, by seed.  A method is full or bcd3 (BCD-1/3), with what is not as usual:
    "bcd3 every 2e", "bcd3 x0.9 every 2e", "full lr=0.1", "bcd3 always-active=ends"."""
    words = method.replace(" every ", " switch-every=").split()
    _, files, shared = NETWORKS[network]
    wanted = dict(shared)
    wanted["submodels"] = 1 if words[0] == "full" else int(words[0][3:])
    wanted["fraction"] = 1.0
    if words[0] != "full":
        wanted["switch-every"] = PHASES[network]
    changed = dict(PLAIN)
    for word in words[1:]:
        flag, _, value = ("fraction", "", word[1:]) if word[0] == "x" else word.partition("=")
        (wanted if flag in wanted else changed)[flag] = value
    found = {}
    for each in trainings(*files):
        if all(same(each.setting(flag), value) for flag, value in (changed | wanted).items()):
            if found.setdefault(each["seed"], each) is not each:
                raise KeyError(f"{network}: {method} names several trainings")
    if not found:
        raise KeyError(f"{network}: no training {method}")
    return found


def first(network, method):
    """Any of them: they differ in the seed alone."""
    return next(iter(seeds(network, method).values()))


def same(value, wanted):
    """Whether a flag's value, text or a number, is the one that is wanted."""
    return value == str(wanted) if isinstance(value, str) else float(value) == float(wanted)


def score_at(training, part=1.0):
    """The score after a part of a training, between two evaluations interpolated; NaN before the first mean, of a part
    of a cosine, and of a training that diverged."""
    if not training.is_finished or part < 1 and not curves.may_be_cut(training):
        return math.nan
    return curves.mean_score_at(training, part * training["steps"])


def scores(network, method, part=1.0):
    return [score_at(each, part) for each in seeds(network, method).values()]


def pairs(network, method, full=None):
    """The trainings of BCD and of the full update, of that network or of another one, that have the same seed."""
    bcd, full = seeds(network, method), seeds(full or network, "full")
    return [(bcd[seed], full[seed]) for seed in sorted(set(bcd) & set(full))]


# ---- budgets ------------------------------------------------------------------------------------

def gaps(network, method, part=1.0, full=None):
    """BCD - full for each seed, after the same part of both trainings."""
    return [score_at(bcd, part) - score_at(other, part) for bcd, other in pairs(network, method, full)]


def behind(network, method):
    """For each seed that has both scores whether BCD ends at a worse one."""
    return [(gap < 0) == bcd.is_images for gap, (bcd, _) in zip(gaps(network, method), pairs(network, method))
            if math.isfinite(gap)]


# ---- multipliers --------------------------------------------------------------------------------

def same_training_loss(bcd, full):
    return bcd["multiplier"]


def gain(training, part=None):
    """What a training gains to its end, after a part of it, or after its plateau; NaN with a cosine, of which it is the
    decay."""
    if not curves.may_be_cut(training):
        return math.nan
    return score_at(training) - (training["plateau_score"] if part is None else score_at(training, part))


def multipliers(network, method, rule):
    """A rule's multiplier for each seed; NaN where it gives none, or the two can be compared at their ends only."""
    return [rule(bcd, full) if curves.comparable(bcd, full) else math.nan for bcd, full in pairs(network, method)]


# ---- what the seeds decide ----------------------------------------------------------------------

def compared(network, method, other="full", part=1.0, other_part=1.0):
    """Welch's test of the scores of a method and of another one, after parts of their trainings."""
    return compare.welch(scores(network, method, part), scores(network, other, other_part))


# Every comparison with three seeds, and with fewer.
THREE_SEEDS = [
    ("resnet8", "bcd3"), ("half", "bcd3"), ("half", "bcd3 every 1e"), ("half", "bcd3 every auto"),
    ("half", "bcd3 x0.9 every 1e"), ("half", "bcd3 x0.3 every 1e"), ("half10", "bcd3"), ("half10", "bcd3 every 2e"),
    ("half10", "bcd3 x0.9 every 2e"), ("half10", "bcd3 x0.3 every 2e"), ("half10-cosine", "bcd3"),
    ("half10-adam", "bcd3")]
FEWER_SEEDS = [("gpt", "bcd2"), ("gpt", "bcd3"), ("gpt", "bcd4"), ("gpt", "bcd3 x0.9"), ("gpt-cosine", "bcd3"),
               ("resnet14", "bcd3"), ("resnet20", "bcd3")]
# Groups 2 and 5 of the second trainings, with three seeds, whose comparisons are corrected by group.
SECOND_TRAININGS = [("half-longest", "bcd3"), ("half-plain", "bcd3"), ("half-plain-adam", "bcd3")]
# Those whose epochs are of all data, so that epochs are updates.
ALL_DATA = [what for what in THREE_SEEDS + FEWER_SEEDS + SECOND_TRAININGS if " x0." not in what[1]]
# What was tried to bring BCD-1/3 closer, on 10,000 images with a cosine.
REMEDIES_TRIED = ["always-active=ends", "submodel-lr=0.5,1,2", "submodel-lr=2,1,0.5", "keep-state=1",
                  "order=descending", "correct-above=1", "switch-warmup=40"]


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
