"""Tables of memory: cells that are computed by hand, cells that must not change, and peaks that are as planned."""
from types import SimpleNamespace

import pytest

import memory
import memory_tables
import networks


@pytest.fixture(scope="module")
def made():
    found = [memory_tables.table8(), memory_tables.activations(), memory_tables.figure5(), memory_tables.tables9to11()]
    return {table.name: table for table in found}


# By hand: 16 bytes of each of 1,615,775,744 parameters are 24.0769 GiB; 3 W of SGD, with the W of table 11's own full
# update, in quarters W (1 + 2/4).
@pytest.mark.parametrize("table, row, column, value", [
    ("table8", "G-1.6B", "parameters", "1615775744"), ("table8", "G-1.6B", "full_recomputed", "24.076"),
    ("table8", "G-1.6B", "full_closed_form", "24.0769"), ("table8", "G-1.6B", "full_deviation", "-0.00000271"),
    ("table8", "G-1.6B", "bcd3_deviation", "0.0000388"), ("table8", "L-23B", "bcd3_closed_form", "173.7735"),
    ("tables9to11", "11: 1/4 SGD", "recomputed", "912.22"),
    ("tables9to11", "11: 1/4 SGD", "recomputed_deviation", "-0.0000055"),
    ("tables9to11", "11: 1/4 SGD", "closed_form", "874.28"),
    ("tables9to11", "11: 1/4 SGD", "closed_form_deviation", "-0.041603"),
    ("tables9to11", "11: 1/2 Adam", "closed_form", "1457.1"), ("activations", "G-1.6B", "full", "24.077"),
    ("figure5", "1/3", "equal_parts", "0.5"), ("figure5", "1", "G-20B", "1.0")])
def test_cells(made, table, row, column, value, held):
    held(made[table], row, column, value)


@pytest.mark.parametrize("text", [
    "L-8.0B is not in Table 8: its memory would take 43.36 layers like those of L-6.0B",
    "the published 24.632 is not twice the published 11.662"])
def test_notes(made, text):
    assert any(text in note for note in made["table8"].notes)


@pytest.mark.parametrize("name", ["table8", "activations", "figure5", "tables9to11"])
def test_golden(made, name, golden):
    golden("memory", made[name])


def asked(**more):
    return SimpleNamespace(**({"preset": "smoke", "models": None, "flags": {}, "quiet": True} | more))


def test_measured(golden):
    """The bytes that the allocator counts are those that were planned."""
    tables, provenance = memory.measure(asked(), 4)
    assert [table.name for table in tables] == ["measured4", "measured5"] and provenance["device"] == "cpu"
    for table in tables:
        assert table.labels == ["full", "BCD-1/2", "BCD-1/3"]
        for row in table.rows:
            cells = dict(zip((column.name for column in table.columns), row))
            assert cells["trained_deviation"].value == cells["all_deviation"].value == 0
            assert 0 < cells["trained"].value < cells["all"].value
        assert table.value("full", "closed_form") == pytest.approx(table.value("full", "trained"), rel=1e-6)
        assert table.value("BCD-1/3", "closed_form") <= table.value("BCD-1/3", "trained")
    golden("memory", tables[0], name="measured4", only_columns=True)


@pytest.mark.parametrize("model, data, optimizer, batch", [
    ("resnet20", "synthetic", "sgd", 16), ("gpt:layers=1,width=8,heads=1,context=8", "text", "adam", 8)])
def test_models(model, data, optimizer, batch):
    chosen = networks.chosen(asked(models=[model]), memory.PRESETS["smoke"][1])
    assert chosen == [networks.Network(model, data, optimizer, batch)]
