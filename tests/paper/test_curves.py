"""The rules that say when a loss was reached and when a training converged, on curves with known answers."""
import math

import numpy as np
import pytest

import compare
import curves
from samples import STEPS, curve, evaluations, like, pairs, training

# One loss an epoch; improvements of more than 1 within 3 epochs count.
PLATEAUS = [
    ("nothing", None, []),
    ("fewer than five", None, [9] * 4),
    ("five evaluations, after which more could come", None, [9] * 5),
    ("flat for less than the patience", None, [9] * 7),
    ("flat for as long as the patience", 4, [9] * 8),
    ("always falling", None, range(120, 0, -10)),
    # means from the fifth on: 80, 70, 61, 54, 50, 50, ...: 50 is the ninth's
    ("falling, then flat", 8, [100, 90, 80, 70, 60, 50, 45, 45, 50, 60, 50, 45, 45, 50]),
    # means 9, 9 - 5/5, ...: the fall of a mean is 1, which is not more than 1
    ("better by no more than the amount", 4, [9, 9, 9, 9, 9, 4, 9, 9]),
    ("better by a little more", None, [9, 9, 9, 9, 9, 3, 9, 9]),
    # means 9, 9, 9, 9, 9, 5: the improvement comes five epochs later
    ("better again, but too late", 4, [9] * 9 + [-11]),
    # one low value changes the mean of five by a fifth of its size
    ("noise", 4, [9, 8, 10, 9, 9, 10, 8, 8, 10]),
    ("worse and worse", 4, range(1, 10)),
    # means 9, 8.4, 7.8, 7.8, ...: 8.4 is no new best, although nothing later beats it by 1
    ("a new best is better than the best, not than the mean before", 6, [9, 9, 9, 9, 9, 6, 6, 9, 9, 9]),
    ("slowly better, by more than the amount in three epochs", None, [20 - 0.5 * e for e in range(12)]),
]


@pytest.mark.parametrize("values, at", [(values, at) for _, at, values in PLATEAUS], ids=[what for what, _, _ in PLATEAUS])
def test_plateau(values, at):
    assert curves.plateau_index(list(values), range(1, len(values) + 1), 1, 3) == at


@pytest.mark.parametrize("stretched", [0.999, 1.001, 1.1])
def test_evaluations_near_the_end_of_an_epoch_are_of_it(stretched):
    """An epoch is seldom a whole number of updates: the third evaluation after the best counts, and the fourth does not."""
    epochs = [stretched * number for number in range(1, 20)]
    assert curves.plateau_index([9] * 7 + [3] + [9] * 6, epochs, 1, 3) == 7
    assert curves.plateau_index([9] * 8 + [3] + [9] * 6, epochs, 1, 3) == 4


def test_plateau_of_a_tie():
    """Means of accuracies that differ by half a point plus a rounding error are no new best."""
    accuracy = np.array([0.7] * 5 + [0.7, 0.7, 0.7, 0.7, 0.725] + [0.7] * 8)
    assert curves.plateau_index(100 - 100 * accuracy, range(1, 19), 0.5, 10) == 4


def test_plateau_of_a_training():
    """Accuracy 50, 60, 70, 80, 80, ... of 20 evaluations, every second epoch of 10 updates: the means of five are 68, 74,
    78, 80, 80, ...; the last that is better by more than half a point is the eighth, after 16 epochs."""
    accuracy = [0.5, 0.6, 0.7] + [0.8] * 17
    accuracy[19] = 0.85
    one = training(steps=400, epochs=40.0)
    one.evaluation = evaluations([20 * e for e in range(1, 21)], [10 - e for e in range(20)], accuracy)
    row = compare.alone(one)
    assert row["plateau_steps"] == 160 and row["plateau_epochs"] == pytest.approx(16)
    assert row["plateau_score"] == pytest.approx(80) and row["plateau_spread"] == pytest.approx(0, abs=1e-9)
    assert row["end_score"] == pytest.approx(81) and row["end_spread"] == pytest.approx(math.sqrt(5))
    assert curves.mean_score(one, 119)[0] == pytest.approx(68)
    assert math.isnan(curves.mean_score(one, 99)[0])
    # For text the loss counts. It falls by a nat at each evaluation, so this never converges.
    row = compare.alone(like(one, input="tokens"))
    assert math.isnan(row["plateau_steps"]) and math.isnan(row["plateau_score"])


def test_plateau_multiplier():
    """A full update falls by a nat in each of 12 evaluations, and BCD by half a nat, with one low evaluation by chance.
    BCD's lowest mean of five is 7.5, of the updates 80 to 120; the full update has means of 8 and 7 up to the updates
    70 and 80."""
    steps = [10 * e for e in range(1, 13)]
    full, bcd = training(), training(submodels=3)
    full.evaluation = evaluations(steps, [12 - e for e in range(12)])
    bcd.evaluation = evaluations(steps, [5 if e == 4 else 12 - 0.5 * e for e in range(12)])
    assert curves.plateau_multiplier(bcd, full) == pytest.approx(120 / 75)
    full.evaluation = evaluations(steps[5:], [12 - e for e in range(5, 12)])
    assert math.isnan(curves.plateau_multiplier(bcd, full)), "of a full update that begins below"
    full.evaluation = evaluations(steps, [8] * 12)
    assert math.isnan(curves.plateau_multiplier(bcd, full)), "of a full update that begins there"
    assert math.isnan(curves.plateau_multiplier(full, bcd)), "of BCD that begins there"
    bcd.evaluation = evaluations(steps[:4], [9] * 4)
    assert math.isnan(curves.plateau_multiplier(bcd, full)), "of four evaluations"


def test_multiplier():
    """The window is 10 updates.  BCD ends near 3 exp(-0.01 200), the level; the full update, twice as fast, is there after
    half of the steps, but for the lag of the window."""
    full, bcd, _, other = pairs()
    assert full["multiplier"] == 1 and math.isnan(full["level"]) and math.isnan(full["steps_to_converge"])
    assert bcd["steps_to_converge"] == STEPS and bcd["epochs_to_converge"] == STEPS / 50
    assert 100 <= bcd["steps_to_converge"] / bcd["multiplier"] <= 105
    assert bcd["train_loss"] == pytest.approx(bcd.curve["loss"][-10:].mean(), abs=1e-12)
    assert bcd["level"] == pytest.approx(bcd["train_loss"], abs=1e-12)
    assert other["multiplier"] < 1 and other["level"] > other["train_loss"], "there BCD is faster"


def test_validation_multiplier():
    """Validation losses 1 - 0.07 e, the same for both: reached at the same evaluation.  Then the full update gets down to
    0.5 at its second evaluation, BCD to 0.79 at its last; that is the level, which the full update has reached 21/50 of
    the way from its first, of loss 1."""
    full, bcd, *_ = pairs()
    assert bcd["valid_steps"] == 200 and bcd["valid_multiplier"] == 1

    def again(*losses):
        full.evaluation["loss"][:len(losses)] = losses
        compare.converge([full, bcd])
        return bcd["valid_multiplier"]
    assert again(1, 0.5) == pytest.approx(200 / 71)
    assert bcd["valid_level"] == bcd.evaluation["loss"][3] and bcd["valid_steps"] == 200
    # The loss was reached at the first evaluation, or before; or it rose before it fell.
    assert math.isnan(again(0.79)) and math.isnan(bcd["valid_steps"])
    assert again(0.8, 2.79, 0.29) == pytest.approx(200 / 140)


def test_scores_between_evaluations():
    """A mean belongs to its last evaluation, and before the first mean nothing is known."""
    one = training(steps=50)
    one.evaluation = evaluations([10, 20, 30, 40, 50], [1] * 5, np.array([10, 20, 30, 60, 50]) / 100)
    assert curves.mean_score_at(one, 50) == pytest.approx(34) and math.isnan(curves.mean_score_at(one, 49))
    assert [curves.mean_score_at(one, steps, 2) for steps in (20, 25, 50)] == pytest.approx([15, 20, 55])
    assert math.isnan(curves.mean_score_at(one, 19, 2)) and math.isnan(curves.mean_score_at(one, 50, 6))


def test_smoothing():
    """Checks the level, and the updates to it. A low loss of the first batch is no convergence."""
    full, bcd, *_ = pairs()
    for r, one in enumerate([full, bcd]):
        one.curve["loss"] = np.array([4 + math.sin(3 * i + r) - 0.01 * (i if i < 150 else 300 - i) * (1 + r)
                                      for i in range(STEPS)])
        one.curve["loss"][0] = 0.1
    means = [[one.curve["loss"][end - 10:end].mean() for end in range(10, STEPS + 1)] for one in (full, bcd)]
    level = max(map(min, means))
    steps = [10 + next(i for i, mean in enumerate(each) if mean <= level + 1e-12) for each in means]
    compare.converge([full, bcd])
    assert bcd["level"] == pytest.approx(level, abs=1e-12)
    assert bcd["steps_to_converge"] == steps[1] and bcd["multiplier"] == steps[1] / steps[0]


def test_long_window():
    """Losses that fall by one to 1 at update 440: the mean of a fortieth of them, the last 11, is 6."""
    full, bcd, *_ = pairs()
    full.curve, bcd.curve = curve(range(440, 0, -1)), curve(range(440, 0, -1))
    compare.converge([full, bcd])
    assert bcd["level"] == pytest.approx(6)


@pytest.mark.parametrize("updates", [1, 4, 7, 20])
def test_window_counts_updates(updates):
    """A thinned curve has the means of the whole one, wherever one of its rows ends, since the window counts updates
    and not rows."""
    whole, thin = training(submodels=3), training(submodels=3).thinned(updates)
    steps, means = curves.smooth_training(thin, 40)
    all_steps, all_means = curves.smooth_training(whole, 40)
    expected = dict(zip(all_steps, all_means))
    assert len(steps) and set(steps) <= set(all_steps)
    # A row that reaches into the window from before stands for its updates with their mean.
    assert means == pytest.approx([expected[step] for step in steps], rel=2e-3)
    assert curves.updates(thin) == STEPS and curves.window_of(thin, thin) == 10


def test_whole_rows_are_exact():
    """Where windows begin and end with rows, the mean of rows of any length is the mean of their updates."""
    one = training()
    one.curve = curve([6, 3, 9], steps=[4, 6, 10])
    steps, means = curves.smooth_training(one, 4)
    assert steps.tolist() == [4, 6, 10] and means.tolist() == [6, (2 * 6 + 2 * 3) / 4, 9]
    steps, means = curves.smooth_training(one, 10)
    assert steps.tolist() == [10] and means.tolist() == [(4 * 6 + 2 * 3 + 4 * 9) / 10]
    steps, means = curves.smoothed(one, 5)  # of a picture: it begins with the first row
    assert steps.tolist() == [4, 6, 10] and means == pytest.approx([6, (3 * 6 + 2 * 3) / 5, (1 * 3 + 4 * 9) / 5])


def test_costs():
    one = training()
    assert curves.cost_after(one, 20, curves.SECONDS) == pytest.approx(3)
    assert math.isnan(curves.cost_after(one, 201, curves.SECONDS)) and math.isnan(
        curves.cost_after(one, math.nan, curves.SECONDS))
    assert curves.updates_within(one, curves.SECONDS, one.curve["seconds"][19]) == 20
    assert curves.updates_within(one, curves.SECONDS, 0.1) == 0
    assert math.isnan(curves.mean_score_at(one, 49, 1)) and curves.mean_score_at(one, 75, 1) == pytest.approx(53.5)
    assert curves.mean_score_at(one, 500, 1) == pytest.approx(71)
