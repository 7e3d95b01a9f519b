"""The picture of the gap between BCD and the full update against the budget: gap.svg."""
import io
import re
import statistics

import matplotlib
from matplotlib.figure import Figure

import record

BLUE, RED, GREEN, PINK, SKY, ORANGE, GREY = "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#999999"
IMAGES = [("resnet8", "bcd3", BLUE, "-"), ("half", "bcd3", RED, "-"), ("half", "bcd3 every 1e", RED, "--"),
          ("half10", "bcd3", GREEN, "-"), ("half10-adam", "bcd3", GREEN, ":"), ("resnet14", "bcd3", PINK, "-."),
          ("resnet20", "bcd3", GREY, "-.")]
TEXT = [("gpt", "bcd2", BLUE, "-"), ("gpt", "bcd3", RED, "-"), ("gpt", "bcd4", GREEN, "-")]
PARTS = [k / 8 for k in range(1, 9)]
SETTINGS = {"font.family": "sans-serif", "font.sans-serif": ["DejaVu Sans", "Verdana", "sans-serif"], "font.size": 9,
            "svg.fonttype": "none", "svg.hashsalt": "bcd", "axes.spines.top": False, "axes.spines.right": False,
            "axes.grid": True, "grid.linewidth": 0.4, "legend.frameon": False, "legend.fontsize": 7.5}
LABELS = {"half10-adam": "ResNet-8x8, 10,000 images, Adam"}


def draw():
    """The text of the picture."""
    with matplotlib.rc_context(SETTINGS):
        figure = Figure(figsize=(8, 4))
        axes = figure.subplots(1, 2, gridspec_kw={"width_ratios": (3, 2)})
        for axis, lines, label in zip(axes, (IMAGES, TEXT), ("points of accuracy (%)", "perplexity")):
            axis.axhline(0, color="#1c1c1a", linewidth=0.8)
            for network, method, colour, dash in lines:
                means = [statistics.fmean(record.gaps(network, method, part)) for part in PARTS]
                axis.plot([100 * part for part in PARTS], means, color=colour, linestyle=dash, marker="o", markersize=3,
                          label=title(network, method))
            axis.set_xlabel("part of the budget of both (%)")
            axis.set_ylabel("BCD - full update, " + label)
            axis.set_xlim(left=0)
        axes[0].set_title("images: below 0 BCD is behind", fontsize=9)
        axes[1].set_title("text: above 0 BCD is behind", fontsize=9)
        for axis, columns in zip(axes, (2, 1)):
            axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncol=columns)
        figure.subplots_adjust(left=0.08, right=0.98, top=0.93, bottom=0.33, wspace=0.25)
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    text = re.sub(r"\s*<metadata>.*?</metadata>", "", out.getvalue(), flags=re.S)
    start = text.index("<svg")
    return f'<?xml version="1.0" encoding="utf-8"?>\n<!-- matplotlib {matplotlib.__version__} -->\n' + text[start:]


def title(network, method):
    label = LABELS.get(network) or record.NETWORKS[network][0]
    _, _, phase = method.partition(" every ")
    if network.startswith("gpt"):
        return f"GPT 4x128, BCD-1/{method[3:]}"
    return label + (", phases of an epoch" if phase == "1e" else "")
