"""The long trainings of the record, paired: scores, gaps against budget, multipliers, and what three seeds can decide.

A score is the accuracy in per cent or the perplexity, on data not trained on, as the mean of MEAN evaluations up to the
one that it belongs to.  Every mean here trails."""
import functools
import math
import pathlib
from dataclasses import dataclass

import h5py
import numpy as np
from scipy import stats

RESULTS = pathlib.Path(__file__).resolve().parents[1] / "results"
MEAN = 5  # evaluations
# Early stopping: a new best mean betters the best so far by more than this many points of accuracy or nats; a training
# stops at the best that none replaces within so many epochs.
POINTS, IMAGE_EPOCHS = 0.5, 10
NATS, TOKEN_EPOCHS = 0.01, 1
GPT = "gpt:layers=4,width=128,heads=4,context=64"
HALF = "resnet:depth=8,width=8"
LONG, REMEDIES, PILOT = ("converged.h5",), ("remedies.h5",), ("converged-pilot.h5",)
RUNS = "resnet8-cifar10-full.h5", "resnet8-cifar10-bcd3.h5"
FEW = dict(model=HALF, limit=10000)
ALL = dict(limit=0, schedule="constant")
# A network of the record: its name in tables, the files and the settings that its trainings share.
NETWORKS = {
    "half10": ("ResNet-8x8, 10,000 images", LONG, dict(FEW, optimizer="sgd", schedule="constant")),
    "half10-cosine": ("the same, cosine", LONG + REMEDIES, dict(FEW, optimizer="sgd", schedule="cosine")),
    "half10-adam": ("the same, Adam", LONG, dict(FEW, optimizer="adam", schedule="constant")),
    "half": ("ResNet-8x8, all images", LONG, dict(ALL, model=HALF)),
    "resnet8": ("ResNet-8, all images", LONG, dict(ALL, model="resnet8")),
    "resnet8-plain": ("ResNet-8, no augmentation", RUNS, dict(ALL, model="resnet8", augment=0)),
    "resnet14": ("ResNet-14, all images", LONG, dict(ALL, model="resnet14")),
    "resnet20": ("ResNet-20, all images", LONG, dict(ALL, model="resnet20")),
    "gpt": ("GPT 4x128", LONG, dict(ALL, model=GPT)),
    "gpt-cosine": ("GPT 4x128, cosine", LONG, dict(model=GPT, schedule="cosine")),
    "gpt8": ("GPT 4x128, 8 epochs", ("converged-gpt-8-epochs.h5",), dict(ALL, model=GPT)),
    "gpt4": ("GPT 4x128, 4 epochs", REMEDIES, dict(ALL, model=GPT)),
    "pilot-half": ("ResNet-8x8, SGD", PILOT, dict(ALL, model=HALF, optimizer="sgd")),
    "pilot-half-adam": ("ResNet-8x8, Adam", PILOT, dict(ALL, model=HALF, optimizer="adam")),
    "pilot-half-cosine": ("ResNet-8x8, SGD, cosine", PILOT, dict(model=HALF, schedule="cosine")),
    "pilot-resnet8": ("ResNet-8, SGD", PILOT, dict(ALL, model="resnet8")),
    "pilot-gpt": ("GPT, Adam", PILOT, dict(ALL, model=GPT)),
}
PHASE, PHASES = "40", {"gpt": "0.25e", "gpt-cosine": "0.25e", "gpt4": "0.25e", "pilot-gpt": "0.25e", "pilot-half": "1e",
                       "pilot-half-adam": "1e", "pilot-half-cosine": "1e", "pilot-resnet8": "1e",
                       "resnet8-plain": "0.25e"}

# ---- files --------------------------------------------------------------------------------------

@dataclass(frozen=True, eq=False)
class Training:
    """A training as its file has it; curves are arrays over evaluations or updates."""
    settings: dict
    parameters: int          # of the model
    steps: int
    epochs: float
    evaluated: np.ndarray    # updates done at each evaluation
    loss: np.ndarray         # validation loss there
    score: np.ndarray        # accuracy in per cent, or perplexity
    row_steps: np.ndarray    # of the training curve: the last update that each row stands for
    row_loss: np.ndarray     # and the mean loss of its updates
    phases: np.ndarray       # updates done when each phase began

    @property
    def images(self):
        return self.settings["model"].startswith("resnet")

    def mean(self, values):
        """The trailing means; the first belongs to evaluation MEAN - 1."""
        return np.convolve(values, np.ones(MEAN) / MEAN, "valid")

    def nearest(self, part):
        """The evaluation nearest to a part of the training."""
        return int(np.argmin(np.abs(self.evaluated - part * self.steps)))

    def score_at(self, part=1.0):
        """The score after a part of the training."""
        last = self.nearest(part)
        return self.score[last - MEAN + 1:last + 1].mean() if last >= MEAN - 1 else math.nan

    def epoch(self, evaluation):
        return self.evaluated[evaluation] * self.epochs / self.steps


def texts(data):
    return data.asstr()[()] if data.dtype.kind in "SO" else data[()]


def training(settings, parameters, steps, epochs, file, rows):
    evaluation, curve, switches = (
        {name: data[begin:begin + count] for name, data in file[group].items() if data.dtype.kind != "S"}
        for group, (begin, count) in zip(("evaluation", "training" if "training" in file else "curve", "switches"), rows))
    score = 100 * evaluation["accuracy"] if settings["model"].startswith("resnet") else evaluation["perplexity"]
    return Training(settings, int(parameters), int(steps), float(epochs), evaluation["step"].astype(float), evaluation["loss"], score,
                    curve["step"].astype(int), curve["loss"], switches["step"].astype(int))


@functools.cache
def trainings(name):
    """The trainings of a file: of a study, or of one run."""
    with h5py.File(RESULTS / name) as file:
        if "table" not in file:
            settings = {flag: value.decode() if isinstance(value, bytes) else value for flag, value in file["settings"].attrs.items()}
            steps = int(file["curve/step"][-1])
            rows = [(0, len(file[group]["step"])) for group in ("evaluation", "curve", "switches")]
            return [training(settings, file["model"].attrs["parameters"], steps, steps / file["data"].attrs["steps_per_epoch"], file, rows)]
        settings = {flag: texts(data) for flag, data in file["settings"].items()}
        curves = {name: data[()] for name, data in file["curves"].items()}
        return [training({flag: values[row] for flag, values in settings.items()}, file["table/parameters"][row],
                         file["table/steps"][row], file["table/epochs"][row], file,
                         [(int(curves[f"{group}_first"][row]), int(curves[f"{group}_rows"][row]))
                          for group in ("evaluation", "training", "switches")])
                for row in range(len(file["table/row"]))]


# What a method's settings are unless it names another one.
PLAIN = {"always-active": "", "submodel-lr": "", "order": "cyclic", "keep-state": 0, "correct-above": 0,
         "switch-warmup": 0, "frozen-norm": "running"}


@functools.cache
def seeds(network, method):
    """The trainings of a method, by seed.  A method: full, bcd3, "bcd3 every 2e", "bcd3 x0.9 every 2e", or one of these
    and settings: "full lr=0.1", "bcd3 always-active=ends"."""
    words = method.replace(" every ", " switch-every=").split()
    _, files, shared = NETWORKS[network]
    wanted = dict(shared)
    wanted["submodels"] = 1 if words[0] == "full" else int(words[0][3:])
    wanted["fraction"] = 1.0
    if words[0] != "full":
        wanted["switch-every"] = PHASES.get(network, PHASE)
    changed = dict(PLAIN)
    for word in words[1:]:
        flag, _, value = ("fraction", "", word[1:]) if word[0] == "x" else word.partition("=")
        (wanted if flag in wanted else changed)[flag] = value
    found = {}
    for file in files:
        for each in trainings(file):
            if all(same(each.settings[flag], value) for flag, value in {**changed, **wanted}.items() if flag in each.settings):
                if found.setdefault(int(each.settings["seed"]), each) is not each:
                    raise KeyError(f"{network}: {method} names several trainings")
    if not found:
        raise KeyError(f"{network}: no training {method}")
    return found


def same(value, wanted):
    """Whether a flag's value, text or a number, is the one that is wanted."""
    return value == str(wanted) if isinstance(value, str) else float(value) == float(wanted)


def scores(network, method, part=1.0):
    return [each.score_at(part) for each in seeds(network, method).values()]


def pairs(network, method, full=None):
    """The trainings of BCD and of the full update, of that network or of another one, that have the same seed."""
    bcd, full = seeds(network, method), seeds(full or network, "full")
    return [(bcd[seed], full[seed]) for seed in sorted(set(bcd) & set(full))]


# ---- budgets ------------------------------------------------------------------------------------

def gaps(network, method, part=1.0, full_part=None, full=None):
    """BCD - full for each seed, after a part of BCD's training and of the full update's (the same part by default)."""
    return [bcd.score_at(part) - other.score_at(part if full_part is None else full_part)
            for bcd, other in pairs(network, method, full)]


def behind(network, method):
    """For each seed whether BCD ends at a worse score."""
    return [(gap < 0) == bcd.images for gap, (bcd, _) in zip(gaps(network, method), pairs(network, method))]


# ---- multipliers --------------------------------------------------------------------------------

def first_at(steps, loss, level, interpolated):
    """The updates until a loss is at or below a level; NaN: never."""
    below = np.nonzero(loss <= level)[0]
    if not len(below):
        return math.nan
    at = below[0]
    if at == 0 or not interpolated:
        return float(steps[at])
    weight = (loss[at - 1] - level) / (loss[at - 1] - loss[at])
    return float(steps[at - 1] + weight * (steps[at] - steps[at - 1]))


def to_level(bcd, full, interpolated):
    """Updates of BCD over those of the full update to the higher of their two lowest losses; each: (updates, loss).
    NaN where one of them began there.  Between evaluations it is interpolated: their ratios take few values."""
    level = max(bcd[1].min(), full[1].min())
    if min(bcd[1][0], full[1][0]) <= level:
        return math.nan
    return first_at(*bcd, level, interpolated) / first_at(*full, level, interpolated)


def same_loss(bcd, full):
    """To the same validation loss, of trailing means of MEAN evaluations."""
    return to_level(*((each.evaluated[MEAN - 1:], each.mean(each.loss)) for each in (bcd, full)), interpolated=True)


def same_training_loss(bcd, full):
    """To the same training loss: the mean over the last updates, a fortieth of those of the shorter training."""
    window = max(min(bcd.steps, full.steps) // 40, 10)
    return to_level(*(smoothed(each, window) for each in (bcd, full)), interpolated=False)


def smoothed(each, window):
    """The mean loss of the last `window` updates, after each row of the curve that has so many before it.  A row stands
    for the updates since the row before."""
    counts = np.diff(each.row_steps, prepend=0)
    total = np.concatenate([[0], np.cumsum(counts * each.row_loss)])
    ends = np.concatenate([[0], each.row_steps]).astype(float)
    kept = each.row_steps >= window
    begins = np.interp(each.row_steps[kept] - window, ends, total)
    return each.row_steps[kept].astype(float), (total[1:][kept] - begins) / window


def plateau(each):
    """The evaluation at which early stopping ends the training; None where the training ended first."""
    cost = each.mean(100 - each.score if each.images else each.loss)
    amount, patience = (POINTS, IMAGE_EPOCHS) if each.images else (NATS, TOKEN_EPOCHS)
    best = MEAN - 1
    for now in range(MEAN, len(each.loss)):
        if each.epoch(now) - each.epoch(best) > patience and now > best + 1:
            return best
        if cost[now - MEAN + 1] < cost[best - MEAN + 1] - amount:
            best = now
    return best if each.epoch(len(each.loss) - 1) - each.epoch(best) >= patience else None


def own_plateau(bcd, full):
    """Epochs of BCD to its plateau over those of the full update to its own."""
    ends = plateau(bcd), plateau(full)
    return math.nan if None in ends else bcd.epoch(ends[0]) / full.epoch(ends[1])


def gain_after_plateau(each):
    """What a training gains from there to its end."""
    end = plateau(each)
    return math.nan if end is None else each.score_at() - each.score[end - MEAN + 1:end + 1].mean()


def multipliers(network, method, rule):
    """A rule's multiplier for each seed; NaN where it gives none."""
    return [rule(bcd, full) for bcd, full in pairs(network, method)]


# ---- what the seeds decide ----------------------------------------------------------------------

@dataclass(frozen=True)
class Comparison:
    difference: float
    low: float
    high: float
    p: float


def welch(bcd, full):
    """Welch's t test of two means: their difference, its 95 % interval and p.  Each sample has two seeds or more."""
    squares = [np.var(sample, ddof=1) / len(sample) for sample in (bcd, full)]
    error = math.sqrt(sum(squares))
    freedom = error**4 / sum(square**2 / (len(sample) - 1) for square, sample in zip(squares, (bcd, full)))
    difference = np.mean(bcd) - np.mean(full)
    half = stats.t.ppf(0.975, freedom) * error
    return Comparison(difference, difference - half, difference + half,
                      float(stats.ttest_ind(bcd, full, equal_var=False).pvalue))


def holm(ps):
    """The p values of several tests, corrected by Holm's step-down method."""
    corrected, highest = [0.0] * len(ps), 0.0
    for rank, place in enumerate(np.argsort(ps)):
        highest = max(highest, min(1.0, (len(ps) - rank) * ps[place]))
        corrected[place] = highest
    return corrected


# Every comparison with three seeds.
THREE_SEEDS = [
    ("resnet8", "bcd3"), ("half", "bcd3"), ("half", "bcd3 every 1e"), ("half", "bcd3 every auto"),
    ("half", "bcd3 x0.9 every 1e"), ("half", "bcd3 x0.3 every 1e"), ("half10", "bcd3"), ("half10", "bcd3 every 2e"),
    ("half10", "bcd3 x0.9 every 2e"), ("half10", "bcd3 x0.3 every 2e"), ("half10-cosine", "bcd3"), ("half10-adam", "bcd3")]
FEWER_SEEDS = [("gpt", "bcd2"), ("gpt", "bcd3"), ("gpt", "bcd4"), ("gpt", "bcd3 x0.9"), ("gpt-cosine", "bcd3"),
               ("resnet14", "bcd3"), ("resnet20", "bcd3")]

# What was tried to bring BCD-1/3 closer, on 10,000 images with a cosine.
REMEDIES_TRIED = ["always-active=ends", "submodel-lr=0.5,1,2", "submodel-lr=2,1,0.5", "keep-state=1", "order=descending",
                  "correct-above=1", "switch-warmup=40"]


@functools.cache
def decided(paired=False):
    """For each comparison of THREE_SEEDS: p, corrected for their number; `paired`: by seed, else Welch's."""
    ps = [stats.ttest_1samp(gaps(*what), 0).pvalue if paired else welch(scores(*what), scores(what[0], "full")).p
          for what in THREE_SEEDS]
    return dict(zip(THREE_SEEDS, holm(ps)))


def pairing():
    """The mean correlation of the scores of BCD and of the full update over seeds, in THREE_SEEDS."""
    return float(np.mean([np.corrcoef(*zip(*((bcd.score_at(), full.score_at()) for bcd, full in pairs(*what))))[0, 1]
                          for what in THREE_SEEDS]))


def seeds_for(difference, spread):
    """The seeds of each method with which a two-sided test at 5 % finds a difference in four of five times."""
    return math.ceil(2 * (spread / difference)**2 * (stats.norm.ppf(0.975) + stats.norm.ppf(0.8))**2)
