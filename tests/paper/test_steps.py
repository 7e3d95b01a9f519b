"""Published steps and their simulation: what must hold whatever the machines reach, and the tables."""
import math
import pathlib
import re

import pytest

import program
import published
import steps
import timing
from published import BCD, CACHED, FULL, Step
from tables import PUBLISHED, SIMULATED


@pytest.fixture(scope="module")
def made():
    return {table.name: table for table in timing.simulated(1.39)}


@pytest.mark.parametrize("gpu", published.GPUS)
def test_calibrated_cell_comes_out(gpu):
    """The cell from which a GPU's fraction is calibrated has its published time. The fraction is one of the peak."""
    step = steps.calibration(gpu)
    assert 0.1 < steps.rates(gpu, steps.CALIBRATED)["efficiency"] < 0.8
    assert steps.milliseconds(step, steps.CALIBRATED) == pytest.approx(step.ms, rel=1e-5)


@pytest.mark.parametrize("method, theory", [(BCD, 2 / 3), (CACHED, 5 / 9)])
def test_steps_in_theory(method, theory):
    """Without communication and overlap a step by BCD takes its theoretical share of a full update."""
    full, bcd = (Step(4, "rtx4090", "G-10B", "1/1", *which) for which in ((FULL, 1), (method, 3)))
    share = steps.milliseconds(bcd, steps.ROOFLINE) / steps.milliseconds(full, steps.ROOFLINE)
    assert share == pytest.approx(theory, abs=0.05)


def test_unknown_models_are_left_out():
    assert math.isnan(steps.milliseconds(published.step(4, "L-8.0B", 1), steps.CALIBRATED))


@pytest.mark.parametrize("k, parts, plain, cached", [
    (1, 3, 0.778, 0.778), (2, 3, 0.667, 0.556), (3, 3, 0.556, 0.333), (0, 3, 0.667, 0.556), (0, 4, 0.625, 0.5),
    (0, 5, 0.6, 0.467)])
def test_theory_in_letters(k, parts, plain, cached):
    assert steps.operations_ratio(k, parts) == pytest.approx(plain, abs=5e-4)
    assert steps.operations_ratio(k, parts, cached=True) == pytest.approx(cached, abs=5e-4)


@pytest.mark.parametrize("model", ["G-1.6B", "G-5.4B", "G-10B", "L-1.5B", "L-6.0B", "L-11B"])
def test_smaller_parts_are_faster(made, model):
    table, before = made["tables15and16"], math.inf
    for parts in (3, 4, 5):
        row = f"{model} 1/{parts}"
        calibrates = (model, parts) == ("G-1.6B", 3)
        assert table.cell(row, "calibrated").source == (PUBLISHED if calibrates else SIMULATED)
        assert table.value(row, "cached") < table.value(row, "calibrated") < before
        before = table.value(row, "calibrated")


# By hand, from the numbers that the paper prints.
BY_HAND = [
    ("tables15and16", "G-5.4B 1/4", "flops", "1134.9"), ("tables15and16", "L-11B 1/5", "flops", "1626.4"),
    ("tables15and16", "L-11B 1/5", "flops_deviation", "0.032687"), ("figure4", "G-10B", "bcd", "3355.5"),
    ("figure4", "L-23B", "bcd", "4835.8"), ("figure4", "G-10B", "offload", "7076.0"), ("figure6", "1/4", "flops", "2263.4"),
    ("figure6_llama", "1/5", "flops", "1626.4")]
# Simulated: what came out when the simulator was as it is, so that no cell changes unnoticed.  Where tasks are ready at the
# same time, the last bit of a sum chooses the next, and compilers differ by up to 6 %: held are cells, or digits, without.
PINNED = [
    ("deviations", "Table 3", "cells", "5"), ("deviations", "Table 3", "roofline", "0.475"),
    ("deviations", "Table 3", "calibrated", "0.250"), ("deviations", "of these LLaMA alone", "calibrated", "0.339"),
    ("deviations", "Tables 15 and 16", "calibrated", "0.16"), ("table4", "L-11B full", "roofline", "1541.2"),
    ("table4", "L-11B full", "calibrated", "3582.8"), ("table4", "G-10B BCD-1/3", "roofline", "995.94"),
    ("table4", "G-10B BCD-1/3", "roofline_deviation", "-0.58743"), ("table4", "G-10B BCD-1/3", "calibrated", "2257.9"),
    ("table4", "G-5.4B full, A100 80GB", "roofline", "2569.8"), ("table4", "G-5.4B full, A100 80GB", "calibrated", "3425.2"),
    ("table4", "G-20B full, A800 80GB", "roofline", "9771.7"), ("table4", "G-20B full, A800 80GB", "calibrated", "13739"),
    ("table3", "L-6.0B offload", "roofline", "2794.1"), ("table3", "L-6.0B offload", "calibrated", "3708.7"),
    ("table3", "L-6.0B offload", "calibrated_deviation", "-0.41751"), ("tables15and16", "L-6.0B 1/4", "roofline", "517.80"),
    ("tables15and16", "L-6.0B 1/4", "calibrated", "1171.0"),
    ("tables15and16", "L-6.0B 1/4", "calibrated_deviation", "0.30735"), ("tables15and16", "L-6.0B 1/4", "cached", "945.69"),
    ("figure4", "G-10B", "offload_simulated", "6538.8"), ("figure4", "G-10B", "distributed_simulated", "3610.2"),
    ("figure4", "G-10B", "bcd_simulated", "3138.5"), ("figure6", "1/4", "G_1_6B_simulated", "351.60"),
    ("figure6", "1/4", "G_10B_simulated", "2132.6"), ("figure6_llama", "1/4", "L_6_0B_simulated", "1171.0"),
    ("table4", "G-1.6B BCD-1/3", "filled", "317.17"), ("table4", "L-6.0B full", "filled", "246.12"),
    ("table4", "G-1.6B full, A100 80GB", "filled", "988.41"), ("offload", "1k", "times", "4.18"),
    ("offload", "64k", "times", "1.05"), ("submodels", "1/3 submodel 2", "one", "0.6657"),
    ("submodels", "1/4 mean", "one_cached", "0.4934")]


@pytest.mark.parametrize("table, row, column, value", BY_HAND + PINNED)
def test_cells(made, table, row, column, value, held):
    held(made[table], row, column, value)


@pytest.mark.parametrize("table, text", [
    ("table4", "matrix products at 73 % of the peak"), ("table4", "larger take 0.61 to 0.87 of the time"),
    ("table4", "RTX 4090 27.6 % (G-1.6B BCD-1/3), A100 54.2 %, A800 51.4 % (G-1.6B full on one)"),
    ("table3", "27.9 GB/s per process (calibrated with G-1.6B), 100 GB/s per node at most"),
    ("figure4", "its steps times the B-F multiplier 1.39"), ("figure6", "the published time of G-10B at 1/3")])
def test_notes(made, table, text):
    assert any(text in note for note in made[table].notes)


def test_mean_deviation(made):
    """The mean over Table 4, computed from its own cells. Cells that calibrate (the first on each GPU) and models that
    are not described do not count."""
    table = made["table4"]
    off = [(abs(row[2].value / row[1].value - 1), abs(row[4].value / row[1].value - 1))
           for label, row in zip(table.labels, table.rows)
           if not (label == "G-1.6B BCD-1/3" or label.startswith("G-1.6B full, ") or math.isnan(row[4].value))]
    summary = made["deviations"].rows[0]
    assert [cell.value for cell in summary] == pytest.approx([22, *(sum(column) / 22 for column in zip(*off))], abs=1e-12)


@pytest.mark.parametrize("submodels", [3, 4, 5])
def test_mean_over_submodels(made, submodels):
    """The same holds for simulated steps."""
    table = made["submodels"]
    for column in ("theory", "theory_cached", "one", "one_cached", "many", "many_cached"):
        each = [table.value(f"1/{submodels} submodel {k + 1}", column) for k in range(submodels)]
        assert table.value(f"1/{submodels} mean", column) == pytest.approx(sum(each) / submodels)


@pytest.mark.parametrize("name", [
    "table4", "table3", "tables15and16", "figure4", "figure6", "figure6_llama", "submodels", "offload"])
def test_golden(made, name, golden):
    """The file is of the time when C made these tables. Computed cells agree to the last digit that is printed,
    simulated ones within the differences between compilers. Filled pipelines held more micro-batches then than this
    program's ranks do, and waited less."""
    golden("timing", made[name], simulated=0.1, waiting={"filled": 0.15, "many": 0.15, "many_cached": 0.15})


# ---- what dist/README.md says -------------------------------------------------------------------

def saved_by_zero_bubble(model, gpus):
    """How much less time a step of BCD-1/3 takes than by 1f1b, as dist/README.md puts it."""
    number, gpu = gpus.split(" ", 1)
    flags = program.flags_of(model=model, gpu=gpu.lower().replace(" ", ""), nodes=int(number) // 8, per_node=8, batch=256,
                             submodels=3, precision="bf16")
    before, after = (program.ask_once("plan", *flags, "--pipeline-schedule", name)["plan"].value("BCD-1/3", "step")
                     for name in ("1f1b", "zero-bubble"))
    if math.isnan(after):
        return "does not fit" if math.isnan(before) else "`zero-bubble` does not fit"
    return f"{100 * (1 - after / before):.0f} %".replace("-0", "0")


def test_zero_bubble_in_the_readme():
    readme = (pathlib.Path(__file__).resolve().parents[2] / "dist" / "README.md").read_text(encoding="utf-8")
    table = re.findall(r"^\| (.*) \|$", readme.split("\n## Schedules\n")[1].split("\n## ")[0], re.MULTILINE)
    clusters, *rows = [line.split(" | ") for line in table]
    for model, *cells in rows:
        assert cells == [saved_by_zero_bubble(model, gpus) for gpus in clusters[1:]], model
