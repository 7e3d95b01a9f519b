"""Tables that are measured here: they exist, add up, and are marked as measured."""
import io
import math
import os
import statistics
from types import SimpleNamespace

import pytest

import figure03
import printing
import program
import steps
import timing_measured
from conftest import stored
from tables import DEVIATION, MEASURED, NONE, SIMULATED, Cell, Column, Table

GPT = "gpt:layers=4,width=16,heads=2,context=16"


def asked():
    return SimpleNamespace(preset="smoke", models=None, quiet=True, flags={})


@pytest.fixture(scope="module")
def made():
    cycle = figure03.table(asked())
    measured, provenance = timing_measured.measure(asked())
    assert provenance["device"] == "cpu" and provenance["threads"] == 1
    return {table.name: table for table in [cycle, *measured]}


def test_kept_prefix(made):
    """A cached prefix takes memory and changes no bit of the loss."""
    table = made["figure3"]
    computed, kept = (dict(zip((c.name for c in table.columns), row)) for row in table.rows)
    assert table.labels == [f"{GPT} computed", f"{GPT} kept"]
    assert computed["loss"].value == kept["loss"].value and computed["loss"].source == MEASURED
    assert kept["peak"].value > computed["peak"].value and computed["share"].value == 1
    assert kept["share"].value == kept["seconds"].value / computed["seconds"].value


def test_cycle():
    """A cycle of three phases of two epochs of 64 samples in batches of 8, on one thread, evaluated on all of the split."""
    run = figure03.cycle(asked(), figure03.SMOKE[0])
    assert len(run.curve["step"]) == 3 * 2 * 64 // 8 and len(run.switches["step"]) == 3
    assert run["threads"] == 1 and run.setting("eval-samples") == 0


def test_steps_have_a_mean(made):
    table = made["measured1"]
    assert table.labels == ["full", "1/3 submodel 1", "1/3 submodel 2", "1/3 submodel 3", "1/3 mean"]
    for row in table.rows[1:]:
        assert all(cell.value > 0 for cell in row) and row[0].source == row[3].source == MEASURED
    assert table.value("full", "step") > 0 and math.isnan(table.value("full", "cached"))
    for k, label in ((1, "1/3 submodel 1"), (2, "1/3 submodel 2"), (3, "1/3 submodel 3"), (0, "1/3 mean")):
        assert table.value(label, "theory") == steps.operations_ratio(k, 3)
        assert table.value(label, "cached_theory") == steps.operations_ratio(k, 3, cached=True)
        # Medians of ratios are near the ratio of the medians.
        ratio = table.value(label, "step") / table.value("full", "step")
        assert 1 / 3 < table.value(label, "share") / ratio < 3


def test_pre_inference_by_all_ranks():
    """The committed table is what is simulated today.  Eight ranks infer eight times as fast as one; where the prefix is
    on ranks that otherwise wait, that saves less."""
    today, before = figure03.simulated(), stored("inference")["inference"]
    assert before.labels == today.labels and before.notes == today.notes
    for column in ("compute", "gather", "saved", "pays_from"):
        assert [cell.value for cell in before.column(column)] == pytest.approx(
            [cell.value for cell in today.column(column)], rel=1e-6), column
    assert today.value("virtual: 1", "compute") == pytest.approx(8 * today.value("virtual: 8", "compute"))
    assert today.value("virtual: 8", "pays_from") < 1 < today.value("plain: 8", "pays_from")


def test_pre_inference_here():
    """The sum of a turn's two pre-inferences, on more and more ranks; no simulation without a processor for each."""
    table = figure03.measured(SimpleNamespace(preset="smoke"))
    assert table.labels == ["1", "2", "4"]
    processors = len(os.sched_getaffinity(0))
    for ranks, (threads, mpi, simulated) in zip(figure03.RANKS, table.rows):
        assert threads.source == MEASURED and 0 < threads.value < 60
        assert (0 < mpi.value < 60) if program.has_processes() else mpi.is_empty
        assert (simulated.value > 0) == (ranks <= processors)


def test_pipelines(made):
    """There are two numbers of micro-batches, and virtual stages only for BCD on two ranks."""
    table = made["pipeline1"]
    ranks = min(2, len(os.sched_getaffinity(0)))
    assert [label for label in table.labels if "full" in label] == ["full plain"] * 2 * ranks
    assert table.labels.count("BCD-1/3 plain") == 2 * ranks and table.labels.count("BCD-1/3 virtual") == 2 * (ranks - 1)
    for label, row in zip(table.labels, table.rows):
        assert row[2].source == MEASURED and row[2].spread >= 0 and row[3].source == SIMULATED
        assert 1 / 20 < row[3].value / row[2].value < 20
        assert "virtual" not in label or row[0].value == 2
    off = statistics.fmean(abs(cell.value) for cell in table.column("deviation"))
    assert f"Mean absolute deviation {100 * off:.1f} %." in table.notes


@pytest.mark.parametrize("name", ["figure3", "measured1", "pipeline1"])
def test_columns(made, name, golden):
    """The committed file has the same measured tables for other networks."""
    golden("timing", made[name], only_columns=True)


def test_widths(made):
    out = io.StringIO()
    printing.print_tables(out, [made[name] for name in ("figure3", "measured1", "pipeline1")])
    assert max(map(len, out.getvalue().split("\n"))) <= 120 and "nan" not in out.getvalue()


def test_median():
    """sqrt(10 / 4): the squares of -2 ... 2 sum to 10."""
    odd = timing_measured.median([Cell(value, MEASURED) for value in (5, 1, 4, 2, 3)])
    assert odd.value == 3 and odd.spread == pytest.approx(math.sqrt(2.5))
    even = timing_measured.median([Cell(value, SIMULATED) for value in (4, 1, 2, 9)])
    assert even.value == 3 and math.isnan(even.spread)
    assert timing_measured.median([Cell(), Cell()]).is_empty


def test_combine():
    """Combines the cells of the repeats one by one."""
    repeats = []
    for value in (1.0, 3.0, 2.0):
        table = Table("t", "T", "row", [Column("ms", "ms", "ms", 1, MEASURED), Column("off", "off", "", 1, NONE, DEVIATION)])
        table.row("one", value, -value / 10)
        repeats.append(table)
    combined = timing_measured.combine(repeats)
    assert combined.value("one", "ms") == 2 and combined.value("one", "off") == pytest.approx(-0.2)
    assert combined.cell("one", "ms").spread == 1
    assert combined.notes[0].startswith("Each number is the median of 3 measurements")
    assert combined.notes[1] == "Mean absolute deviation 20.0 %."
