"""The figures of a report, drawn by matplotlib, of cases (page.ShownCase) and tables."""
import io
import math
import re
import textwrap
from typing import NamedTuple

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator

import curves

# Okabe and Ito's colours, distinct for every kind of colour vision; lines differ in dashes too.
BLUE, RED, GREEN, PINK, SKY, ORANGE, YELLOW, GREY = (
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#f0e442", "#999999")
METHODS = [BLUE, RED, GREEN, PINK, SKY, ORANGE]
DASHES = ["-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2))]
ROLES = {"parameters": BLUE, "buffers": GREY, "gradients": ORANGE, "state": GREEN,
         "activations": SKY, "cache": PINK, "workspace": YELLOW}
ROLE_NAMES = {"state": "optimizer state"}
INK, SOFT, LINE = "#1c1c1a", "#5c5c57", "#dcdcd6"  # the page replaces these

WIDTH, LEFT, RIGHT, TOP, BOTTOM = 5.8, 0.72, 0.15, 0.36, 0.5  # inches
POINTS, MARKERS, BANDS = 240, 40, 100  # of a line; of the range around a single seed
STYLE = {  # of the figures; page.py draws with it
    "font.family": "sans-serif", "font.sans-serif": ["DejaVu Sans", "Verdana", "sans-serif"],
    "font.size": 9, "svg.fonttype": "none", "pdf.fonttype": 42, "svg.hashsalt": "bcd",
    "text.parse_math": False, "text.color": INK, "axes.edgecolor": SOFT, "axes.labelcolor": INK,
    "xtick.color": INK, "ytick.color": INK, "axes.spines.top": False, "axes.spines.right": False,
    "axes.grid": True, "axes.grid.axis": "y", "axes.axisbelow": True, "grid.color": LINE,
    "grid.linewidth": 0.6, "legend.frameon": False, "hatch.linewidth": 0.5}


def svg(figure, prefix):
    """Returns the drawing as SVG for a page: with unique ids, without size, metadata and control characters."""
    out = io.StringIO()
    figure.savefig(out, format="svg", transparent=True,
                   metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    text = out.getvalue()
    text = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg"):], flags=re.S)
    text = re.sub(r' (width|height)="[0-9.]+pt"', "", text, count=2)
    return re.sub(r'( id="|href="#|url\(#)', rf"\g<1>{prefix}-", clean(text))


def clean(text):
    """A text without control characters, which names from a file may hold."""
    return "".join(c if c >= " " or c == "\n" else "\ufffd" for c in text)


# ---- parts of figures ---------------------------------------------------------------------------

def start(heading, height):
    figure = Figure(figsize=(WIDTH, height))
    figure.text(0.06 / WIDTH, 1 - 0.06 / height, heading, va="top", fontsize=10)
    return figure


def panel(figure, top, height, left=LEFT, right=RIGHT):
    """Axes between two heights, in inches from the top."""
    whole = figure.get_figheight()
    return figure.add_axes([left / WIDTH, 1 - (top + height) / whole,
                            (WIDTH - left - right) / WIDTH, height / whole])


def single(heading, height, top=TOP, below=BOTTOM, **edges):
    """A figure of one panel."""
    figure = start(heading, top + height + below)
    return figure, panel(figure, top, height, **edges)


def wrap_names(names):
    """Wraps the names of methods; returns them and the inches they take next to a panel."""
    lines = ["\n".join(textwrap.wrap(name, 22)) or name for name in names]
    return lines, 0.12 + 0.078 * max(len(part) for line in lines for part in line.split("\n"))


def label_lines(axes, ends):
    """Names the lines at the right edge without overlaps; ends: (y, text, colour)."""
    lowest = -np.inf
    height = axes.get_position().height * axes.figure.get_figheight()
    placed = [(axes.transAxes.inverted().transform(axes.transData.transform((0, y)))[1], text, colour)
              for y, text, colour in ends if np.isfinite(y)]
    for y, text, colour in sorted(placed):
        half = 0.075 * (text.count("\n") + 1) / height
        y = max(y, lowest + half)
        lowest = y + half
        axes.text(1.015, y, text, color=colour, va="center", transform=axes.transAxes)


def logarithmic(axes, low, high):
    ratio = high / low
    steps = (1, 1.5, 2, 3, 5, 7) if ratio < 12 else (1, 2, 5) if ratio < 1200 else (1,)
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=steps))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))
    axes.minorticks_off()


def unit_of(longest):
    """The largest unit in which the longest bar is more than two."""
    scale = max(k for k in range(4) if k == 0 or longest > 2 * 1024**k)
    return 1024**scale, ("bytes", "KiB", "MiB", "GiB")[scale]


def horizontal(axes, names, label=None):
    """Rows from top to bottom with their names at the left, along an axis of this label."""
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.grid(False)
    axes.grid(axis="x")
    axes.set_xlabel(label)


def stack(axes, sizes, opaque=None):
    """Draws the sizes of each role, {role: sizes[row]}, behind one another; returns where the bars
    end.  opaque: of each row, 0 to 1."""
    begin = np.zeros(len(next(iter(sizes.values()))))
    for role, size in sizes.items():
        for row in np.flatnonzero(size):
            axes.barh(row, size[row], left=begin[row], height=0.66, color=ROLES[role],
                      alpha=opaque and opaque[row])
        begin = begin + size
    return begin


def legend(figure, handles, columns):
    figure.legend(handles=handles, loc="upper left", ncols=columns, fontsize=8, handlelength=1.4,
                  bbox_to_anchor=(0, 1 - 0.22 / figure.get_figheight()), columnspacing=1.2)


def swatch(colour, label, **how):
    return matplotlib.patches.Patch(color=colour, label=label, linewidth=0, **how)


def swatches(roles):
    return [swatch(ROLES[role], ROLE_NAMES.get(role, role)) for role in roles]


# ---- curves of a case ---------------------------------------------------------------------------

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
        axes.set_xlim(0, max(t["steps"] for method in case.methods for t in method.trainings))

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
    line = matplotlib.lines.Line2D([], [], color=INK, linewidth=2, label="closed form")
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


# ---- tables -------------------------------------------------------------------------------------

class Series(NamedTuple):
    """A numeric column; second: what was simulated of the column before, or one of more than there are colours."""
    head: str
    y: np.ndarray
    colour: str
    second: bool
    mark: str


def numbers(table, name):
    return np.array([cell.value for cell in table.column(name)], float)


def series_of(table):
    """The numeric columns that have numbers."""
    number, before = -1, None
    for column in table.columns:
        if column.kind not in ("number", "per cent"):
            continue
        second = before is not None and column.name == before + "_simulated"
        number, before = number + (not second), column.name
        y = numbers(table, column.name) * (100 if column.kind == "per cent" else 1)
        if np.isfinite(y).any():
            yield Series(column.head, y, METHODS[number % len(METHODS)], second or number >= len(METHODS),
                         "os^"[number % 3])


def draw_series(axes, table, series, x):
    """Lines, or bars side by side; returns what a legend needs."""
    handles, wide = [], 0.8 / len(series)
    for number, c in enumerate(series):
        if table.figure == "lines":
            handles += axes.plot(x, c.y, color=c.colour, linestyle="--" if c.second else "-",
                                 linewidth=1.5, marker=c.mark, markersize=4, label=c.head,
                                 markerfacecolor="none" if c.second else c.colour)
        else:
            how = {"alpha": 0.45} if c.second else {}
            axes.bar(x + (number - (len(series) - 1) / 2) * wide, np.nan_to_num(c.y), 0.92 * wide,
                     color=c.colour, **how)
            handles.append(swatch(c.colour, c.head, **how))
    return handles


def bars_or_lines(table):
    series = list(series_of(table))
    if not series or not table.labels:
        return None
    slanted = sum(map(len, table.labels)) + 2 * len(table.labels) > 62
    names, right = wrap_names([c.head for c in series])
    direct = table.figure == "lines" and len(series) <= 8
    below = BOTTOM + (min(1.4, 0.05 * max(map(len, table.labels))) if slanted else 0)
    top = TOP + (0 if direct else 0.2 * -(-len(series) // 3))
    figure, axes = single(table.axis, 2.6, top, below, right=right if direct else RIGHT)
    x = np.arange(len(table.labels))
    handles = draw_series(axes, table, series, x)
    axes.set_xticks(x, table.labels, **({"rotation": 30, "ha": "right", "fontsize": 8,
                                         "rotation_mode": "anchor"} if slanted else {}))
    axes.set_xlim(-0.6, len(x) - 0.4)
    axes.set_ylim(bottom=0)
    axes.set_xlabel(table.head)
    if direct:
        label_lines(axes, [(c.y[np.isfinite(c.y)][-1], name, c.colour)
                           for c, name in zip(series, names)])
    else:
        legend(figure, handles, 3)
    return figure


def timeline(table):
    """Draws a line for each rank, a colour for each pass; of a long step only the beginning."""
    passes = {"forward": SKY, "input gradient": BLUE, "weight gradient": ORANGE}
    tasks = [cell.value for cell in table.column("task")]
    begin, end = numbers(table, "start"), numbers(table, "end")
    ranks = list(dict.fromkeys(table.labels))
    until = end.max() * min(1, 2000 / len(table.labels))
    figure, axes = single("who computes what, simulated", 0.3 * len(ranks), 0.6)
    for name, colour in passes.items():
        for row, rank in enumerate(ranks):
            bars = [(b, min(e, until) - b - min(until / 300, (e - b) / 4))
                    for label, task, b, e in zip(table.labels, tasks, begin, end)
                    if label == rank and task == name and b < until]
            if bars:
                axes.broken_barh(bars, (row - 0.4, 0.8), facecolors=colour, linewidth=0)
    horizontal(axes, ranks, "ms (beginning)" if until < end.max() else "ms")
    axes.grid(False)
    axes.set_xlim(0, until)
    legend(figure, [swatch(colour, name) for name, colour in passes.items() if name in tasks], 3)
    return figure


def of_table(table):
    """The figure of a table, or None."""
    if table.figure == "timeline":
        return timeline(table)
    return bars_or_lines(table) if table.figure else None


def cycle(tables):
    """One BCD cycle from the tables of `bcd trace`: what every block holds while each submodel
    trains.  None where they are no such tables."""
    halves = [("parameters", "gradients", "state"), ("activations",)]
    needed = {"part", *sum(halves, ())}
    panels = [t for t in tables if t.name.startswith("submodel_") and needed <= {c.name for c in t.columns}][:16]
    panels = [t for t in panels if len(t.labels) == len(panels[0].labels)]
    if not panels:
        return None
    held = [[{role: np.nan_to_num(numbers(t, role)) for role in half} for half in halves] for t in panels]
    longest = [max(sum(h[half].values()).max() for h in held) for half in (0, 1)]
    if not min(longest) > 0:
        return None
    blocks, gap, top = len(panels[0].labels), 0.34, 0.52
    high = blocks * min(0.22, max(0.06, 3.0 / blocks))
    every = max(1, int(0.14 * blocks / high))
    figure = start("what each block holds while a submodel trains",
                   top + len(panels) * (gap + high) + BOTTOM)
    legend(figure, swatches(role for half in halves for role in half), 4)
    for number, t in enumerate(panels):
        parts, last = [cell.value for cell in t.column("part")], number + 1 == len(panels)
        for half, (edges, what) in enumerate([((0.85, 2.65), "weights"), ((3.85, 0.15), "activations")]):
            axes = panel(figure, top + number * (gap + high) + gap, high, *edges)
            unit, unit_name = unit_of(longest[half])
            for row in [r for r in range(blocks) if parts[r] == "active"]:
                axes.axhspan(row - 0.5, row + 0.5, color=GREY, alpha=0.2, linewidth=0)
            stack(axes, {role: sizes / unit for role, sizes in held[number][half].items()},
                  [1 if part == "active" else 0.45 for part in parts])
            horizontal(axes, [name if row % every == 0 else "" for row, name in
                              enumerate(parts if half else t.labels)],
                       f"{what}, {unit_name}" if last else None)
            axes.set_xlim(0, 1.05 * longest[half] / unit)
            axes.xaxis.set_major_locator(MaxNLocator(5))
            axes.tick_params(labelbottom=last)
            if half == 0:
                axes.set_title(f"submodel {t.name[9:]} is active", loc="left", fontsize=9, pad=3, x=-0.34)
    return figure
