"""Fine-tuning a real model, group 3 of protocol.md: what each method reached, and what it took, for who has to choose."""
import math
import re
import statistics
from dataclasses import dataclass

import numpy as np

import compare
import curves
import figures
import program
import record
import registered
import smollm
import study
from cases import Cases
from errors import Refused
from tables import MIB

FILE, RATES, SPEED = "smollm", "smollm-rates", "smollm-speed"  # the experiments, and their files of results
# What was added after their results, and what smollm.py trained beside them.
BESIDE = {FILE: ["smollm-added.h5", "smollm-lora.h5"], RATES: ["smollm-rates-lora.h5"], SPEED: ["smollm-speed-lora.h5"]}
FULL, PLAIN, LORA = "full, AdamW", "full, plain SGD", "LoRA, rank 16"


@dataclass(frozen=True)
class Method:
    """name; columns: columns and flags by which its trainings are known; info: how bcd info is asked for it, None if it
    cannot be; its colour and its mark."""
    name: str
    columns: dict
    info: dict | None
    colour: str
    mark: str


METHODS = [
    Method(FULL, {"method": "full", "optimizer": "adamw"}, {"submodels": 1}, figures.BLUE, "o"),
    Method("full, Lion", {"method": "full", "optimizer": "lion"}, {"submodels": 1, "optimizer": "lion"}, figures.SKY, "v"),
    Method("full, SGD", {"method": "full", "optimizer": "sgd", "momentum": 0.9}, {"submodels": 1, "optimizer": "sgd"},
           figures.GREY, "^"),
    Method(PLAIN, {"method": "full", "optimizer": "sgd", "momentum": 0},
           {"submodels": 1, "optimizer": "sgd", "momentum": 0}, figures.GREY, ">"),
    Method("BCD-1/3", {"method": "BCD", "submodels": 3, "order": "cyclic"}, {"submodels": 3}, figures.RED, "s"),
    Method("BCD-1/6", {"method": "BCD", "submodels": 6, "order": "cyclic"}, {"submodels": 6}, figures.RED, "D"),
    Method("a layer at a time", {"method": "BCD", "submodels": 30, "order": "cyclic"}, {"submodels": "layers"},
           figures.ORANGE, "P"),
    Method("LISA", {"method": "BCD", "submodels": 30, "order": "random"}, {"submodels": "layers", "always_active": "ends"},
           figures.YELLOW, "X"),
    Method("the last third", {"method": "BCD", "submodels": 3, "order": "descending"}, None, figures.PINK, "<"),
    Method(LORA, {"method": "LoRA of rank 16"}, None, figures.GREEN, "*"),
]


def named(training):
    """The name of a training's method, or None."""
    known = training.settings | training.row
    return next((method.name for method in METHODS
                 if all(known.get(column) == value for column, value in method.columns.items())), None)


def by_method(trainings):
    """(method, its trainings) of each that has some, in the order of METHODS."""
    found = {}
    for training in trainings:
        found.setdefault(named(training), []).append(training)
    return [(method, found[method.name]) for method in METHODS if method.name in found]


def trainings(experiment):
    """The trainings of an experiment, and those beside it."""
    return [training for name in [f"{experiment}.h5", *BESIDE[experiment]] for training in record.trainings(name)]


# ---- rates --------------------------------------------------------------------------------------

def tuned_rates():
    """Of each method: its name, and the rates tried with the losses that they ended at, by rising rate."""
    return [(method.name, sorted((training["lr"], registered.at_the_end(training)) for training in made))
            for method, made in by_method(trainings(RATES))]


def before_tuning(experiment=RATES):
    """The validation loss of the model that the fine-tunings start from."""
    return trainings(experiment)[0].evaluation["loss"][0]


# ---- what each reached, and took ----------------------------------------------------------------

@dataclass(frozen=True)
class Tuned:
    """A method's trainings, and how they compare with the full update of AdamW.  difference: compare.Difference, positive
    where the method is better, and p by Holm's correction; answer: "yes", "no" ..., of registered.answer; of the full
    update itself None, NaN and ""."""
    method: Method
    trainings: list
    difference: object
    p: float
    answer: str

    def mean(self, column, scale=1.0):
        return compare.mean([one[column] * scale for one in self.trainings])[0]

    @property
    def peak(self):
        """MiB of parameters, gradients and state, measured; NaN of another program."""
        return compare.mean([one.trained_memory for one in self.trainings])[0]

    @property
    def equal_parts(self):
        """The same by closed form, of submodels of equal size; the file of an older build left out what is always
        active."""
        first = self.trainings[0]
        if math.isnan(self.peak):
            return self.mean("closed_form", 1 / MIB)
        return study.closed_form(first["model"], first["submodels"], first.settings, first["precision"]) / MIB

    @property
    def trained(self):
        return self.peak if math.isfinite(self.peak) else self.equal_parts

    @property
    def updates(self):
        return self.trainings[0]["steps"]

    @property
    def losses(self):
        return [registered.at_the_end(one) for one in self.trainings]

    def times_the_updates(self, full):
        """Of each training, by rising seed: its updates over those of the full update of that seed to the same loss,
        the higher of the lowest of both, interpolated between evaluations; NaN where that seed has none."""
        by_seed = {one["seed"]: one for one in full.trainings}
        return [curves.validation_multiplier(one, by_seed[one["seed"]])[2] if one["seed"] in by_seed else math.nan
                for one in sorted(self.trainings, key=lambda one: one["seed"])]

    def after(self, updates):
        """The losses after so many updates, interpolated between evaluations."""
        return [float(np.interp(updates, one.evaluation["step"], one.evaluation["loss"])) for one in self.trainings]

    @property
    def lowest(self):
        return [float(one.evaluation["loss"].min()) for one in self.trainings]

    @property
    def operations(self):
        """Of all updates, counted from shapes; NaN of what another program trained."""
        return compare.mean([math.nan if one.operations is None else one.operations[-1] for one in self.trainings])[0]


def tuned(made):
    """The methods that have trainings among these, in the order of METHODS."""
    judged = {named(one.method.first): rest for one, *rest in registered.judged(Cases(made))}
    return [Tuned(method, those, *judged.get(method.name, (None, math.nan, ""))) for method, those in by_method(made)]


def lora_libraries():
    """What trained by LoRA, and the memory that it took before there was a model."""
    return by_method(trainings(FILE))[-1][1][-1].provenance.get("libraries", "")


def lora_alpha():
    return smollm.ALPHA


def seconds_per_update():
    """Of each method that was timed, by its name: measured one after the other on an idle machine, without the first update, which
    touches all memory for the first time."""
    timed = {method.name: one for method, (one,) in by_method(trainings(SPEED))}
    for one in timed.values():
        if not one.times_comparable(timed[FULL]):
            raise Refused(f"{SPEED}.h5: {one['row']} was not timed on the computer of the full update")
    return {name: curves.seconds_per_update(one) for name, one in timed.items()}


def timed_on():
    first = trainings(SPEED)[0]
    return f"{first['threads']} threads of an {first['cpu']}"


# ---- what fits ----------------------------------------------------------------------------------

FROZEN = {"fp32": 4, "bf16": 2}  # bytes of a frozen parameter


def low_rank(spec):
    """The number of parameters of LoRA's factors beside all linear layers of a LLaMA but its output: of a layer of n
    inputs and m outputs RANK (n + m) (Hu et al., 2021, section 4.1)."""
    shape = {name: int(value) for name, value in re.findall(r"(\w+)=(\d+)(?=[,:]|$)", spec)}
    width, heads, ffn = shape["width"], shape["heads"], shape["ffn"]
    queries = heads * shape.get("head_size", width // heads)
    keys = queries // heads * shape.get("groups", heads)
    attention = [(width, queries), (width, keys), (width, keys), (queries, width)]
    return shape["layers"] * smollm.RANK * sum(map(sum, [*attention, (width, ffn), (width, ffn), (ffn, width)]))


def asked(model, precision, context):
    """Of one sequence, with recomputed activations."""
    return {"model": model, "precision": precision, "context": context, "recompute": True}


def needs(model, precision, context=1024):
    """By bcd info, by the names of the methods: the bytes of all roles, and the operations of an update over those of
    the full update of all parameters."""
    words = asked(model, precision, context)
    layers = len(blocks_of(model, precision, context)[0].labels) - 2
    found = {}
    for method in METHODS:
        if method.info is None:
            continue
        flags = {"optimizer": "adamw"} | method.info
        if flags["submodels"] == "layers":
            flags["submodels"] = layers
        steps = program.ask_once("info", *program.flags_of(**words, **flags))["submodels"].column("operations")
        found[method.name] = program.memory(**words, **flags)["all"], statistics.fmean(cell.value for cell in steps)
    return {name: (size, steps / found[FULL][1]) for name, (size, steps) in found.items()}


def blocks_of(model, precision, context):
    """The table of a model's blocks, and the number of its parameters."""
    blocks = program.ask_once("info", *program.flags_of(**asked(model, precision, context)))["blocks"]
    return blocks, sum(cell.value for cell in blocks.column("parameters"))


def masters(model, context=1024):
    """Bytes of the masters in fp32 that the full update has on the device in bf16."""
    return 4 * blocks_of(model, "bf16", context)[1]


def lora_needs(model, precision, context=1024):
    """Bytes of all roles by LoRA, closed form: activations and workspace of the full update, all parameters frozen, and
    the factors trained by AdamW.  The factors' own activations, RANK numbers of a token and layer, are not counted."""
    blocks, parameters = blocks_of(model, precision, context)
    full = program.memory("adamw", 1, **asked(model, precision, context))
    trained = full["trained"] / parameters  # bytes of a parameter, its gradient and its state
    return full["all"] - full["trained"] + FROZEN[precision] * parameters + trained * low_rank(blocks.title)
