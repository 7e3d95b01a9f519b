"""The figures of a case (page.ShownCase): losses, scores and memory of its methods."""
import math

import numpy as np
from matplotlib.lines import Line2D

import curves
from figures import (INK, METHODS, ROLES, horizontal, label_lines, legend, logarithmic, single, stack, swatches, unit_of,
                     wrap_names)

DASHES = ["-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2))]  # lines differ in them as in colours
POINTS, MARKERS, BANDS = 240, 40, 100  # of a line; of the range around a single seed


def raw_range(x, loss):
    """Returns the range of a single seed's loss in each of up to BANDS parts."""
    parts = np.array_split(np.arange(len(loss)), max(1, min(BANDS, len(loss) // 5)))
    return ([x[p[len(p) // 2]] for p in parts], [loss[p].min() for p in parts],
            [loss[p].max() for p in parts])


def draw_methods(case, heading, label, lines, scale, markers=None):
    """Draws a line for each method, (x, values of each seed, range around a single seed, where its
    name is): the mean of the seeds and their range.  Names it at the right edge; dots lead to the
    name of a line that ends before."""
    names, right = wrap_names([method.name for method in case.methods])
    (figure, axes), ends = single(heading, 2.6, right=right), []
    for number, (x, seeds, band, end) in enumerate(lines):
        colour, mean = METHODS[number], np.mean(seeds, axis=0)
        if len(seeds) > 1:
            band = (x, np.min(seeds, axis=0), np.max(seeds, axis=0))
        if band:
            axes.fill_between(*band, color=colour, alpha=0.18, linewidth=0)
        axes.plot(x, mean, color=colour, linestyle=DASHES[number], linewidth=1.5,
                  marker=markers and markers[number], markersize=2.5, markevery=math.ceil(len(x) / MARKERS))
        ends.append((x[-1], mean[-1] if end is None else end, colour))
    scale(axes)
    edge = axes.get_xlim()[1]
    axes.set_xlim(0, edge)
    axes.set_xlabel(label)
    for x, y, colour in ends:
        axes.plot([x, edge], [y, y], color=colour, linestyle=":", linewidth=0.7)
    label_lines(axes, [(y, name, colour) for (_, y, colour), name in zip(ends, names)])
    return figure


def loss_along(case, along, label):
    """The smoothed training loss of each method."""
    every = [t.curve for method in case.methods for t in method.trainings]
    shortest = min((t for method in case.methods for t in method.trainings), key=curves.updates)
    window, lines = curves.window_of(shortest, shortest), []
    low, high = min(c["loss"].min() for c in every), max(c["loss"].max() for c in every)
    for method in case.methods:
        first, n = method.trainings[0], min(len(t.curve["step"]) for t in method.trainings)
        at = np.unique(np.linspace(0, n - 1, min(n, POINTS)).astype(int))
        seeds = [curves.smoothed(t, window)[1][at] for t in method.trainings]
        alone = len(seeds) == 1 and len(case.methods) <= 3
        band = raw_range(along(first)[:n], first.curve["loss"][:n]) if alone else None
        lines.append((np.mean([along(t)[at] for t in method.trainings], axis=0), seeds, band, None))
    return draw_methods(case, "training loss, nats per target", label, lines,
                        lambda axes: 0 < 20 * low < high and logarithmic(axes, low, high))


def loss(case):
    figure = loss_along(case, lambda t: t.curve["step"].astype(float), "updates")
    for number, method in enumerate(case.methods):
        at = [(t["steps_to_converge"], t["steps_to_converge"] / t["multiplier"], t["level"])
              for t in method.trainings if t["submodels"] > 1 and np.isfinite(t["multiplier"])]
        if at:
            own, full, level = np.mean(at, axis=0)
            figure.axes[0].plot([own, full], [level, level], "o", color=METHODS[number], markersize=4)
    return figure


def time(case):
    clocks = {t.clock for method in case.methods for t in method.trainings}
    return loss_along(case, lambda t: t.curve["seconds"], "seconds of training" if len(clocks) == 1
                      else "seconds, not all on as many threads of the same machine")


def finite(arrays):
    joined = np.concatenate(arrays)
    return joined[np.isfinite(joined)]


def score(case):
    images, lines = case.first["input"] == "images", []
    longest = max(t["steps"] for method in case.methods for t in method.trainings)
    if not longest:  # they trained nothing
        return None
    for method in case.methods:
        # One that diverged would end the line of the others.
        shown = [t for t in method.trainings if not t.has_diverged] or method.trainings
        n = min(len(t.evaluation["step"]) for t in shown)
        seeds = [curves.scores(t)[:n] for t in shown]
        lines.append((shown[0].evaluation["step"][:n], seeds, None,
                      np.mean([one[-curves.MEAN:] for one in seeds])))

    def scale(axes):
        # The first twentieth may be far from the rest, and leaves the panel.
        values = [one for _, seeds, _, _ in lines for one in seeds]
        every, rest = finite(values), finite([v[len(v) // 20:] for v in values])
        if len(rest) and images:  # not all have diverged
            axes.set_ylim(rest.min() - 1, every.max() + 1)
        elif len(rest):
            logarithmic(axes, every.min(), rest.max())
            axes.set_ylim(every.min() / 1.05, 1.05 * rest.max())
        axes.set_xlim(0, longest)

    return draw_methods(case, "validation accuracy, %" if images else "validation perplexity",
                        "updates", lines, scale, "os^vDP")


def memory(case):
    firsts = [method.trainings[0] for method in case.methods]
    # What another program trained has no peaks, and no bar.
    bars = {role: np.nan_to_num([first[f"peak_{role}"] for first in firsts]) for role in ROLES}
    longest = max(sum(bars.values()))
    if not longest > 0:
        return None
    unit, unit_name = unit_of(longest)
    names, left = wrap_names([method.name for method in case.methods])
    figure, axes = single("peak memory by role", 0.34 * len(names), 0.82, left=left, right=0.7)
    ends = stack(axes, {role: sizes / unit for role, sizes in bars.items()})
    for row, first in enumerate(firsts):
        form = first["closed_form"] / unit
        if ends[row]:
            axes.text(ends[row], row, f" {ends[row]:.3g}", va="center", fontsize=8)
        if np.isfinite(form):
            axes.plot([form, form], [row - 0.42, row + 0.42], color=INK, linewidth=2)
    horizontal(axes, names, unit_name)
    line = Line2D([], [], color=INK, linewidth=2, label="closed form")
    legend(figure, swatches(role for role in ROLES if bars[role].any()) + [line], 4)
    return figure


CASE_FIGURES = [  # what draws it, the part of a training that it needs, the caption
    (loss, "curve", "Training loss against updates, smoothed. Band: of several seeds from the lowest to the "
     "highest; of one, where there are few lines, every batch. Dots, in BCD's colour: where BCD and "
     "the full update first were at the loss they are compared at."),
    (score, "evaluation", "Validation score as the training went on; of several seeds the mean and "
     "the range. A name and its dots are at the mean of the last five evaluations."),
    (memory, None, "Measured peak of each role of memory. The line across a bar: the closed form "
     "W (1 + (1 + k)/M) for parameters, gradients and optimizer state, which leaves activations out."),
    (time, "curve", "The same training loss against seconds of training."),
]


def of_case(case):
    """The name, the figure (None where its numbers are not known) and the caption of each."""
    for make, part, caption in CASE_FIGURES:
        known = all(len(getattr(t, part)["step"]) for m in case.methods for t in m.trainings) \
            if part else True
        yield make.__name__, make(case) if known else None, caption
