#!/usr/bin/env python3
"""Renders the documents: their text is in sources (jinja2), their numbers are in the files of results.

    experiments/paper/render.py [--check] [BCD]

A source calls what `functions` returns: {{ cell("converged.h5", "converged", "resnet8 cifar10 sgd full", 7) }} is a
cell of a table that the program (BCD, by default build/bcd) prints of a committed file.  Pictures are
figures that the program draws.  --check writes nothing, names the documents that are not as rendered now, and then exits
with 1."""
import functools
import pathlib
import re
import subprocess
import sys
import tempfile

import jinja2

ROOT = pathlib.Path(__file__).resolve().parents[2]
RESULTS = ROOT / "experiments" / "results"
DOCUMENTS = {
    "experiments/paper_repro.md.in": "paper_repro.md",
    "experiments/appendix.md.in": "experiments/results/appendix.md",
}
# A picture, and its name among the figures of `bcd report converged.h5`, without the number of the case.
PICTURES = {
    "converged-resnet8.svg": "resnet8-cifar10-sgd-score",
    "converged.svg": "resnet-8x8-cifar10--10000--sgd-score",
    "converged-cosine.svg": "resnet-8x8-cifar10--10000--sgd-cosine-score",
    "converged-gpt.svg": "gpt-4x128-wikitext2-2048-adam-score",
    "cycle.svg": "cycle",
}
CYCLE = "trace --model resnet8 --data synthetic --limit 500 --batch 64 --figure"
# Student's t (two-sided, 95 %) over the root of the seeds: a mean is beyond chance when it is more than that times
# its spread.
BEYOND_CHANCE = {3: 2.484, 4: 1.591, 5: 1.242}


@functools.lru_cache(maxsize=None)
def report(program, files, name):
    paths = [str(RESULTS / file) for file in files.split(",")]
    command = [program, "report", "--markdown", "--table", name, *paths]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def without_columns(text, words):
    """The table without the columns whose heads have one of the words, and without its title or legend."""
    lines = text.splitlines(keepends=True)
    if "title" in words:
        lines = lines[2:]
    if "legend" in words:
        legend = next(number for number, line in enumerate(lines) if line[:2] in ("m ", "s ", "c ", "r ", "p "))
        del lines[legend - 1:legend + 1]
    rows = [number for number, line in enumerate(lines) if line.startswith("|")]
    left_out = {c for c, head in enumerate(lines[rows[0]].split("|")) if any(word in head for word in words)}
    for row in rows:
        lines[row] = "|".join(part for c, part in enumerate(lines[row].split("|")) if c not in left_out)
    return "".join(lines)


def functions(program):
    """What a source calls, by name.  Each document has its own, because a table's note is printed once."""
    printed = set()

    def table(files, name, without=""):
        text = report(program, files, name)
        if without:
            text = without_columns(text, without.split(","))
        kept = []
        for line in text.rstrip("\n").split("\n"):
            if not line.startswith("- ") or line not in printed:
                kept.append(line)
            printed.add(line)
        return "\n".join(kept).rstrip("\n") + "\n"

    def rows_of(files, name):
        """The cells of each row, without the marks of their sources."""
        lines = [line for line in report(program, files, name).splitlines() if line.startswith("|")]
        return [[re.sub(r" [mscrp]$", "", part.strip()) for part in line[1:-1].split("|")] for line in lines[2:]]

    def cell(files, name, row, column):
        for cells in rows_of(files, name):
            if cells[0] == row and len(cells) > column:
                return cells[column]
        sys.exit(f"{files} {name}: no row {row!r} with a column {column}")

    def total(files, name, column):
        """The sum of whole numbers in a column."""
        return sum(int(cells[column] or 0) for cells in rows_of(files, name))

    def count(files, name, column, word=None):
        """How many cells of a column hold the word; without one, anything."""
        cells = [row[column] for row in rows_of(files, name)]
        return sum(word in cell if word else cell != "" for cell in cells)

    def hours(file):
        """Of training, evaluations left out: the table has the mean seconds of each row's seeds."""
        return f"{sum(int(row[1]) * float(row[9].split()[0]) for row in rows_of(file, 'trainings')) / 3600:.2g}"

    def verdict(files, name, row, column):
        """What a difference of scores says of BCD."""
        seeds = int(cell(files, name, row, 1))
        mean, *spread = (float(part) for part in cell(files, name, row, column).split(" ± "))
        side = "behind" if (mean > 0) == row.startswith("gpt") else "ahead"  # a higher perplexity is worse
        if seeds == 1:
            return side + ", one seed"
        if seeds == 2:  # they are half the distance from the mean, which is the spread over the root of 2
            return side + " with both seeds" if abs(mean) > spread[0] / 2**0.5 else "undecided"
        return side if abs(mean) > BEYOND_CHANCE[seeds] * spread[0] else "undecided"

    return {"table": table, "cell": cell, "total": total, "count": count, "hours": hours, "verdict": verdict}


def render(source, program):
    """The text of the document of a source, a path from the project's root."""
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, keep_trailing_newline=True)
    return environment.from_string((ROOT / source).read_text(encoding="utf-8")).render(functions(program))


def draw(program, folder):
    """The text of each picture, drawn in an empty folder."""
    subprocess.run([program, "report", RESULTS / "converged.h5", "--out", folder / "page.html", "--figures", folder],
                   check=True, capture_output=True)
    subprocess.run([program, *CYCLE.split(), folder / "0-cycle.svg"], check=True, capture_output=True)
    texts = {}
    for name, figure in PICTURES.items():
        path, = (path for path in folder.glob("*.svg") if re.fullmatch(r"\d+-" + figure, path.stem))
        texts[name] = path.read_text(encoding="utf-8")
    return texts


def main(arguments):
    check = "--check" in arguments
    program = str(pathlib.Path(([ROOT / "build" / "bcd"] + [a for a in arguments if a != "--check"])[-1]).resolve())
    differing = []
    for source, document in DOCUMENTS.items():
        text = render(source, program)
        path = ROOT / document
        if check:
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                differing.append(document)
        else:
            path.write_text(text, encoding="utf-8")
    if not check:
        with tempfile.TemporaryDirectory() as folder:
            for name, text in draw(program, pathlib.Path(folder)).items():
                (RESULTS / name).write_text(text, encoding="utf-8")
    if differing:
        sys.exit(f"not as rendered (make documents writes them anew): {', '.join(differing)}")


if __name__ == "__main__":
    main(sys.argv[1:])
