"""Tables: shown with the source of each number, and back from their file as they were."""
import io
import math

import h5py
import numpy as np
import pytest

import check_schema
import printing
import tables
from conftest import RESULTS
from errors import Refused
from samples import same
from tables import CLOSED_FORM, DEVIATION, GIVEN, MEASURED, PERCENT, PUBLISHED, SIMULATED, Cell, Column, Table, Tables

PAGE = RESULTS / "README.md"
PROVENANCE = {"commit": "abc", "command": "bcd experiment memory", "compiler": "gcc", "flags": "", "cpu": "a processor",
              "device": "cpu", "precision": "fp32", "threads": 2, "seed": np.uint64(7),
              "started": "2026-01-01T00:00:00Z", "wall": 1.5}


def sample():
    memory = Table("memory", "Sample: memory", "model", [
        Column("parts", "N/G", kind=tables.TEXT, source=PUBLISHED),
        Column("published", "published", "GiB", 3, PUBLISHED),
        Column("closed", "closed form", "GiB", 3, CLOSED_FORM),
        Column("deviation", "deviation", "", 1, kind=DEVIATION)])
    memory.row("one", None, 12, 12.345, 12.345 / 12 - 1)
    memory.row("two | three", "1/2", closed=Cell(0.5, CLOSED_FORM, 0.0213))
    memory.note("A note.")
    times = Table("second", "Sample: times & \"more\"", "UFP", [
        Column("small", "G-<small>", "ms", 1, MEASURED), Column("large", "G-large", "ms", 1, SIMULATED)],
        figure="lines", axis="ms per iteration")
    for m in range(3, 6):
        times.row(f"1/{m}", 1000 / m, 2500 / m)
    return Tables([memory, times], PROVENANCE)


def shown(table, markdown=False):
    out = io.StringIO()
    printing.print_tables(out, [table], markdown)
    return out.getvalue()


def test_each_source_has_its_mark():
    table = Table("t", "T", "row", [Column("x", "x", "", 0)])
    for source in tables.MARKS:
        table.row(source or "a setting", Cell(1, source))
    lines = shown(table).split("\n")
    assert [line.split()[-1] for line in lines[4:11]] == ["g", "m", "s", "c", "r", "p", "1"]
    assert lines[12].startswith("g given (data sheet or command line), m measured, s simulated, c closed form, r recomputed")


@pytest.mark.parametrize("labels, words, rest", [
    (["a b c", "a b d e"], "a b", ["c", "d e"]), (["a b", "a b c"], "a", ["b", "b c"]), (["a b", "b b"], "", ["a b", "b b"]),
    (["a b"], "", ["a b"]), ([], "", [])])
def test_shared_words(labels, words, rest):
    assert printing.without_shared_words(labels) == (words, rest)


def test_a_wide_table_says_once_what_its_rows_share():
    """It has no column without a cell either."""
    long = "a network of many layers on a text of some length by an optimizer"
    table = Table("wide", "Wide", "training", [Column(name, f"the column {name}", "", 1, MEASURED) for name in "abcde"])
    table.row(f"{long} fully", 1, 2, 3, 4)
    table.row(f"{long} in parts", 1, 2, 3, 4)
    lines = shown(table).split("\n")
    assert lines[1] == f"All rows: {long}" and lines[3].split() == "training the column a the column b".split() + [
        "the", "column", "c", "the", "column", "d"]
    assert lines[5].split() == ["fully", "1.0", "m", "2.0", "m", "3.0", "m", "4.0", "m"]


def test_terminal():
    assert shown(sample()["memory"]) == """\
Sample: memory

model          N/G  published      closed form  deviation
                          GiB              GiB
-----------  -----  ---------  ---------------  ---------
one                  12.000 p         12.345 c     +2.9 %
two | three  1/2 p             0.500 ± 0.021 c

c closed form, p published
A note.

"""


def test_markdown():
    assert shown(sample()["memory"], markdown=True) == """\
### Sample: memory

| model | N/G | published (GiB) | closed form (GiB) | deviation |
|---|---|---:|---:|---:|
| one |  | 12.000 p | 12.345 c | +2.9 % |
| two \\| three | 1/2 p |  | 0.500 ± 0.021 c |  |

c closed form, p published

- A note.

"""


# A published number keeps the digits that were printed, others have those of their column.  The last place of a
# double does not decide how a number halfway between two printed ones is rounded.
@pytest.mark.parametrize("kind, decimals, value, source, text", [
    (tables.NUMBER, 2, 6.9639, PUBLISHED, "6.9639"),
    (tables.NUMBER, 2, 6.9639, MEASURED, "6.96"),
    (tables.NUMBER, 1, 86, PUBLISHED, "86.0"),
    (PERCENT, 1, 0.0008, PUBLISHED, "0.08 %"),
    (PERCENT, 1, 0.565, PUBLISHED, "56.5 %"),
    (tables.NUMBER, 1, 331.7375, PUBLISHED, "331.7375"),
    (tables.NUMBER, 0, 2432.6, PUBLISHED, "2432.6"),
    (tables.NUMBER, 2, 1 / 3, PUBLISHED, "0.333333"),
    (tables.NUMBER, 2, 2.675, MEASURED, "2.67"),
    (tables.NUMBER, 2, 2.6750000000000003, MEASURED, "2.67"),
    (PERCENT, 2, 0.4034 - 0.49645, MEASURED, "-9.30 %"),
    (PERCENT, 2, -0.09305, MEASURED, "-9.30 %"),
    (PERCENT, 2, -0.09305000000000002, MEASURED, "-9.30 %"),
    (DEVIATION, 1, -0.0004, MEASURED, "0.0 %"),
    (DEVIATION, 1, 0.0306, MEASURED, "+3.1 %"),
    (tables.NUMBER, tables.FREE, 0.0001, MEASURED, "0.0001"),
    (tables.NUMBER, tables.FREE, 82.6, PUBLISHED, "82.6"),
    (tables.NUMBER, tables.FREE, 2039, GIVEN, "2039"),
    (tables.NUMBER, 1, math.inf, MEASURED, "inf"),
    (tables.NUMBER, 1, math.nan, MEASURED, "")])
def test_digits(kind, decimals, value, source, text):
    table = Table("t", "T", "row", [Column("x", "x", "", decimals, kind=kind)])
    table.row("one", Cell(value, source))
    assert table.text("one", "x") == text


def test_wide():
    """Six of ten columns of twelve characters fit in 100, next to a label of four."""
    table = Table("wide", "Wide", "row", [Column(f"c{c}", "twelve wide.", "", 0) for c in range(10)])
    table.row("four", Cell(0, MEASURED), *range(1, 10))
    text = shown(table)
    assert "  4             5\n\nrow   twelve wide.  " in text
    assert "\nfour             6             7             8             9\n" in text
    assert "\nm measured\n" in text


def test_empty_text_has_no_source():
    table = Table("t", "T", "row", [Column("x", "x", kind=tables.TEXT, source=MEASURED)])
    table.row("one", "")
    assert table.cell("one", "x").source == ""


@pytest.mark.parametrize("values", [(1, 2), ("text",), (Cell("text", MEASURED),)])
def test_row_refuses(values):
    table = Table("t", "T", "row", [Column("x", "x")])
    with pytest.raises(ValueError):
        table.row("one", *values)


def test_find():
    table = sample()["memory"]
    assert table.value("one", "closed") == 12.345 and table.cell("one", "closed").source == CLOSED_FORM
    assert [cell.value for cell in table.column("published")][0] == 12
    for wrong in [("absent", "closed"), ("one", "absent")]:
        with pytest.raises(KeyError, match="absent"):
            table.cell(*wrong)
    with pytest.raises(KeyError, match="memory, second"):
        sample()["absent"]
    table.row("one")
    with pytest.raises(KeyError, match="2 rows 'one'"):
        table.cell("one", "closed")


def test_file_round_trip(tmp_path):
    path = str(tmp_path / "tables.h5")
    before = sample()
    before.write(path, {"preset": "smoke"})
    after = tables.read(path)
    assert after.provenance == PROVENANCE
    assert len(after.tables) == 2
    for a, b in zip(before, after):
        assert (a.name, a.title, a.head, a.figure, a.axis, a.notes, a.labels) == (
            b.name, b.title, b.head, b.figure, b.axis, b.notes, b.labels)
        assert [(c.name, c.head, c.below, c.kind, c.decimals) for c in a.columns] == [
            (c.name, c.head, c.below, c.kind, c.decimals) for c in b.columns]
        for x, y in zip(sum(a.rows, []), sum(b.rows, [])):
            assert same(x.value, y.value) and same(x.spread, y.spread) and x.source == y.source


def test_file_schema(tmp_path):
    """The file has what another program needs, and what the page says about it."""
    path = str(tmp_path / "schema.h5")
    written = sample()
    written["memory"].columns[2].below = "all"
    written["memory"].unit = "GiB"
    written.write(path, {"preset": "smoke"})
    assert check_schema.Check(path, check_schema.read_page(PAGE)).mistakes == []
    with h5py.File(path) as file:
        group = file["tables/memory"]
        assert file.attrs["version"] == 1  # files of earlier programs have version 1
        assert file["settings"].attrs["preset"] == b"smoke"
        assert group["published"].attrs["unit"] == b"GiB" and "below" not in group["published"].attrs
        assert group["closed"].attrs["unit"] == b"GiB" and group["closed"].attrs["below"] == b"all"
        assert "unit" not in group["deviation"].attrs, "a ratio has no unit"
        assert group["published"].dims[0].values() == [group["row"]] and group["published"].fletcher32
        assert group["closed_source"].asstr()[0] == "closed form"
        assert np.isnan(group["closed_spread"][0]) and group["closed_spread"][1] == 0.0213
        assert "published_spread" not in group
        assert file["tables/second"].attrs["number"] == 1


def test_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "kept.h5"
    sample().write(str(path))
    before = path.read_bytes()
    wrong = sample()
    wrong["second"].labels[0] = "x" * 1024
    with pytest.raises(Refused, match="row: text of 1024 bytes"):
        wrong.write(str(path))
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]


def wrong_decimals(file):
    file["tables/second/small"].attrs["decimals"] = -2


def wrong_kind(file):
    file["tables/second/small"].attrs["kind"] = "colour"


def wrong_source(file):
    file["tables/second/small_source"][0] = "guessed"


def lost_number(file):
    del file["tables/second"].attrs["number"]


def lost_numbers(file):
    for table in file["tables"].values():
        del table.attrs["number"]


def another_version(file):
    file.attrs["version"] = 2


@pytest.mark.parametrize("damage", [wrong_decimals, wrong_kind, wrong_source, lost_number, lost_numbers, another_version])
def test_bad_files(tmp_path, damage):
    path = str(tmp_path / "bad.h5")
    sample().write(path)
    with h5py.File(path, "r+") as file:
        damage(file)
    with pytest.raises(Refused, match="bad.h5: "):
        tables.read(path)


def test_missing_or_foreign_files(tmp_path):
    with pytest.raises(Refused, match="/nowhere/memory.h5: no such file"):
        tables.read("/nowhere/memory.h5")
    text = tmp_path / "text.h5"
    text.write_text("text")
    with pytest.raises(Refused, match="not an HDF5 file"):
        tables.read(str(text))
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file.attrs["format"] = "something else"
    with pytest.raises(Refused, match="other.h5: not a file of tables"):
        tables.read(str(tmp_path / "other.h5"))


def test_damaged_cell(tmp_path):
    """A cell that was changed on the disk is refused."""
    path = tmp_path / "cell.h5"
    sample().write(str(path))
    with h5py.File(path) as file:
        stored = file["tables/memory/closed"].id.get_chunk_info(0)
    content = bytearray(path.read_bytes())
    content[stored.byte_offset + stored.size // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(Refused, match="the file is damaged"):
        tables.read(str(path))


def test_long_letters():
    """A letter of two bytes takes one column."""
    table = Table("letters", "Letters", "row", [Column("x", "x", "", 1, MEASURED), Column("y", "y", kind=tables.TEXT)])
    table.row("ÅÅ", Cell(1, MEASURED, 2), "éé")
    table.row("four", 12345678, "three")
    assert shown(table) == """\
Letters

row              x      y
----  ------------  -----
ÅÅ     1.0 ± 2.0 m     éé
four  12345678.0 m  three

m measured

"""
