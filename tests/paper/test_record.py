"""What paper_repro.md says of the long trainings: its rules on curves made by hand, its numbers from the raw curves, and
the sentences that rest on them."""
import math
import pathlib
import statistics

import h5py
import numpy as np
import pytest

import document
import record

RESULTS = pathlib.Path(__file__).resolve().parents[2] / "experiments" / "results"


def training(loss, score=None, every=10, images=True, epochs=None, rows=(), settings=None):
    """A training with an evaluation every `every` updates, which are an epoch by default."""
    evaluated = every * np.arange(1, len(loss) + 1, dtype=float)
    steps = int(evaluated[-1])
    loss = np.array(loss, dtype=float)
    return record.Training(
        {"model": "resnet8" if images else "gpt:", "schedule": "constant", **(settings or {})}, 100, steps,
        epochs or len(loss), evaluated, loss, np.array(loss if score is None else score, dtype=float),
        np.array([step for step, _ in rows], dtype=int), np.array([value for _, value in rows]), np.array([0]))


# ---- rules --------------------------------------------------------------------------------------

def test_a_score_is_the_mean_of_five_that_end_at_the_part():
    each = training([9] * 10, score=[1, 2, 3, 4, 5, 6, 7, 8, 9, 20])
    assert each.score_at() == pytest.approx((6 + 7 + 8 + 9 + 20) / 5)
    assert each.score_at(0.5) == pytest.approx(3)
    assert each.score_at(0.54) == pytest.approx(3) and each.score_at(0.56) == pytest.approx(4)
    assert math.isnan(each.score_at(0.4))  # four evaluations


def test_same_loss_trails():
    """Means of five: 10, 9, 8, ... from evaluation 5 on, and of BCD the same at half the speed."""
    full = training(np.arange(12, 2, -1))         # means 10 (update 50) .. 5 (100)
    bcd = training(np.arange(12, 2, -0.5))        # means 11 (update 50), 10.5, .. 3.5 (200)
    assert full.mean(full.loss).tolist() == pytest.approx([10, 9, 8, 7, 6, 5])
    # BCD is at 5, the higher of the two lowest, after 170 updates
    assert record.same_loss(bcd, full) == pytest.approx(170 / 100)


def test_same_loss_is_interpolated_and_has_a_beginning():
    full = training([8, 8, 8, 8, 8, 6.5])         # means 8 and 7.7
    bcd = training([8, 8, 8, 8, 8, 5.5, 8])       # means 8, 7.5, 7.5
    assert record.same_loss(bcd, full) == pytest.approx((50 + 0.6 * 10) / 60)
    assert math.isnan(record.same_loss(training([1] * 6), full))  # it began there


def test_window_of_the_training_loss_counts_updates():
    """Rows of 20 and of 10 updates in turn: a window of 30 has two of them, wherever it ends."""
    rows = [(20, 5.0), (30, 2.0), (50, 4.0), (60, 1.0)]
    steps, means = record.smoothed(training([1] * 6, rows=rows), 30)
    assert steps.tolist() == [30, 50, 60]
    assert means.tolist() == pytest.approx([(20 * 5 + 10 * 2) / 30, (10 * 2 + 20 * 4) / 30, (20 * 4 + 10 * 1) / 30])
    # a window that begins inside a row has a part of it
    steps, means = record.smoothed(training([1] * 6, rows=rows), 15)
    assert means.tolist() == pytest.approx([5, (5 * 5 + 10 * 2) / 15, 4, (5 * 4 + 10 * 1) / 15])


def test_plateau_is_early_stopping():
    rising = [10, 20, 30, 40, 50, 60] + [60.4] * 16
    each = training([1] * 22, score=rising)
    assert record.plateau(each) == 9  # the mean of the first five at 60.4 but one, 60.32, is not bettered by half a point
    assert record.gain_after_plateau(each) == pytest.approx(60.4 - (60 + 4 * 60.4) / 5)
    assert record.plateau(training([1] * 12, score=rising[:12])) is None  # nothing is known of what would have followed


def test_holm_and_welch():
    assert record.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    found = record.welch([1.0, 2.0, 3.0], [3.0, 5.0, 7.0])
    # by hand: s2 = 1 and 4, error = sqrt(5/3), freedom = (5/3)^2 / ((1/9 + 16/9) / 2) = 50/17
    error, freedom = math.sqrt(5 / 3), 50 / 17
    assert found.difference == pytest.approx(-3) and (found.low + found.high) / 2 == pytest.approx(-3)
    assert found.p == pytest.approx(1 - within(3 / error, freedom), abs=1e-6)
    assert within((found.high - found.low) / 2 / error, freedom) == pytest.approx(0.95, abs=1e-6)


def within(t, freedom):
    """The probability that Student's t lies between -t and t, from its density."""
    x = np.linspace(0, t, 20001)
    density = (1 + x**2 / freedom) ** (-(freedom + 1) / 2)
    density *= math.gamma((freedom + 1) / 2) / math.sqrt(freedom * math.pi) / math.gamma(freedom / 2)
    return 2 * float(np.sum((density[1:] + density[:-1]) / 2 * np.diff(x)))


def test_seeds_for():
    """Two samples, 5 % two-sided, 80 %: 2 (spread / difference)^2 (1.960 + 0.842)^2."""
    assert record.seeds_for(1.0, 1.0) == 16
    assert record.seeds_for(0.3, 1.4) == 342


# ---- numbers, from the raw curves ---------------------------------------------------------------

def raw():
    """(model, limit, optimizer, schedule, M, phase, fraction), seed, end score of each row of converged.h5."""
    with h5py.File(RESULTS / "converged.h5") as file:
        settings, found = file["settings"], {}
        for row, name in enumerate(file["table/row"].asstr()[()]):
            end = int(file["curves/evaluation_first"][row]) + int(file["curves/evaluation_rows"][row])
            what = "perplexity" if name.startswith("gpt") else "accuracy"
            score = sum(file["evaluation"][what][end - 5:end]) / 5 * (1 if name.startswith("gpt") else 100)
            parts = [settings[flag][row] for flag in ("model", "limit", "optimizer", "schedule", "submodels", "switch-every")]
            key = (*(part.decode() if isinstance(part, bytes) else int(part) for part in parts),
                   round(float(settings["fraction"][row]), 2))
            found.setdefault(key, {})[int(settings["seed"][row])] = score
        return found


def test_45_of_47_pairs_end_behind():
    found = raw()
    fulls = {key[:4]: scores for key, scores in found.items() if key[4] == 1}
    ends = [(score < fulls[key[:4]][seed]) == key[0].startswith("res")
            for key, scores in found.items() if key[4] > 1 for seed, score in scores.items()]
    assert document.pairs_behind() == (sum(ends), len(ends)) == (45, 47)


def test_scores_are_those_of_the_raw_curves():
    found = raw()
    half = found["resnet:depth=8,width=8", 0, "sgd", "constant", 3, "40", 1.0]
    assert record.scores("half", "bcd3") == pytest.approx([half[1], half[2], half[3]])
    gpt = found["gpt:layers=4,width=128,heads=4,context=64", 0, "adam", "constant", 1, "1e", 1.0]
    assert record.scores("gpt", "full") == pytest.approx([gpt[1], gpt[2]])
    every = [score for network, method in record.THREE_SEEDS + record.FEWER_SEEDS for score in record.scores(network, method)]
    assert sorted(every) == pytest.approx(sorted(s for key, scores in found.items() if key[4] > 1 for s in scores.values()))


@pytest.mark.parametrize("what, rule, expected", [
    # found by an independent recomputation from the raw curves
    (("half10", "bcd3"), record.same_loss, 2.78), (("half", "bcd3"), record.same_loss, 3.86),
    (("resnet8", "bcd3"), record.same_loss, 3.66), (("resnet14", "bcd3"), record.same_loss, 3.41),
    (("resnet20", "bcd3"), record.same_loss, 3.07), (("gpt", "bcd2"), record.same_loss, 2.54),
    (("gpt", "bcd3"), record.same_loss, 3.50), (("gpt", "bcd4"), record.same_loss, 5.31),
    (("half10", "bcd3 x0.9 every 2e"), record.same_training_loss, 5.29),
    (("half10", "bcd3 x0.3 every 2e"), record.same_training_loss, 5.64),
    (("half10-cosine", "bcd3"), record.same_training_loss, 6.31), (("resnet8", "bcd3"), record.same_training_loss, 4.95)])
def test_multipliers(what, rule, expected):
    assert round(statistics.fmean(record.multipliers(*what, rule)), 2) == expected


def test_what_was_registered():
    """8 : 24 from the registered evaluations, and the full update of 24 epochs begins with the same bits."""
    assert statistics.fmean(record.gaps("gpt", "bcd2", full="gpt8")) == pytest.approx(-0.26, abs=0.005)
    assert statistics.fmean(record.gaps("gpt", "bcd3", full="gpt8")) == pytest.approx(0.56, abs=0.005)
    for seed, short in record.seeds("gpt8", "full").items():
        long = record.seeds("gpt", "full")[seed]
        shared = np.intersect1d(short.row_steps, long.row_steps)[:-1]  # the last row of the short one ends early
        assert len(shared) > 1000
        assert (short.row_loss[np.isin(short.row_steps, shared)] == long.row_loss[np.isin(long.row_steps, shared)]).all()


# ---- sentences ----------------------------------------------------------------------------------

def test_bcd_never_reaches_the_same_loss_sooner():
    for what in record.THREE_SEEDS + record.FEWER_SEEDS + [("resnet8-plain", "bcd3")]:
        for rule in (record.same_loss, record.same_training_loss):
            assert all(value > 1 for value in record.multipliers(*what, rule) if not math.isnan(value)), what


def test_where_the_gap_shrinks():
    def gaps(network, method):
        return [abs(statistics.fmean(record.gaps(network, method, part))) for part in (0.25, 0.5, 0.75, 1)]

    for what in [("resnet8", "bcd3"), ("half", "bcd3"), ("half", "bcd3 every 1e"), ("gpt", "bcd2"), ("gpt", "bcd3"),
                 ("gpt", "bcd4")]:
        assert gaps(*what) == sorted(gaps(*what), reverse=True), what
    for what in [("half10", "bcd3"), ("half10-adam", "bcd3"), ("resnet14", "bcd3"), ("resnet20", "bcd3")]:
        assert gaps(*what) != sorted(gaps(*what), reverse=True), what


def test_at_the_published_ratios_halves_and_thirds_fall_back():
    for method, ratio in (("bcd2", 40 / 18), ("bcd3", 50 / 18)):
        means = [statistics.fmean(bcd.score_at(part) / full.score_at(part / ratio) for bcd, full in record.pairs("gpt", method))
                 for part in (0.5, 0.75, 1)]
        assert means == sorted(means)


def test_bcd_still_climbs():
    for what in [("resnet8", "bcd3"), ("half", "bcd3"), ("half10", "bcd3"), ("resnet14", "bcd3"), ("resnet20", "bcd3")]:
        bcd, full = ([each.score_at() - each.score_at(0.75) for each in record.seeds(what[0], method).values()]
                     for method in (what[1], "full"))
        assert statistics.fmean(bcd) > statistics.fmean(full) and statistics.fmean(bcd) > 1


def test_the_regime_where_the_full_update_overfits():
    (bcd, full), = record.pairs("resnet8-plain", "bcd3")
    assert bcd.score_at() > full.mean(full.score).max() > full.score_at()
    assert bcd.mean(bcd.loss).min() < full.mean(full.loss).min()
    assert full.loss[-1] > full.loss.min() * 1.5 and bcd.loss[-1] == bcd.loss.min()


def test_when_bcd_pays():
    table = document.tables.of(RESULTS / "savings.h5")["savings"]
    memory = {label: table.value(label, "all") for label in table.labels}
    assert memory["GPT 4x128: full, 2 micro-batches"] < memory["GPT 4x128: BCD-1/3"]
    assert memory["GPT 4x128: full, batch of 12"] < memory["GPT 4x128: BCD-1/3"]
    assert memory["ResNet-8: full, batch of 108"] == pytest.approx(memory["ResNet-8: BCD-1/3"], rel=0.01)
    assert memory["GPT 8x192: full, plain SGD"] == pytest.approx(memory["GPT 8x192: BCD-1/3"], rel=0.01)
    assert memory["GPT 8x192: BCD-1/3"] < memory["GPT 8x192: full, Lion"]


def test_pilots_third_submodel():
    """Two epochs in phases of an epoch: the third submodel of the GPT never trained."""
    switches = [each for each in record.trainings("converged-pilot.h5")
                if each.settings["model"] == record.GPT and each.settings["switch-every"] == "1e" and each.settings["submodels"] == 3]
    assert [len(each.phases) for each in switches] == [2]
