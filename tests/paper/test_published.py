"""The published tables agree with themselves, except where the audit of them says otherwise."""
import math
import os
import subprocess

import pytest

import document
import published
from published import COST


# No multiplier makes these cells follow from the published times.
def contradicts(row):
    return row.gpu == "rtx4090" and (row.model in ("G-1.6B", "G-20B") or (row.what == COST and row.model == "G-5.4B"))


@pytest.mark.parametrize("row", published.reductions(), ids=lambda row: f"{row.what} {row.gpu} {row.model}")
def test_reductions(row):
    """With 1.249 and 2.77 the tables follow, except for those rows; Table 6 up to what another price of the A100 would
    change (the cells imply 4.17 times an RTX 4090's, not the 4.14 of section 4.4.1). Times and prices cancel in the
    multiplier, so all rows give the same one, contradicting rows too."""
    worst, average = 1 - 2.77 * row.ratio, 1 - 1.249 * row.ratio
    is_table6 = row.what == COST and row.gpu == "a100"
    allowed = 0.012 if is_table6 else 0.004
    follows = abs(worst - row.worst) <= allowed and abs(average - row.average) <= allowed
    assert follows == (not contradicts(row))
    assert abs(1 - 1.39 * row.ratio - row.average) > 0.01 or (is_table6 and row.model == "G-1.6B")
    assert row.multiplier == pytest.approx(1.249, abs=0.006)


def test_multiplier_of_tables():
    multipliers = [row.multiplier for row in published.reductions()]
    assert len(multipliers) == 24
    assert published.table_multiplier() == pytest.approx(1.249, abs=0.0005)
    assert min(multipliers) == pytest.approx(1.244, abs=0.0005) and max(multipliers) == pytest.approx(1.251, abs=0.0005)


@pytest.mark.parametrize("model, worst, average", [("G-1.6B", 0.090, 0.589), ("G-20B", 0.217, 0.647)])
def test_implied_by_table_4(model, worst, average):
    ratio, = (row.ratio for row in published.reductions() if (row.what, row.gpu, row.model) == (COST, "rtx4090", model))
    assert 1 - 2.77 * ratio == pytest.approx(worst, abs=0.0006)
    assert 1 - 1.249 * ratio == pytest.approx(average, abs=0.001)


@pytest.mark.parametrize("step", published.steps(), ids=lambda step: f"{step.table} {step.model} {step.gpus} {step.gpu}")
def test_times_agree(step):
    """Table 4 prints the times of Tables 15 and 16 without their decimals, and BCD takes half the GPUs of a full
    update; Tables 3, 8 and 15 count the GPUs of BCD."""
    bcd = published.step(4, step.model, 3)
    assert bcd.method == published.BCD
    assert round(published.bcd_ms(step.model)) == bcd.ms
    if (step.table, step.method, step.gpu) == (4, published.FULL, "rtx4090"):
        assert 2 * published.gpus_of(bcd.gpus) == published.gpus_of(step.gpus)
    if step.method != published.FULL and step.model in published.models():
        assert published.models()[step.model]["gpus"] == published.gpus_of(step.gpus)


def test_tables_agree():
    """Cells that are printed twice are the same."""
    cells = published.cells()
    table4 = {row["model"]: row for row in cells["table4"]}
    for row in cells["table3"]:
        assert row["bcd_ms"] == table4[row["model"]]["bcd_ms"]
    for row in cells["table8"]:
        assert row["gib"] == table4[row["model"]]["full_gib"]
    price = next(row for row in cells["table1"] if row["feature"] == "price")
    assert (price["rtx4090"], price["a100"]) == (cells["prices"][0]["rtx4090"], cells["prices"][0]["a100"])


@pytest.mark.parametrize("gpu, model, gpus, ms", [
    ("rtx4090", "G-10B", "4/4", 3178), ("rtx4090", "G-10B", "2/8", 3252), ("rtx4090", "G-5.4B", "1/8", 1934),
    ("a800", "G-20B", "1/8", 11722), ("h100", "G-10B", "1/4", math.nan)])
def test_full_updates(gpu, model, gpus, ms):
    assert published.full_ms(gpu, model, gpus) == pytest.approx(ms, nan_ok=True)
    assert math.isnan(published.bcd_ms("gpt2"))


def test_counts():
    counts = {table: len(published.trainings(table)) for table in (2, 9, 10, 11)}
    assert counts == {2: 24, 9: 6, 10: 3, 11: 8}
    assert [t.row for t in published.trainings(9)][:3] == ["0.9 1/3 SGD", "1 1/3 SGD", "1 1 SGD"]
    assert [t.row for t in published.trainings(10)] == ["0.9 1/3", "1 1/3", "1 1"]
    assert published.trainings(11)[5].row == "1/2 Adam"
    assert len(published.steps()) == 18 + 19 + 8 + 6


def test_multipliers():
    """By hand: Adam's ResNets 309/389, 372/491, 423/768, GPT-2 232471/83690 and 1045000/499000."""
    assert published.mean_multiplier("adam") == pytest.approx(1.39, abs=0.005)
    assert published.mean_multiplier("adam", False) == pytest.approx((232471 / 83690 + 1045000 / 499000) / 2)
    assert published.mean_multiplier("adam", True) == pytest.approx((309 / 389 + 372 / 491 + 423 / 768) / 3)
    for table in (2, 9, 11):  # no published language model needs fewer epochs by BCD
        assert all(t.multiplier > 1 for t in published.trainings(table) if not t.is_images and t.submodels > 1)


def test_scores():
    """The "Acc" of GPT in Tables 9 and 11 is 10 exp(loss), truncated; in one row rounded."""
    rounded = []
    for training in published.trainings(9) + published.trainings(11):
        if training.printed != math.floor(100 * math.exp(training.loss)) / 10:
            assert training.printed == round(10 * math.exp(training.loss), 1)
            rounded.append(training.row)
    assert rounded == ["1/2 SGD"]
    assert published.trainings(9)[0].score == pytest.approx(6.89)


@pytest.mark.parametrize("asked, row", [
    (("resnet8", "cifar10", True, "sgd", 3, 1), ("ResNet8", "sgd")),
    (("resnet8", "synthetic", True, "adamw", 3, 1), ("ResNet8", "adam")),
    (("gpt-4x128", "wikitext2:2048", False, "adam", 1, 1), ("GPT2-wiki", "adam")),
    (("gpt-4x128", "webtext2", False, "adam", 1, 1), ("GPT2-web", "adam"))])
def test_find(asked, row):
    found = published.find(2, *asked)
    assert (found.row, found.optimizer) == row


def test_find_none():
    assert published.find(2, "resnet8", "cifar10", True, "sgd", 4, 1) is None
    assert published.find(10, "resnet14", "cifar10", True, "sgd", 3, 0.9).row == "0.9 1/3"


@pytest.mark.parametrize("what, value, said, digits", [
    ("BCD over OffLoad", lambda: mean_of_offload(), 0.2095, 4),
    ("BCD over OffLoad, at worst", lambda: 2.77 * mean_of_offload(), 0.580, 3),
    ("G-1.6B, half of the GPUs", lambda: 0.5 * published.bcd_ms("G-1.6B") / 576, 0.3286, 4),
    ("G-1.6B, at worst", lambda: 2.77 * 0.5 * published.bcd_ms("G-1.6B") / 576, 0.910, 3),
    ("33 per cent", lambda: 0.33 / mean_cost_ratio(), 0.91, 2),
    ("2.6 per cent", lambda: 0.026 / mean_cost_ratio(), 0.07, 2),
    ("half of 5 W", lambda: (1 + 4 / 3) / 5, 0.47, 2)])
def test_contradictions(what, value, said, digits):
    """Numbers of section 5 of paper_repro.md that are in no file of results."""
    assert value() == pytest.approx(said, abs=0.5001 * 10**-digits), what


def mean_of_offload():
    return sum(bcd.ms / offload.ms for offload, bcd in published.pairs(3)) / 6


def mean_cost_ratio():
    """BCD on half of the GPUs."""
    return sum(0.5 * bcd.ms / full.ms for full, bcd in published.pairs(4)) / 10


def test_losses_of_training():
    """A wrong answer has at most half of the probability, so the printed losses must be those of the training split."""
    for row, error, loss in (("ResNet50", 0.066, 0.0260), ("ResNet101", 0.20, 0.0691)):
        full = next(t for t in published.trainings(2) if t.row == row and t.submodels == 1)
        assert math.log(2) * (1 - full.score / 100) > error and full.loss == loss
    assert {t.loss for t in published.trainings(2) if t.row == "GPT2-web" and t.submodels == 1} == {3.3580}


def test_gaps():
    """By hand, from Table 2: ResNet-8 with Adam 83.1 and 86.0, ResNet-101 with SGD."""
    assert max(published.gaps(True)) == pytest.approx(86.0 - 83.1) and len(published.gaps(True)) == 8
    assert min(published.gaps(True)) == pytest.approx(-1.5) and len(published.gaps(False)) == 4
    assert document.savings_explained() == (38, 48)


@pytest.mark.parametrize("model", published.models())
def test_same_models(model):
    """The presets of the program have the shapes of Table 8."""
    row = published.models()[model]
    spec = f"gpt:layers={row['layers']},width={row['width']},heads={row['heads']},"
    if "ffn" in row:
        spec = spec.replace("gpt:", "llama:") + f"ffn={row['ffn']},"
    out = subprocess.run([os.environ["BCD_PROGRAM"], "info", "--model", model], capture_output=True, text=True, check=True)
    assert f"{model} = {spec}" in out.stdout
