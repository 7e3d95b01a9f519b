"""The figures of tables: bars, lines, timelines, and a cycle of BCD."""
from typing import NamedTuple

import numpy as np
from matplotlib.ticker import MaxNLocator

from figures import (BLUE, BOTTOM, GREY, METHODS, ORANGE, RIGHT, SKY, TOP, horizontal, label_lines, legend, panel, single,
                     stack, start, swatch, swatches, unit_of, wrap_names)


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
