#!/usr/bin/env python3
"""Draws the figures of README.md from what the lesson prints:

    build/lesson | ref/lesson/figures.py ref/lesson

The numbers are those of the tables, and the SVG is written here, so that the same output gives the same bytes."""
import math
import pathlib
import re
import sys

COLORS = ["#1f5fa8", "#c8501e", "#3a8a3f", "#7a7a7a"]
LEFT, TOP, WIDTH, HEIGHT = 90, 46, 420, 200
AXES = f'<rect x="{LEFT}" y="{TOP}" width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="#999"/>'


def text(x, y, words, anchor="middle", color="#222", size=13):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{color}" font-size="{size}">{words}</text>'


def rect(x, y, width, height, color):
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{color}"/>'


def svg(title, parts, width=700, height=TOP + HEIGHT + 54):
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
                      f'viewBox="0 0 {width} {height}" font-family="sans-serif">', f"<title>{title}</title>",
                      rect(0, 0, width, height, "#fff"), text(LEFT, 24, title, "start", size=15), *parts, "</svg>", ""])


def scale(low, high, start, length, log):
    of = math.log if log else float
    return lambda value: start + length * (of(value) - of(low)) / (of(high) - of(low))


def lines(title, x_name, y_name, xs, series, x_range, y_range, x_log=False, y_log=False, y_ticks=()):
    """series: {name: ys}; y_ticks: the numbers to write at the left."""
    to_x, to_y = scale(*x_range, LEFT, WIDTH, x_log), scale(*y_range, TOP + HEIGHT, -HEIGHT, y_log)
    parts = [AXES, text(LEFT + WIDTH / 2, TOP + HEIGHT + 42, x_name), text(LEFT, TOP - 6, y_name, "start", size=11)]
    parts += [text(to_x(x), TOP + HEIGHT + 20, f"{x:g}") for x in xs]
    parts += [text(LEFT - 8, to_y(y) + 4, f"{y:g}", "end") for y in y_ticks]
    for i, (name, ys) in enumerate(series.items()):
        points = [(to_x(x), to_y(y)) for x, y in zip(xs, ys)]
        parts.append(f'<polyline fill="none" stroke="{COLORS[i]}" stroke-width="2" points="'
                     + " ".join(f"{x:.1f},{y:.1f}" for x, y in points) + '"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{5 - i}" fill="{COLORS[i]}"/>' for x, y in points]
        parts.append(text(LEFT + WIDTH + 14, TOP + 16 + 20 * i, name, "start", COLORS[i]))
    return svg(title, parts)


def stored(rows):
    """One row for the full update and for each phase: what is stored, and what has a gradient."""
    parts = []
    names = [f"value {v}" for v in range(1, 6)] + [f"weights {b}" for b in range(3)]
    for column, name in enumerate(names):
        parts.append(text(140 + 68 * column, TOP + 10, name, size=11))
        for row, (label, cells) in enumerate(rows):
            y, cell = TOP + 20 + 34 * row, cells[column]
            parts.append(rect(110 + 68 * column, y, 60, 26, COLORS[0] if "S" in cell else "#e8e8e8"))
            if "G" in cell:
                parts.append(rect(110 + 68 * column, y + 20, 60, 6, COLORS[1]))
            if column == 0:
                parts.append(text(98, y + 18, label, "end"))
    y = TOP + 20 + 34 * len(rows) + 18
    parts += [rect(110, y - 11, 14, 14, COLORS[0]), text(130, y, "stored for the backward pass", "start", size=11),
              rect(330, y - 6, 14, 6, COLORS[1]), text(350, y, "a gradient exists", "start", size=11)]
    return svg("3. What each phase stores", parts, height=y + 20)


def memory(rows):
    """Weights, gradients and Adam's state as bars that end at the sum; activations apart, at their own scale."""
    parts = []
    for row, (label, weights, gradients, adam, total, form, activations) in enumerate(rows):
        x, y = 100.0, TOP + 20 + 34 * row
        parts.append(text(92, y + 18, label, "end"))
        for size, color in ((weights, COLORS[3]), (gradients, COLORS[1]), (adam, COLORS[0])):
            parts.append(rect(x, y, size / 16, 26, color))
            x += size / 16
        parts += [rect(100 + form / 16 - 1, y - 3, 2, 32, "#000"), rect(500, y, activations / 440, 26, COLORS[2]),
                  text(x + 8 if total < form else 108 + total / 16, y + 18, str(total), "start", size=11),
                  text(506 + activations / 440, y + 18, str(activations), "start", size=11)]
    y = TOP + 20 + 34 * len(rows) + 18
    x = 100
    for name, color in (("weights", COLORS[3]), ("gradients", COLORS[1]), ("Adam", COLORS[0]),
                        ("W (1 + 3/M)", "#000"), ("activations", COLORS[2])):
        parts += [rect(x, y - 11, 14, 14, color), text(x + 20, y, name, "start", size=11)]
        x += 110
    return svg("4. Bytes", parts, height=y + 20)


def dots(rows):
    to_x = scale(0.466, 0.474, 170, 420, False)
    parts = [text(to_x(x), TOP + 180, f"{x:g}") for x in (0.466, 0.470, 0.474)]
    for row, (label, loss) in enumerate(rows):
        y = TOP + 24 + 30 * row
        parts += [text(160, y + 4, label, "end"), f'<circle cx="{to_x(loss):.1f}" cy="{y}" r="5" '
                  f'fill="{COLORS[0 if loss == rows[0][1] else 1]}"/>', text(to_x(loss) + 12, y + 4, f"{loss:.6f}", "start", size=11)]
    return svg("5. The loss of update 400", parts, height=TOP + 200)


def figures(output):
    """Returns {name: svg} of the text that the lesson printed."""
    chapter = {int(part[0]): part.splitlines() for part in re.split(r"\n(?=\d\. )", output)}
    numbers = lambda line: [float(word) for word in re.findall(r"-?\d+\.?\d*(?:e[-+]\d+)?", line)]
    table = lambda number, first: [numbers(line) for line in chapter[number][first:] if line]
    losses = lambda number: [numbers(line) for line in chapter[number] if "loss of update" in line]
    labelled = lambda number, first, rows: [(line[3:11].strip(), line[11:].split()) for line in chapter[number][first:first + rows]]
    h, weights, inputs, gelu = zip(*table(1, 2))
    updates, full = zip(*losses(2))
    coupling, formula, measured, half = zip(*table(6, 2))
    layers, _, _, bcd, descent = zip(*table(7, 2))
    return {
        "chapter1": lines("1. Central differences", "h", "error", h,
                          {"linear, weights": weights, "linear, input": inputs, "GELU, input": gelu},
                          (2e-1, 5e-4), (1e-8, 1), True, True, (1e-8, 1e-6, 1e-4, 1e-2, 1)),
        "chapter2": lines("2, 3. The loss", "updates", "loss", updates,
                          {"full update": full, "BCD, M = 3": [loss for _, loss in losses(3)]},
                          (60, 840), (0.01, 3), False, True, (0.01, 0.1, 1)),
        "chapter3": stored(labelled(3, 2, 4)),
        "chapter4": memory([(label, *map(int, cells)) for label, cells in labelled(4, 1, 4)]),
        "chapter5": dots([(line[3:21].strip(), float(line[21:29])) for line in chapter[5][1:6]]),
        "chapter6": lines("6. The error per cycle of exact BCD on a quadratic", "coupling c", "error per cycle", coupling,
                          {"c^(3/2)": formula, "measured": measured, "half steps": half},
                          (0.45, 1), (0, 1), y_ticks=(0, 0.5, 1)),
        "chapter7": lines("7. Updates until the derivatives are below 1e-8", "layers M", "updates", layers,
                          {"full update": descent, "BCD": bcd}, (1.7, 19), (100, 1e6), True, True, (100, 1e4, 1e6)),
    }


def main():
    folder = pathlib.Path(sys.argv[1])
    for name, drawing in figures(sys.stdin.read()).items():
        (folder / f"{name}.svg").write_text(drawing)


if __name__ == "__main__":
    main()
