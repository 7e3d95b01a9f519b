"""The gap by length and by width (scaling.py); slopes and multipliers by hand."""
import math

import numpy as np
import pytest
from scipy import stats

import scaling
from cases import Cases
from samples import GPT, LATER, evaluations, training


def ended(loss, steps=100, model=GPT, **columns):
    made = training(model, False, started=LATER, schedule="cosine", steps=steps, valid_loss=loss, **columns)
    made.evaluation = evaluations([steps // 2, steps], [9, loss])
    return made


# ---- length -------------------------------------------------------------------------------------

def lengths_of(bcd, **columns):
    full = [ended(loss, steps, seed=seed) for seed in (1, 2) for loss, steps in ((3.0, 100), (2.0, 400), (1.5, 800))]
    return scaling.lengths(Cases(full + [ended(bcd, 800, seed=seed, submodels=3, **columns) for seed in (1, 2)]))


def test_the_same_loss_is_interpolated_in_the_logarithm():
    """Half-way between losses 3 and 2 lies half-way between ln 100 and ln 400: 200 updates."""
    table = lengths_of(2.5)
    label, = table.labels
    assert table.value(label, "same") == pytest.approx(200) and table.value(label, "multiplier") == pytest.approx(4)
    assert table.value(label, "tried") == "100 400 800" and table.value(label, "seeds") == 2


def test_lengths_are_of_one_rate():
    """A pilot of another rate, which ends elsewhere, is no point of the curve."""
    full = [ended(loss, steps, seed=seed) for seed in (1, 2) for loss, steps in ((3.0, 100), (2.0, 400))]
    pilot = ended(2.7, 200, seed=1, lr=0.3)
    bcd = [ended(2.5, 800, seed=seed, submodels=3, lr=0.3) for seed in (1, 2)]
    table = scaling.lengths(Cases([*full, pilot, *bcd]))
    assert table.column("tried")[0].value == "100 400" and table.column("same")[0].spread == pytest.approx(0)


def test_lengths_are_of_one_file():
    """Another group may have full updates of the same network at the rate of BCD; runs have a file each."""
    full = [ended(loss, steps, lr=0.2) for loss, steps in ((3.0, 100), (2.0, 400))]
    bcd, width = ended(2.5, 400, submodels=3), ended(2.0, 50)
    for one in (*full, bcd):
        one.file = "gpt-length.h5"
    width.file = "width.h5"
    assert scaling.lengths(Cases([*full, bcd, width])).column("tried")[0].value == "100 400"
    for number, one in enumerate(full + [bcd]):
        one.file = f"{number}/run.h5"
    assert scaling.lengths(Cases([*full, bcd])).column("tried")[0].value == "100 400"


def test_a_seed_without_full_updates_has_no_multiplier():
    full = [ended(loss, steps) for loss, steps in ((3.0, 100), (2.0, 400))]
    table = scaling.lengths(Cases(full + [ended(2.5, 400, seed=seed, submodels=3) for seed in (1, 2)]))
    assert table.cell(table.labels[0], "multiplier").is_empty


@pytest.mark.parametrize("loss", [3.0, 3.5, 1.4])
def test_a_loss_outside_has_no_multiplier(loss):
    table = lengths_of(loss)
    assert table.cell(table.labels[0], "multiplier").is_empty and table.cell(table.labels[0], "same").is_empty


def test_seeds_have_their_own_full_updates():
    full = [ended(loss + seed, steps, seed=seed) for seed in (1, 2) for loss, steps in ((3.0, 100), (1.0, 400))]
    table = scaling.lengths(Cases(full + [ended(2.0 + seed, 400, seed=seed, submodels=3) for seed in (1, 2)]))
    cell = table.cell(table.labels[0], "multiplier")
    assert cell.value == pytest.approx(2) and cell.spread == pytest.approx(0)


@pytest.mark.parametrize("submodels, steps", [(3, 400), (1, 800), (1, 400), (1, 100)])
def test_a_seed_that_diverged_leaves_no_multiplier(submodels, steps):
    made = [ended(loss, steps, seed=seed) for seed in (1, 2) for loss, steps in ((3.0, 100), (2.0, 400), (1.5, 800))]
    made += [ended(2.5, 400, seed=seed, submodels=3) for seed in (1, 2)]
    one = next(one for one in made if (one["submodels"], one["steps"]) == (submodels, steps))
    one.row |= {"status": "diverged", "valid_loss": math.nan}
    table = scaling.lengths(Cases(made))
    assert table.cell(table.labels[0], "multiplier").is_empty
    assert table.labels[0].endswith(", diverged: seed 1") == (submodels == 3)


def test_one_length_or_a_constant_rate_has_no_table():
    assert not scaling.lengths(Cases([ended(2.0), ended(2.5, submodels=3)])).rows
    made = [ended(3.0), ended(2.0, 200), ended(2.5, submodels=3)]
    for one in made:
        one.settings["schedule"] = "constant"
    assert not scaling.lengths(Cases(made)).rows


# ---- width --------------------------------------------------------------------------------------

def widths_of(gap_of, widths=(64, 128, 256), schedule="cosine"):
    made = []
    for width in widths:
        model = f"gpt:layers=2,width={width},heads={width // 32},context=32"
        for seed in (1, 2):
            made += [ended(2.0, model=model, seed=seed, lr=0.1 * width),
                     ended(2.0 * math.exp(gap_of(width, seed)), model=model, seed=seed, submodels=3, lr=0.2 * width)]
    for one in made:
        one.settings["schedule"] = schedule
    return scaling.widths(Cases(made))


@pytest.mark.parametrize("slope, answer", [(-0.1, "shrinks"), (0.1, "grows"), (0.0, "may not be extrapolated")])
def test_slope(slope, answer):
    """Rates differ between the widths; the interval is that of scipy's line."""
    def gap_of(width, seed):
        return 1 + slope * math.log(width) + (-1)**seed * 0.001 * (width == 128)
    table = widths_of(gap_of)
    label, = table.labels
    x = np.log(np.repeat([64, 128, 256], 2))
    line = stats.linregress(x, [gap_of(width, seed) for width in (64, 128, 256) for seed in (1, 2)])
    half = stats.t.ppf(0.975, 4) * line.stderr
    assert table.value(label, "slope") == pytest.approx(slope, abs=1e-6)
    assert table.value(label, "high") - table.value(label, "low") == pytest.approx(2 * half)
    assert table.value(label, "widths") == "64 128 256" and table.value(label, "points") == 6
    assert table.value(label, "first") == pytest.approx(1 + slope * math.log(64))
    assert table.value(label, "answer") == answer and "x64" not in label


def test_the_label_has_no_width_of_which_there_is_no_gap():
    """The narrowest has no full update of its seeds: its width is not in the label either."""
    made = []
    for width in (64, 128, 256, 512):
        model = f"gpt:layers=2,width={width},heads={width // 32},context=32"
        made += [ended(2.2, model=model, seed=seed, submodels=3, lr=0.2 * width) for seed in (1, 2)]
        made += [ended(2.0, model=model, seed=seed, lr=0.1 * width) for seed in (1, 2) if width > 64]
    table = scaling.widths(Cases(made))
    label, = table.labels
    assert table.value(label, "widths") == "128 256 512" and label.startswith("gpt-2 ")


def test_rates_are_chosen_first():
    """A grid of rates at each width has no slope."""
    made = [ended(2.0 + 0.1 * submodels, model=f"gpt:layers=2,width={width},heads=2,context=32", lr=lr, submodels=submodels)
            for width in (64, 128, 256) for lr in (0.1, 0.2) for submodels in (1, 3)]
    assert not scaling.widths(Cases(made)).rows


def test_a_seed_that_diverged_is_no_point():
    table = widths_of(lambda width, seed: 0.1 if width < 256 or seed == 1 else math.nan)
    label, = table.labels
    assert table.cell(label, "slope").is_empty and table.value(label, "answer") == "may not be extrapolated"


def test_two_widths_have_no_slope():
    assert not widths_of(lambda width, seed: 0.1, (64, 128)).rows


def test_a_constant_rate_has_no_slope():
    """It ends nowhere, so that its last loss is no end of a training."""
    assert not widths_of(lambda width, seed: 0.1, schedule="constant").rows
