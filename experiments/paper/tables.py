"""Tables whose numbers know where they come from: written to HDF5 and read back ("bcd tables" in
experiments/results/README.md), their cells as text.  printing.py prints them.

    table = Table("table8", "Table 8: memory of a full update", "model", [
        Column("gpus", "N/G", kind=TEXT),
        Column("published", "published", "GiB", 3, PUBLISHED),
        Column("closed_form", "closed form", "GiB", 3, CLOSED_FORM),
        Column("deviation", "deviation", "", 1, kind=DEVIATION)])
    table.row("G-1.6B", "1/8", 24.0, 24.08, 24.08 / 24.0 - 1)    cells from the left; a source is the column's
    table.row("G-2.7B", closed_form=Cell(40.1, MEASURED, spread=0.2))    cells by name; the others are empty
    table.note("GB in the paper is GiB.")

    tables = Tables([table], provenance(command))
    tables.write("memory.h5", settings)
    read("memory.h5")["table8"].text("G-1.6B", "closed_form")    "24.080", as it is printed
"""
import math
from dataclasses import dataclass, field

import numpy as np

import store
from errors import Refused

# Where a number comes from; NONE: a setting of the row, or a ratio of two cells next to it.
NONE, GIVEN, MEASURED, SIMULATED = "", "given (data sheet or command line)", "measured", "simulated"
CLOSED_FORM, RECOMPUTED, PUBLISHED = "closed form", "recomputed from published numbers", "published"
MARKS = {GIVEN: "g", MEASURED: "m", SIMULATED: "s", CLOSED_FORM: "c", RECOMPUTED: "r", PUBLISHED: "p", NONE: ""}

# Kinds of columns: numbers; fractions, printed as "53.6 %" or with their sign, as "+0.2 %"; texts.
NUMBER, PERCENT, DEVIATION, TEXT = KINDS = "number", "per cent", "deviation", "text"
FREE = -1  # decimals: as many as the number has
FIGURES = "", "lines", "bars", "timeline"
UNITS = ("us", "ms", "s", "h", "epochs", "bytes", "MiB", "GiB", "$", "$/h", "points", "1/s", "GB/s", "GFLOP/s", "TFLOP/s",
         "updates", "ms/1k tok.")
FORMAT, VERSION = "bcd tables", 1
MIB, GIB = 1024.0**2, 1024.0**3


@dataclass(frozen=True)
class Cell:
    """A number or a text with its source, and the standard deviation of the samples that the number is the
    mean of (NaN: none)."""
    value: float | str = math.nan
    source: str = NONE
    spread: float = math.nan

    @property
    def is_empty(self):
        return self.value == "" if isinstance(self.value, str) else math.isnan(self.value)


@dataclass
class Column:
    """name: of its data set, letters, digits and _; head: above the column; below: under the head, the unit or
    another qualifier, which may begin with the unit ("ms by cost"); decimals: digits after the point; source: of
    the cells for which none is given, which the file has with each cell."""
    name: str
    head: str
    below: str = ""
    decimals: int = 2
    source: str = NONE
    kind: str = NUMBER

    def unit(self, other=""):
        """The unit of the numbers, "" where they have none; `other`: where the qualifier names none.  The
        qualifier of a ratio contains a slash."""
        for unit in UNITS:
            if self.below == unit or self.below.startswith(unit + " "):
                return unit
        counted = self.kind == NUMBER and self.below and "/" not in self.below
        return other if counted else ""


@dataclass
class Table:
    """name: of its group in the file; title: above; head: of the labels' column; unit: of number columns whose
    `below` is another qualifier; figure: how the page draws the rows, as FIGURES; axis: of the figure."""
    name: str
    title: str
    head: str
    columns: list
    unit: str = ""
    figure: str = ""
    axis: str = ""
    notes: list = field(default_factory=list)
    labels: list = field(default_factory=list)
    rows: list = field(default_factory=list)  # of lists of a Cell for each column

    def row(self, label, *values, **named):
        """Appends a row.  A value is a Cell, a number or text with the source of the column, or None for an empty
        cell.  Returns the row's cells."""
        cells = [self._cell(column, value) for column, value in zip(self.columns, values, strict=False)]
        if len(values) > len(self.columns):
            raise ValueError(f"{self.name}: {label}: {len(values)} values, {len(self.columns)} columns")
        cells += [self._cell(column, None) for column in self.columns[len(cells):]]
        for name, value in named.items():
            number = self._number(name)
            cells[number] = self._cell(self.columns[number], value)
        self.labels.append(label)
        self.rows.append(cells)
        return cells

    def note(self, text):
        """Appends a paragraph, of one line, to those below the table."""
        self.notes.append(text.replace("\n", " "))

    @staticmethod
    def _cell(column, value):
        empty = "" if column.kind == TEXT else math.nan
        cell = value if isinstance(value, Cell) else Cell(empty if value is None else value, column.source)
        if isinstance(cell.value, str) != (column.kind == TEXT):
            raise ValueError(f"{column.name}: {cell.value!r} in a column of kind {column.kind}")
        return Cell(empty) if cell.is_empty else cell

    def _number(self, name):
        for number, column in enumerate(self.columns):
            if column.name == name:
                return number
        raise KeyError(f"{self.name}: no column {name}; there are {', '.join(c.name for c in self.columns)}")

    def cell(self, label, name):
        """The Cell of a row, by its label, and of a column, by its name.  KeyError when there is none, or several."""
        count = self.labels.count(label)
        if count != 1:
            raise KeyError(f"{self.name}: {count} rows {label!r}; there are {', '.join(self.labels)}")
        return self.rows[self.labels.index(label)][self._number(name)]

    def value(self, label, name):
        """Its number or text."""
        return self.cell(label, name).value

    def text(self, label, name):
        """What is printed there, without the mark: "3.08 ± 0.29"."""
        return printed(self.columns[self._number(name)], self.cell(label, name))

    def column(self, name):
        """The cells of a column, from the first row on."""
        number = self._number(name)
        return [row[number] for row in self.rows]


class Tables:
    """The tables of a file, and its provenance (the attributes of /provenance)."""

    def __init__(self, tables=(), provenance=None):
        self.tables, self.provenance = list(tables), dict(provenance or {})

    def __iter__(self):
        return iter(self.tables)

    def __getitem__(self, name):
        for table in self.tables:
            if table.name == name:
                return table
        raise KeyError(f"no table {name}; there are {', '.join(table.name for table in self.tables)}")

    def write(self, path, settings=None):
        """Writes the file, or leaves the old one as it was; settings: the flags given, as attributes."""
        with store.writing(path, FORMAT, VERSION) as file:
            store.set_attributes(file.create_group("provenance"), self.provenance)
            if settings:
                store.set_attributes(file.create_group("settings"), settings)
            for number, table in enumerate(self.tables):
                write_table(file.create_group(f"tables/{table.name}"), table, number)


def read(path):
    """The Tables of a file.  Refuses another kind of file, or a damaged one."""
    with store.reading(path) as file:
        if store.attribute(file, "format", "") != FORMAT:
            raise Refused(f"{path}: not a file of tables")
        version = store.attribute(file, "version")
        if version != VERSION:
            raise Refused(f"{path}: version {version}; this program reads version {VERSION}")
        groups = in_order(file["tables"])
        if len(groups) != len(file["tables"]):
            raise ValueError("/tables: a table without a number")
        return Tables([read_table(group) for group in groups], store.attributes(file["provenance"]))


# ---- HDF5 ---------------------------------------------------------------------------------------

def write_table(group, table, number):
    scale = store.write(group, "row", table.labels)
    store.set_attributes(group, {
        "title": table.title, "head": table.head, "notes": "\n".join(table.notes), "figure": table.figure,
        "axis": table.axis, "number": number})
    for place, column in enumerate(table.columns):
        cells = [row[place] for row in table.rows]
        unit = column.unit(table.unit)
        values = [cell.value for cell in cells]
        if column.kind != TEXT:
            values = np.array(values, dtype=np.float64)
        data = store.write(group, column.name, values, "" if column.kind == TEXT else unit, scale)
        store.write(group, column.name + "_source", [cell.source for cell in cells], scale=scale)
        spreads = np.array([cell.spread for cell in cells], dtype=np.float64)
        if np.isfinite(spreads).any():
            store.write(group, column.name + "_spread", spreads, unit, scale)
        store.set_attributes(data, {"head": column.head, "kind": column.kind, "decimals": column.decimals,
                                    "number": place})
        if unit != column.below:
            store.set_attributes(data, {"below": column.below})


def in_order(group):
    """The data sets or groups of a group that have an attribute `number`, ordered by it."""
    things = [group[name] for name in group]
    found = sorted(((store.attribute(thing, "number"), thing) for thing in things if "number" in thing.attrs),
                   key=lambda pair: pair[0])
    if [number for number, _ in found] != list(range(len(found))):
        raise ValueError(f"{group.name}: its numbers are not 0, 1, ...")
    return [thing for _, thing in found]


def read_table(group):
    columns = in_order(group)
    table = Table(group.name.split("/")[-1], *(store.attribute(group, name) for name in ("title", "head")),
                  [read_column(data) for data in columns], figure=one_of(group, "figure", FIGURES),
                  axis=store.attribute(group, "axis"),
                  notes=[note for note in store.attribute(group, "notes").split("\n") if note],
                  labels=store.column(group, "row", texts=True))
    empty = np.full(len(table.labels), math.nan)
    cells = []
    for column in table.columns:
        values = store.column(group, column.name, texts=column.kind == TEXT)
        sources = store.column(group, column.name + "_source", texts=True)
        spreads = store.column(group, column.name + "_spread", empty, texts=False)
        if not len(values) == len(sources) == len(spreads) == len(table.labels):
            raise ValueError(f"{group.name}/{column.name}: {len(values)} cells in {len(table.labels)} rows")
        if not set(sources) <= set(MARKS):
            raise ValueError(f"{group.name}/{column.name}_source: an unknown source")
        if column.kind != TEXT:
            values, spreads = values.tolist(), spreads.tolist()
        cells.append([Cell(*cell) for cell in zip(values, sources, spreads)])
    table.rows = [list(row) for row in zip(*cells)] if cells else [[] for _ in table.labels]
    return table


def read_column(data):
    """The unit is printed below the head, unless the attribute `below` has another text."""
    return Column(data.name.split("/")[-1], store.attribute(data, "head"),
                  store.attribute(data, "below", store.attribute(data, "unit", "")),
                  one_of(data, "decimals", range(FREE, 21)), kind=one_of(data, "kind", KINDS))


def one_of(thing, name, known):
    value = store.attribute(thing, name)
    if value not in known:
        raise ValueError(f"{thing.name} attribute {name}: {value!r} is not known")
    return value


# ---- cells as text ------------------------------------------------------------------------------

def round_12(value):
    """Rounds to 12 significant digits.  The last places of a computed number depend on the compiler and its -O,
    and would otherwise decide how a number halfway between two printed ones is printed."""
    return float(f"{value:.12g}")


def format_number(value, decimals, sign=""):
    """Formats with `decimals` digits after the point; a number that rounds to zero has no sign."""
    if decimals == FREE:
        return f"{value:.7g}"
    if abs(value) < 0.5 * 10.0**-decimals:
        return f"{0:.{decimals}f}"
    return f"{value:{sign}.{decimals}f}"


def decimals_of(source, value, decimals):
    """The digits after the point: all that the paper printed for a published number, else those of the column."""
    if source != PUBLISHED or decimals == FREE:
        return decimals
    while decimals < 6:
        scaled = value * 10.0**decimals
        if abs(scaled - round(scaled)) <= 1e-9 * max(1, abs(scaled)):
            break
        decimals += 1
    return decimals


def printed(column, cell):
    """A cell without its mark, such as "3.08 ± 0.29"; "" for an empty one."""
    if column.kind == TEXT:
        return cell.value
    factor = 1 if column.kind == NUMBER else 100
    value, spread = round_12(factor * cell.value), round_12(factor * cell.spread)
    if not math.isfinite(value):
        return "" if math.isnan(value) else "inf"
    text = format_number(value, decimals_of(cell.source, value, column.decimals), "+" if column.kind == DEVIATION else "")
    if math.isfinite(spread):  # with as many digits after the point as the number
        text += f" ± {spread:.2g}" if column.decimals == FREE else f" ± {spread:.{column.decimals}f}"
    return text if column.kind == NUMBER else text + " %"


def legend(table):
    """The marks that occur: "m measured, p published"."""
    used = {cell.source for row in table.rows for cell in row}
    return ", ".join(f"{mark} {source}" for source, mark in MARKS.items() if source in used and source)
