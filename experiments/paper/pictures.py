"""The pictures of the documents, as SVG."""
import statistics

import matplotlib
from matplotlib.figure import Figure

import choose
import figures
import page
import program
import record
import report
from figures import BLUE, GREEN, GREY, INK, PINK, RED

RUNS = "resnet8-cifar10-full.h5,resnet8-cifar10-bcd3.h5"
# A picture of scores against updates: its files, and the name of the case there.
SCORES = {
    "converged-resnet8.svg": ("converged.h5", "resnet8 cifar10 sgd"),
    "converged.svg": ("converged.h5", "resnet-8x8 cifar10[:10000] sgd"),
    "converged-cosine.svg": ("converged.h5", "resnet-8x8 cifar10[:10000] sgd cosine"),
    "converged-gpt.svg": ("converged.h5", "gpt-4x128 wikitext2:2048 adam"),
    "resnet8-not-augmented.svg": (RUNS, "resnet8 cifar10 sgd"),
}
CYCLE = "trace", "--model", "resnet8", "--data", "synthetic", "--limit", "500", "--batch", "64"
# Lines of the gap against the budget: network, method, name, colour, dashes.
IMAGES = [
    ("resnet8", "bcd3", "ResNet-8, all images", BLUE, "-"),
    ("half", "bcd3", "ResNet-8x8, all images", RED, "-"),
    ("half", "bcd3 every 1e", "the same, phases of an epoch", RED, "--"),
    ("half10", "bcd3", "ResNet-8x8, 10,000 images", GREEN, "-"),
    ("half10-adam", "bcd3", "the same, Adam", GREEN, ":"),
    ("resnet14", "bcd3", "ResNet-14, all images", PINK, "-."),
    ("resnet20", "bcd3", "ResNet-20, all images", GREY, "-.")]
TEXT = [("gpt", "bcd2", "GPT 4x128, BCD-1/2", BLUE, "-"), ("gpt", "bcd3", "GPT 4x128, BCD-1/3", RED, "-"),
        ("gpt", "bcd4", "GPT 4x128, BCD-1/4", GREEN, "-")]
PARTS = [k / 8 for k in range(1, 9)]
NAMES = [*SCORES, "cycle.svg", "gap.svg", *choose.PICTURES]


def scores(files, name):
    """The scores of a case."""
    found = report.Report([str(record.RESULTS / file) for file in files.split(",")]).cases.cases
    case, = (case for case in found if case.name == name)
    return figures.score(page.ShownCase(case))


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


@matplotlib.rc_context(figures.STYLE)
def draw(folder):
    """Writes all pictures into a folder, by their NAMES."""
    for name, case in SCORES.items():
        page.save(scores(*case), str(folder / name))
    page.save(figures.cycle(program.ask(*CYCLE)), str(folder / "cycle.svg"))
    page.save(gap(), str(folder / "gap.svg"))
    for name in choose.PICTURES:
        page.save(choose.PICTURES[name](choose.tuned(choose.trainings(choose.FILE))), str(folder / name))
