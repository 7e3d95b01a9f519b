#!/usr/bin/env python3
"""Compares files of results with the page that describes them, experiments/results/README.md.

    python3 tests/experiments/check_schema.py PAGE FILE.h5...    each data set and attribute is on the
                                                                 page, of that type, shape and unit, scales
                                                                 are attached, and nothing is missing
    python3 tests/experiments/check_schema.py --example PAGE     runs the page's program in this directory

Prints a line for each mistake; the exit status is 0 without any.  Needs h5py.
"""
import re
import sys
import types

import h5py

OF_HDF5 = {"CLASS", "NAME", "REFERENCE_LIST", "DIMENSION_LIST", "DIMENSION_LABELS"}
KINDS = {"text": "S", "float": "f", "float64": "f", "int32": "i", "int64": "i", "uint64": "u"}
SIZES = {"float64": 8, "int32": 4, "int64": 8, "uint64": 8}


def text(value):
    """Returns a text as str, whether HDF5 stores it with a fixed length, as it should, or not."""
    return value if isinstance(value, str) else value.decode()


class Row:
    """A line of the page: a data set, or an attribute (with @ in its path)."""

    def __init__(self, path, kind, shape, unit):
        self.optional = path.endswith("?")
        self.path = path.rstrip("?")
        self.types = kind.split(" or ")
        self.dims = [d.strip() for d in shape.strip("[]").split(",")] if shape else []
        self.units = [one.strip() for one in unit.split(",")]
        self.found = False
        parts = re.split(r"([A-Z][A-Z]+)", self.path)
        self.pattern = re.compile("".join(r"[^/@]+" if i % 2 else re.escape(part)
                                          for i, part in enumerate(parts)))
        self.special = len(parts)

    def has_type(self, dtype):
        return any(kind == "flag" or dtype.kind == KINDS[kind] and
                   dtype.itemsize == SIZES.get(kind, dtype.itemsize) for kind in self.types)


def read_page(path):
    """Returns the rows of each kind of file; those of provenance replace the reference to them."""
    kinds, heading = {}, None
    with open(path, encoding="utf-8") as page:
        for line in page:
            found = re.match(r"##+ (provenance|bcd \w+)$", line)
            if line.startswith("#"):
                heading = found and found[1]
            cells = [cell.strip() for cell in line.split("|")[1:-1]]
            if heading and len(cells) == 5 and cells[0].startswith("`"):
                kinds.setdefault(heading, []).append([cells[0].strip("`")] + cells[1:4])
    shared = kinds.pop("provenance")
    return {kind: [Row(*row) for given in rows for row in
                   ([[given[0] + part[0]] + part[1:] for part in shared]
                    if given[1] == "provenance" else [given])]
            for kind, rows in kinds.items()}


class Check:
    def __init__(self, path, kinds):
        self.path, self.mistakes = path, []
        with h5py.File(path, "r") as self.file:
            kind = text(self.file.attrs["format"])
            self.rows = kinds[kind]
            self.attributes("/", self.file)
            self.file.visititems(lambda name, thing: self.check("/" + name, thing))
        for row in self.rows:
            if not row.found and not row.optional:
                self.wrong(row.path, "is missing")
            row.found = False

    def wrong(self, where, what):
        self.mistakes.append(f"{self.path}: {where}: {what}")

    def find(self, path):
        """Returns the row that says most about a path: COLUMN_source rather than COLUMN."""
        rows = [row for row in self.rows if row.pattern.fullmatch(path)]
        if not rows:
            self.wrong(path, "is not on the page")
            return None
        row = min(rows, key=lambda row: (row.special, -len(row.path)))
        row.found = True
        return row

    def check(self, path, thing):
        self.attributes(path, thing)
        if not isinstance(thing, h5py.Dataset):
            return
        row = self.find(path)
        if not row:
            return
        if not row.has_type(thing.dtype):
            self.wrong(path, f"is {thing.dtype}, not {' or '.join(row.types)}")
        if thing.dtype.kind == "S":
            thing.asstr()[...]
        self.dimensions(path, thing, row)
        self.unit(path, thing, row)

    def unit(self, path, data, row):
        unit = text(data.attrs["unit"]) if "unit" in data.attrs else "1"
        if data.dtype.kind == "S":
            if unit != "1":
                self.wrong(path, "is text and has a unit")
        elif unit not in row.units:
            self.wrong(path, f"has unit {unit}, not {' or '.join(row.units)}")

    def dimensions(self, path, data, row):
        if row.dims != ["..."] and len(row.dims) != data.ndim:
            return self.wrong(path, f"has {data.ndim} dimensions, not {len(row.dims)}")
        for i in range(data.ndim):
            if row.dims == ["..."]:
                if not data.dims[i].label:
                    self.wrong(path, f"dimension {i} has no name")
                continue
            name = row.dims[i]
            wanted = data.parent.get(name)  # a path counts from the root
            if wanted is None:
                if data.dims[i].label != name:
                    self.wrong(path, f"dimension {i} is called {data.dims[i].label!r}, not {name}")
            elif wanted == data:
                if len(data.parent) > 1 and not h5py.h5ds.is_scale(data.id):
                    self.wrong(path, "is no dimension scale")
            elif [scale.name for scale in data.dims[i].values()] != [wanted.name]:
                self.wrong(path, f"has not {wanted.name} attached")
            if wanted is not None and len(wanted) != data.shape[i]:
                self.wrong(path, f"has {data.shape[i]} rows, {wanted.name} has {len(wanted)}")

    def attributes(self, path, thing):
        for name, value in thing.attrs.items():
            if name in OF_HDF5 or name == "unit" and isinstance(thing, h5py.Dataset):
                continue
            row = self.find(f"{path}@{name}")
            if not row:
                continue
            if thing.attrs.get_id(name).shape != ():
                self.wrong(f"{path}@{name}", "is not one value")
            dtype = thing.attrs.get_id(name).dtype
            if not row.has_type(dtype):
                self.wrong(f"{path}@{name}", f"is {dtype}, not {' or '.join(row.types)}")
            if dtype.kind == "S":
                value.decode()


def run_example(page):
    """Runs the program on the page, with a stand-in for matplotlib that takes two lists of one length."""
    with open(page, encoding="utf-8") as text:
        program = re.search(r"```python\n(.*?)```", text.read(), re.S)[1]
    drawn = []

    def plot(x, y):
        assert len(x) == len(y) > 1, "nothing to plot"
        drawn.append(x)

    pyplot = types.ModuleType("matplotlib.pyplot")
    pyplot.plot, pyplot.ylabel, pyplot.savefig = plot, str, str
    sys.modules["matplotlib"] = types.ModuleType("matplotlib")
    sys.modules["matplotlib"].pyplot = sys.modules["matplotlib.pyplot"] = pyplot
    exec(compile(program, "the program on the page", "exec"), {})
    return [] if drawn else [f"{page}: its program draws nothing"]


def main():
    if sys.argv[1] == "--example":
        mistakes = run_example(sys.argv[2])
    else:
        kinds = read_page(sys.argv[1])
        mistakes = [line for path in sys.argv[2:] for line in Check(path, kinds).mistakes]
    print("\n".join(mistakes), end="")
    return 1 if mistakes else 0


if __name__ == "__main__":
    sys.exit(main())
