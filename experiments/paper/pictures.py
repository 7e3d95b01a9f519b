"""The pictures of the documents, as SVG."""
import math
import statistics

import matplotlib
import numpy as np
from matplotlib.figure import Figure

import choose
import figures
import figures_of_cases
import figures_of_tables
import page
import program
import record
from figures import BLUE, GREEN, GREY, INK, PINK, RED
from tables import MIB

# Pictures of the scores of a network's case against updates.
SCORES = {
    "converged-resnet8.svg": "resnet8", "converged.svg": "half10", "converged-cosine.svg": "half10-cosine",
    "converged-gpt.svg": "gpt", "plateau.svg": "half-longest", "plateau-cosine.svg": "half-longest-cosine",
    "no-augmentation.svg": "half-plain",
    "no-augmentation-adam.svg": "half-plain-adam", "resnet8-not-augmented.svg": "resnet8-plain"}
CYCLE = "trace", "--model", "resnet8", "--data", "synthetic", "--limit", "500", "--batch", "64"
# Lines of the gap against the budget: network, method, name, colour, dashes.
IMAGES = [
    ("resnet8", "BCD-1/3", "ResNet-8, all images", BLUE, "-"),
    ("half", "BCD-1/3 every 40", "ResNet-8x8, all images", RED, "-"),
    ("half", "BCD-1/3 every 1e", "the same, phases of an epoch", RED, "--"),
    (*record.LONGEST, "the same, longest", RED, ":"),
    ("half10", "BCD-1/3 every 40", "ResNet-8x8, 10,000 images", GREEN, "-"),
    ("half10-adam", "BCD-1/3", "the same, Adam", GREEN, ":"),
    ("resnet14", "BCD-1/3", "ResNet-14, all images", PINK, "-."),
    ("resnet20", "BCD-1/3", "ResNet-20, all images", GREY, "-.")]
TEXT = [("gpt", "BCD-1/2", "GPT 4x128, BCD-1/2", BLUE, "-"), ("gpt", "BCD-1/3", "GPT 4x128, BCD-1/3", RED, "-"),
        ("gpt", "BCD-1/4", "GPT 4x128, BCD-1/4", GREEN, "-")]
PARTS = [k / 8 for k in range(1, 9)]
# Against which bytes the losses of fine-tuning are drawn.
BYTES = [(lambda each: each.trained, "parameters, gradients, state, MiB (LoRA: closed form)"),
         (lambda each: each.mean("resident", 1 / MIB), "resident in the process, MiB")]


def gap():
    """BCD - full update, when both stop at a part of their budgets, a line for each network."""
    figure = Figure(figsize=(8, 4))
    axes = figure.subplots(1, 2, gridspec_kw={"width_ratios": (3, 2)})
    panels = [(IMAGES, "points of accuracy", "images: below 0 BCD is behind", 2),
              (TEXT, "perplexity", "text: above 0 BCD is behind", 1)]
    for axis, (lines, unit, title, columns) in zip(axes, panels):
        axis.axhline(0, color=INK, linewidth=0.8)
        for network, method, label, colour, dashes in lines:
            means = [statistics.fmean(record.gaps(network, method, part)) for part in PARTS]
            axis.plot([100 * part for part in PARTS], means, color=colour, linestyle=dashes, marker="o", markersize=3,
                      label=label)
        axis.set_title(title, fontsize=9)
        axis.set_xlabel("part of the budget of both, %")
        axis.set_ylabel("BCD - full update, " + unit)
        axis.set_xlim(left=0)
        axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncol=columns, fontsize=7.5)
    figure.subplots_adjust(left=0.08, right=0.98, top=0.93, bottom=0.33, wspace=0.25)
    return figure


# ---- fine-tuning ---------------------------------------------------------------------------------

def against_bytes(found):
    """Loss against bytes of what choose.tuned() found, a mark for each method; its line is the range of its seeds."""
    figure = Figure(figsize=(8, 3.6))
    before = np.mean([one.evaluation["loss"][0] for one in found[0].trainings])
    for axis, (bytes_of, label) in zip(figure.subplots(1, 2, sharey=True), BYTES):
        for each in found:
            size, method = bytes_of(each), each.method
            if math.isfinite(size):
                axis.plot([size] * 2, [min(each.losses), max(each.losses)], color=method.colour, linewidth=1.2)
                axis.plot([size], [np.mean(each.losses)], method.mark, color=method.colour, markersize=7,
                          markeredgecolor=INK, markeredgewidth=0.5, label=method.name)
        axis.set_xlim(left=0)
        axis.set_xlabel(label)
        axis.grid(axis="x")
    return with_legend(figure, f"validation loss (before: {before:.2f})")


def with_legend(figure, label):
    figure.axes[0].set_ylabel(label)
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="lower center", ncol=5, fontsize=8)
    figure.subplots_adjust(left=0.08, right=0.98, top=0.97, bottom=0.29, wspace=0.06)
    return figure


def on_the_way(found):
    """Loss against tokens and against seconds of training, a line for each method: the means over its seeds, and the time
    of its updates on an idle machine."""
    figure, speed, first = Figure(figsize=(8, 3.6)), choose.seconds_per_update(), found[0].trainings[0]
    tokens = first["batch"] * first.setting("context")
    axes = [(lambda name: tokens / 1e3, "thousand tokens trained on"),
            (lambda name: speed.get(name, math.nan), "seconds of training (LoRA: by PyTorch)")]
    for axis, (of_an_update, label) in zip(figure.subplots(1, 2, sharey=True), axes):
        for each in found:
            updates = each.trainings[0].evaluation["step"].astype(float)
            axis.plot(updates * of_an_update(each.method.name),
                      np.mean([one.evaluation["loss"] for one in each.trainings], axis=0),
                      color=each.method.colour, marker=each.method.mark, markersize=4, linewidth=1, label=each.method.name)
        axis.set_xlim(left=0)
        axis.set_xlabel(label)
    return with_legend(figure, "validation loss")


CHOOSE = {"choose.svg": against_bytes, "choose-way.svg": on_the_way}
NAMES = [*SCORES, "cycle.svg", "gap.svg", *CHOOSE]


# ---- all -----------------------------------------------------------------------------------------

@matplotlib.rc_context(figures.STYLE)
def draw(folder):
    """Writes all pictures into a folder, by their NAMES."""
    for name, network in SCORES.items():
        page.save(figures_of_cases.score(page.ShownCase(record.case(network))), str(folder / name))
    page.save(figures_of_tables.cycle(program.ask(*CYCLE)), str(folder / "cycle.svg"))
    page.save(gap(), str(folder / "gap.svg"))
    for name, picture in CHOOSE.items():
        page.save(picture(choose.tuned(choose.trainings(choose.FILE))), str(folder / name))
