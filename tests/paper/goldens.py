"""Reads golden files: the cells of tables in Markdown, and the list of cells that have changed since."""
import csv
import pathlib
import re

GOLDEN = pathlib.Path(__file__).parent / "golden"
DIFFERENCES = GOLDEN / "differences.csv"


def cells_of(text):
    """Returns {(title of the table, label of the row, head of the column): cell}. A second row of the same label is
    "label (2)"."""
    found, title, heads = {}, None, None
    for line in text.split("\n"):
        if line.startswith("### "):
            title, heads = line[4:], None
        if not line.startswith("|") or line.startswith("|---"):
            continue
        parts = [part.strip() for part in re.split(r"(?<!\\)\|", line)[1:-1]]
        if heads is None:
            heads, labels = parts[1:], {}
            continue
        labels[parts[0]] = labels.get(parts[0], 0) + 1
        label = parts[0] if labels[parts[0]] == 1 else f"{parts[0]} ({labels[parts[0]]})"
        found |= {(title, label, head): cell for head, cell in zip(heads, parts[1:], strict=True)}
    return found


def differences(name):
    """Returns {(title, label, head): (before, now)} of a file. "" is an empty cell, and - one that did not exist."""
    with open(DIFFERENCES, encoding="utf-8", newline="") as file:
        return {(row["table"], row["row"], row["column"]): (row["before"], row["now"])
                for row in csv.DictReader(file) if row["file"] == name}
