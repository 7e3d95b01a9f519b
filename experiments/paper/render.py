#!/usr/bin/env python3
"""Renders the documents: their text is in sources (jinja2), their numbers are in the files of results.

    experiments/paper/render.py

A source calls the functions that document.py names: {{ score("resnet8", "BCD-1/3") }} becomes "82.14 ± 0.28".  What a
document has is plain text: paragraphs are filled, tables are aligned, and one that is too wide goes on below, with its
labels again."""
import pathlib
import re
import textwrap

import jinja2

import document
import pictures
import printing
import schema
import store
import study
from errors import Refused, run

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCUMENTS = {
    "experiments/paper_repro.md.in": "paper_repro.md",
    "experiments/appendix.md.in": "experiments/results/appendix.md",
    "experiments/choose.md.in": "experiments/choose.md",
    "experiments/changes.md.in": "experiments/changes.md",
    "experiments/readme_numbers.md.in": "README.md",
    "experiments/study_columns.md.in": "experiments/results/README.md",
}
# Documents of which only a block is rendered, "<!-- numbers: make documents -->" ... "<!-- end of numbers -->", and the
# longest line of its paragraphs; None: all is kept as it is, as in a table with long lines.
BLOCKS = {"README.md": ("numbers", 99), "experiments/results/README.md": ("columns", None)}
WIDTH, FILLED = 119, 110  # characters of a line, at most; of a filled paragraph


# ---- text ---------------------------------------------------------------------------------------

def filled(text, width=FILLED):
    """A paragraph or an item of a list as lines.  A number stays on the line of its unit and spread."""
    marker = re.match(r"(?:- |\d+\. )?", text).group()
    kept = re.sub(r"(?<=\S) (?=± |[%×$])|(?<=±) ", "\0", " ".join(text.split()))
    lines = textwrap.wrap(kept, width, subsequent_indent=" " * len(marker), break_long_words=False,
                          break_on_hyphens=False)
    for line in lines[1:]:
        if re.match(r"\s*([-+*#|>]|\d+\.)( |$)", line):  # would begin something else in Markdown
            return filled(text, width - 1)
    return "\n".join(lines).replace("\0", " ")


def aligned(lines, width=WIDTH):
    """A table with columns as wide as their cells.  Columns that do not fit follow in a table of their own, with the
    first column again."""
    rows = [[part.strip() for part in re.split(r"(?<!\\)\|", line.strip())[1:-1]] for line in lines]
    ragged = [line for line, row in zip(lines, rows) if len(row) != len(rows[0])]
    if ragged:
        raise Refused(f"a table has rows of {len(rows[0])} cells and this one: {ragged[0]}")
    right = [cell.endswith(":") for cell in rows[1]]
    cells = [rows[0]] + rows[2:]
    widths = [max(3, *(len(row[c]) for row in cells)) for c in range(len(rows[0]))]
    out = []
    for block in printing.blocks(widths[0] + 4, [width_of + 1 for width_of in widths[1:]], width):
        columns = [0, *(place + 1 for place in block)]
        pad = [str.rjust if right[c] else str.ljust for c in columns]
        made = ["| " + " | ".join(p(row[c], widths[c]) for p, c in zip(pad, columns)) + " |" for row in cells]
        rule = "|" + "|".join("-" * (widths[c] + 1) + (":" if right[c] else "-") for c in columns) + "|"
        out.append("\n".join([made[0], rule, *made[1:]]))
    return "\n\n".join(out)


def tidied(text, width=FILLED):
    """Rendered Markdown as a document has it.  Code and headings stay as they are."""
    out, part = [], []

    def flush():
        if part and part[0].startswith("|"):
            out.append(aligned(part))
        elif part:
            items = re.split(r"\n(?=- |\d+\. )", "\n".join(part))
            out.append("\n".join(filled(item, width) for item in items))
        part.clear()

    for line in text.split("\n"):
        if not line.strip() or line.startswith(("#", "    ", "!", "<!--")):
            flush()
            out.append(line.rstrip())
        else:
            if part and part[0].startswith("|") != line.startswith("|"):
                flush()
            part.append(line)
    flush()
    tidy = re.sub(r"\n{3,}", "\n\n", "\n".join(out)).strip("\n") + "\n"
    wide = [line for line in tidy.split("\n") if len(line) > WIDTH]
    if wide:
        raise Refused(f"a line of {len(wide[0])} characters, of {WIDTH}: {wide[0]}")
    return tidy


# What is not there is refused, and not the empty text.
ENVIRONMENT = jinja2.Environment(undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)


def render(source):
    """The text of the document of a source, a path from the project's root."""
    try:
        text = ENVIRONMENT.from_string((ROOT / source).read_text(encoding="utf-8")).render(
            document.functions(), study_columns=study_columns)
    except (jinja2.TemplateError, KeyError) as error:
        raise Refused(f"{source}: {error}") from error
    if DOCUMENTS[source] not in BLOCKS:
        return tidied(text)
    name, width = BLOCKS[DOCUMENTS[source]]
    begin, end = f"<!-- {name}: make documents -->\n", f"<!-- end of {name} -->\n"
    whole = ROOT / DOCUMENTS[source]
    before, _, rest = whole.read_text(encoding="utf-8").partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        raise Refused(f"{whole}: no block {begin!r} … {end!r}")
    return before + begin + (tidied(text, width) if width else text) + end + after


def study_columns():
    """(path, type, unit, what) of each column of /table in a study, as experiments/results/README.md has them."""
    types = {schema.TEXT: "text", schema.INTEGER: "int64", schema.REAL: "float64"}
    return [(name + "?" * (name in study.ADDED_COLUMNS), types[kind], unit or "1" * (kind != schema.TEXT), what)
            for name, kind, unit, what in schema.COLUMNS]


def main(arguments):
    if arguments:
        raise Refused("render.py takes no arguments")
    for source, name in DOCUMENTS.items():
        store.write_text(str(ROOT / name), render(source))
    pictures.draw(ROOT / "experiments" / "results")


if __name__ == "__main__":
    run(main)
