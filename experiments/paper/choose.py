"""Fine-tuning a real model, group 3 of protocol.md: what each method reached, and what it took, for who has to choose."""
import math
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

import compare
import figures
import registered
from cases import Cases
from tables import MIB

FULL = "full, AdamW"
# A method: its name, the columns of its trainings, its colour and its mark.
METHODS = [
    (FULL, {"method": "full", "optimizer": "adamw"}, figures.BLUE, "o"),
    ("full, Lion", {"method": "full", "optimizer": "lion"}, figures.SKY, "v"),
    ("full, SGD", {"method": "full", "optimizer": "sgd"}, figures.GREY, "^"),
    ("BCD-1/3", {"method": "BCD", "submodels": 3, "order": "cyclic"}, figures.RED, "s"),
    ("BCD-1/6", {"method": "BCD", "submodels": 6, "order": "cyclic"}, figures.RED, "D"),
    ("a layer at a time", {"method": "BCD", "submodels": 30, "order": "cyclic"}, figures.ORANGE, "P"),
    ("LISA", {"method": "BCD", "submodels": 30, "order": "random"}, figures.YELLOW, "X"),
    ("the last third", {"method": "BCD", "submodels": 3, "order": "descending"}, figures.PINK, "<"),
    ("LoRA, rank 16", {"method": "LoRA of rank 16"}, figures.GREEN, "*"),
]


@dataclass(frozen=True)
class Tuned:
    """A method: its trainings, and how they compare with the full update of AdamW.  difference: compare.Difference,
    positive where the method is better; answer: "yes", "no" ..., of registered.answer; None of the full update."""
    name: str
    colour: str
    mark: str
    trainings: list
    difference: object
    answer: str

    def mean(self, column, scale=1.0):
        return compare.mean([one[column] * scale for one in self.trainings])[0]

    @property
    def losses(self):
        return [registered.at_the_end(one) for one in self.trainings]

    @property
    def lowest(self):
        return [float(one.evaluation["loss"].min()) for one in self.trainings]


def named(training):
    """The name of a training's method, or None."""
    return next((name for name, columns, _, _ in METHODS
                 if all(training[column] == value for column, value in columns.items())), None)


def tuned(trainings):
    """The methods that have trainings, in the order of METHODS."""
    judged = {named(made.method.first): (difference, answer)
              for made, difference, _, answer in registered.judged(Cases(trainings))}
    found = {}
    for training in trainings:
        found.setdefault(named(training), []).append(training)
    return [Tuned(name, colour, mark, found[name], *judged.get(name, (None, "")))
            for name, _, colour, mark in METHODS if name in found]


# ---- the picture --------------------------------------------------------------------------------

BYTES = [("closed_form", "parameters, gradients and state, MiB (closed form)"), ("resident", "resident in the process, MiB")]


def picture(methods):
    """Loss against bytes, a mark for each method; its line is the range of its seeds."""
    figure = Figure(figsize=(8, 3.6))
    before = np.mean([one.evaluation["loss"][0] for one in methods[0].trainings])
    for axis, (column, label) in zip(figure.subplots(1, 2, sharey=True), BYTES):
        for method in methods:
            bytes_ = method.mean(column, 1 / MIB)
            if math.isfinite(bytes_):
                axis.plot([bytes_] * 2, [min(method.losses), max(method.losses)], color=method.colour, linewidth=1.2)
                axis.plot([bytes_], [np.mean(method.losses)], method.mark, color=method.colour, markersize=7,
                          markeredgecolor=figures.INK, markeredgewidth=0.5, label=method.name)
        axis.axhline(before, color=figures.INK, linestyle=":", linewidth=0.8)
        axis.text(0.99, before, "before", ha="right", va="bottom", fontsize=8, transform=axis.get_yaxis_transform())
        axis.set_xlim(left=0)
        axis.set_xlabel(label)
        axis.grid(axis="x")
    figure.axes[0].set_ylabel("validation loss, nats per token")
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="lower center", ncol=5, fontsize=8)
    figure.subplots_adjust(left=0.08, right=0.98, top=0.97, bottom=0.29, wspace=0.06)
    return figure
