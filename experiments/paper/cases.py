"""Trainings grouped: a Case is a network, data and settings; a Method is a way to train it (full update, BCD in M
submodels, ...), with a training for each seed."""
import re
from dataclasses import dataclass, field

from schema import ADDED_FLAGS

# Flags that change nothing of what is learned, or only how it is rounded; the length is in `steps`.  Other data are other
# data, wherever they are, and the score is of the samples that were evaluated.
IRRELEVANT = {"data-dir", "threads", "recompute", "cache", "device-cache", "eval-every", "save-every",
              "keep-last", "device", "precision", "method", "steps", "epochs", "seed", "model", "pipeline",
              "pipeline-schedule", "placement", "pre-infer", "replicas", "timeout"}

# The flags of a method: how the submodels take turns; and the learning rate, whose best value differs between methods.
# A flag in which variants differ is in their names, with these words: always, or unless it is the default; the flags
# of HIDDEN are in "BCD-1/3 x.9" already.
HIDDEN = "submodels", "fraction"
ALWAYS, WORDS_ALONE = "always", "words alone"
NAMED = [  # flag, words, when they are shown, or the default
    ("switch-every", "every ", ALWAYS),
    ("order", "", "cyclic"),
    ("frozen-norm", "batch norms", WORDS_ALONE),
    ("lr", "rate ", ALWAYS),
    ("keep-state", "keeps state", WORDS_ALONE),
    ("switch-warmup", "switch-warmup ", 0),
    ("submodel-lr", "submodel-lr ", ""),
    ("always-active", "always-active ", ""),
    ("correct-above", "correct-above ", 0),
    ("partition", "partition ", ""),
    ("auto-window", "auto-window ", 50),
    ("auto-tolerance", "auto-tolerance ", 0.01),
    ("auto-min", "auto-min ", 100),
    ("auto-max", "auto-max ", 10000),
]
OF_METHOD = {*HIDDEN, *(flag for flag, _, _ in NAMED)}
OF_FULL = {"fraction", "lr", "submodel-lr", "switch-warmup"}  # the others are idle where nothing is ever frozen
NOT_OF_SGD = {"beta1", "beta2", "eps"}  # older files lack them, and newer ones have zeros
OF_SCHEDULE = {"final-lr": "cosine", "step-every": "step", "step-factor": "step"}  # elsewhere they have no effect
FILES = "data", "valid", "init"  # wherever they lie; the data have a checksum, too

REGISTERED = "2026-11-25T17:34"  # UTC: when protocol.md was committed


@dataclass(eq=False)
class Method:
    """Trainings that differ in the seed alone, ordered by it; the first has the common settings."""
    case: "Case"
    trainings: list

    @property
    def first(self):
        return self.trainings[0]

    @property
    def is_registered(self):
        """True when all of it began after the protocol was registered."""
        return not any(map(is_older, self.trainings))

    @property
    def by_seed(self):
        return {training["seed"]: training for training in self.trainings}

    @property
    def is_plain(self):
        """True when no earlier method of the case has the same M and fraction of the data.  The later ones are variants
        with other phases, orders or learning rates."""
        def kind(method):
            first = method.first
            return first["submodels"], first.setting("fraction"), first.is_offload
        return next(method for method in self.case.methods if kind(method) == kind(self)) is self

    @property
    def name(self):
        return self.named()

    def named(self, without=()):
        """"BCD-1/3", with the settings in which variants of the case differ, but not those of the flags `without`."""
        first, parts = self.first, [method_of(self.first)]
        alike = [method.first for method in self.case.methods if method_of(method.first) == parts[0]]
        for flag, words, shown in NAMED:
            if flag in without:
                continue
            value = first.setting(flag)
            idle = first["submodels"] == 1 and flag not in OF_FULL
            if idle or all(other.setting(flag) == value for other in alike):
                continue
            if shown == ALWAYS or shown != WORDS_ALONE and value != shown:
                parts.append(words + setting_text(value))
            elif shown == WORDS_ALONE and value not in (0, "running"):
                parts.append(words)
        name = " ".join(parts)
        return name if all(other["steps"] == first["steps"] for other in alike) else f"{name}, {first['steps']} updates"

    @property
    def diverged(self):
        """", diverged: seed 2", or "" where none did."""
        seeds = [f"seed {training['seed']}" for training in self.trainings if training.has_diverged]
        return f", diverged: {', '.join(seeds)}" if seeds else ""

    @property
    def label(self):
        """"resnet8 cifar10 sgd BCD-1/3", and what of it diverged."""
        return f"{self.case.name} {self.name}{self.diverged}"


@dataclass(eq=False)
class Case:
    """Methods: full updates first, then by M, by fraction of the data, then as read, or by weight.  name: see
    case_name, with the settings in which it differs from others of that name."""
    methods: list = field(default_factory=list)
    name: str = ""

    @property
    def weight(self):
        """What decides which case a reader sees first."""
        return max(weight_of(method.trainings) for method in self.methods)

    def full_update(self, method):
        """The full update that a method is compared with, or None."""
        return partner(method, [other for other in self.methods if other.first.is_full])

    def pairs(self, method):
        """(training, full update of the same seed, or None) of each seed of a method."""
        full = self.full_update(method)
        return [(training, full and full.by_seed.get(training["seed"])) for training in method.trainings]


class Cases:
    """The cases of trainings, in the order of their first ones, or with `heaviest_first`, as in a report of several
    files, whose first one may be a pilot, by weight; `left_out`: how many have the settings and the seed of another one,
    which is one training read from two files, but other losses."""

    def __init__(self, trainings, heaviest_first=False):
        self.cases, self.left_out = [], 0
        found = {}
        for number, training in enumerate(trainings):
            methods = found.setdefault(case_key(training), {})
            those = methods.setdefault(method_key(training), [])
            those.append((training["seed"], is_older(training), number, training))
        for methods in found.values():
            case = Case()
            self.cases.append(case)
            for numbered in sorted(methods.values(), key=lambda numbered: order_of(numbered, heaviest_first)):
                case.methods.append(Method(case, self.once(sorted(numbered, key=lambda one: one[:3]))))
        if heaviest_first:
            self.cases.sort(key=lambda case: case.weight, reverse=True)
        name_cases(self.cases)

    def once(self, numbered):
        """Of trainings with the same seed only the first, or the first that was registered."""
        kept = []
        for *_, training in numbered:
            if kept and kept[-1]["seed"] == training["seed"]:
                self.left_out += differs(training, kept[-1])
            else:
                kept.append(training)
        return kept

    @property
    def methods(self):
        return [method for case in self.cases for method in case.methods]


def settings_key(training, of_method):
    flags = training.settings.keys() | ADDED_FLAGS.keys()
    flags -= IRRELEVANT | (NOT_OF_SGD if training["optimizer"] == "sgd" else set())
    flags -= {flag for flag, schedule in OF_SCHEDULE.items() if training.setting("schedule") != schedule}
    return tuple((flag, own_name(training.setting(flag)) if flag in FILES else training.setting(flag))
                 for flag in sorted(flags) if (flag in OF_METHOD) == of_method)


def own_name(path):
    """The last part of a path."""
    return path.rstrip("/").rpartition("/")[2]


def alike_key(training):
    """What trainings of a case have in common on whatever network.  Generated images count as the same data, although
    each seed generates others."""
    data = None if training["data"] == "synthetic" else training["checksum"]
    return training["device"], training["precision"], data, settings_key(training, of_method=False)


def case_key(training):
    return training["model"], alike_key(training)


def method_key(training):
    submodels = training["submodels"]
    settings = settings_key(training, of_method=True)
    return (submodels, training["steps"], training["method"],
            tuple(setting for setting in settings if submodels > 1 or setting[0] in OF_FULL))


def order_of(numbered, heaviest_first):
    training = numbered[0][-1]
    weight = weight_of([training for *_, training in numbered]) if heaviest_first else ()
    return (training["submodels"], training.is_offload, -training.setting("fraction"), [-part for part in weight],
            min(number for *_, number, _ in numbered))


def weight_of(trainings):
    """How much trainings that differ in the seed alone say: their number, then their updates."""
    return len({training["seed"] for training in trainings}), max(training["steps"] for training in trainings)


def differs(a, b):
    """Whether two trainings are not one: by their curves, or by their evaluations where one of the curves is thinned."""
    part = "curve" if len(a.curve["loss"]) == len(b.curve["loss"]) else "evaluation"
    return getattr(a, part)["loss"].tolist() != getattr(b, part)["loss"].tolist()


# ---- what a method is compared with -------------------------------------------------------------

def is_older(training):
    """True when it began before the protocol was registered."""
    return training["started"] < REGISTERED


def partner(method, candidates):
    """The one that a method is compared with, the same for all its seeds; None when none has one of them.  A
    registered method is compared with a registered one if it can be, an older one with an older one; of several one
    of the same file counts, which has a group of the protocol, then the one with most of its seeds, then one with the
    same learning rate, then one with as many updates, else the longest."""
    def common(other):
        return len(method.by_seed.keys() & other.by_seed.keys())

    def likeness(other):
        return (other.is_registered == method.is_registered, other.first.file == method.first.file, common(other),
                other.first.setting("lr") == method.first.setting("lr"),
                other.first["steps"] == method.first["steps"], other.first["steps"])
    return max(filter(common, candidates), default=None, key=likeness)


# ---- names --------------------------------------------------------------------------------------

def method_of(training):
    """"full", "offload", "BCD-1/3"; with "x.9", as in "1/3 x.9", when each submodel sees 0.9 of the data."""
    fraction, part = training.setting("fraction"), f"1/{training['submodels']}"
    name = training["method"] if training["submodels"] == 1 else f"BCD-{part}" if fraction >= 1 else part
    return name if fraction >= 1 else f"{name} x{f'{fraction:.3g}'[1:]}"


def network_name(training):
    """"resnet8", "gpt-4x128" (layers or depth, width)."""
    family, colon, shape = training["model"].partition(":")
    if not colon:
        return family
    deep, wide = (re.search(key, shape) for key in (r"(?:layers|depth)=(\d+)", r"width=(\d+)"))
    return family + (f"-{deep[1]}" if deep else "") + (f"x{wide[1]}" if wide else "")


def case_name(training):
    """"gpt-4x128 text sgd" (a network of 4 layers, width 128), with the schedule of the rate unless it is constant, and
    with device and precision unless it is the CPU."""
    limit = training.setting("limit")
    parts = [network_name(training), own_name(training["data"]) + (f"[:{limit}]" if limit else ""), training["optimizer"]]
    if training.setting("schedule") != "constant":
        parts.append(training.setting("schedule"))
    if training["device"] not in ("", "cpu"):
        parts += [training["device"], training["precision"]]
    return " ".join(parts)


def name_cases(cases):
    """Names each; those of equal names have the settings in which they differ, too."""
    alike = {}
    for case in cases:
        alike.setdefault(case_name(case.methods[0].first), []).append(case)
    for name, those in alike.items():
        settings = [settings_of(case.methods[0].first) for case in those]
        differ = [flag for flag in settings[0] if len({one[flag] for one in settings}) > 1]
        for case, own in zip(those, settings):
            case.name = " ".join([name, *(f"{flag} {setting_text(own[flag])}" for flag in differ if own[flag] != "")])


def settings_of(training):
    """What trainings of a case have in common, by name."""
    device, precision, checksum, flags = alike_key(training)
    return {"model": training["model"], "device": device, "precision": precision, "checksum": checksum, **dict(flags)}


def setting_text(value):
    return f"{value:.6g}" if isinstance(value, float) else str(value)
