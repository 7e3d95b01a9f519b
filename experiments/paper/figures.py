"""What all figures are made of, drawn by matplotlib: colours, sizes, panels, and parts such as legends."""
import io
import re
import textwrap

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, LogLocator

# Okabe and Ito's colours, distinct for every kind of colour vision.
BLUE, RED, GREEN, PINK, SKY, ORANGE, YELLOW, GREY = (
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#f0e442", "#999999")
METHODS = [BLUE, RED, GREEN, PINK, SKY, ORANGE]
ROLES = {"parameters": BLUE, "buffers": GREY, "gradients": ORANGE, "state": GREEN,
         "activations": SKY, "cache": PINK, "workspace": YELLOW}
ROLE_NAMES = {"state": "optimizer state"}
INK, SOFT, LINE = "#1c1c1a", "#5c5c57", "#dcdcd6"  # the page replaces these

WIDTH, LEFT, RIGHT, TOP, BOTTOM = 5.8, 0.72, 0.15, 0.36, 0.5  # inches
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
    return Patch(color=colour, label=label, linewidth=0, **how)


def swatches(roles):
    return [swatch(ROLES[role], ROLE_NAMES.get(role, role)) for role in roles]
