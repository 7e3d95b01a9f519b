"""Which method has the lowest loss at one memory (equal_memory.py); losses and seconds by hand."""
import math

import numpy as np
import pytest
from scipy import stats

import curves
import equal_memory
from cases import Cases
from samples import LATER, curve, evaluations, training

THIRDS, NARROW = "llama:layers=2,width=64,heads=2,context=32", "llama:layers=2,width=48,heads=2,context=32"
LENGTH, EVERY = 200, 10


def trained(losses_of, model=THIRDS, file="equal-memory.h5", **columns):
    """A training whose loss at an update is that of `losses_of`, evaluated every ten."""
    made = training(model, False, started=LATER, steps=LENGTH, **columns)
    steps = range(EVERY, LENGTH + 1, EVERY)
    made.evaluation, made.file = evaluations(steps, [losses_of(step) for step in steps]), f"somewhere/{file}"
    return made


def timed(seconds, model=THIRDS, **columns):
    """A timed training, on a text without what is held out: its first update takes long."""
    made = training(model, False, started=LATER, checksum="00cd", **columns)
    made.curve, made.file = curve([3.0] * 5, 1, 60 + seconds * np.arange(5)), "equal-memory-speed.h5"
    return made


def fall(start, seed=0):
    return lambda step: start + 0.001 * seed - step / 100


def made(thirds=5.0, narrow=6.0):
    return [one for seed in (1, 2) for one in (trained(fall(thirds, seed), submodels=3, seed=seed),
                                               trained(fall(narrow, 2 * seed), NARROW, seed=seed))]


def test_equal_tokens():
    """The mean of the last five evaluations, 160 to 200, is that at 180; the interval is that of scipy."""
    table = equal_memory.table(Cases(made()))
    lowest, other = table.labels
    assert "BCD-1/3" in lowest and "2x48" in other and lowest.endswith(", equal tokens") and len(table.rows) == 2
    assert table.value(lowest, "loss") == pytest.approx(5.0015 - 1.8) and table.value(lowest, "answer") == "yes"
    assert table.cell(lowest, "above").is_empty and table.value(other, "answer") == ""
    error, freedom = math.sqrt((0.002**2 + 0.001**2) / 4), (0.002**2 + 0.001**2)**2 / (0.002**4 + 0.001**4)
    half = stats.t.ppf(0.975, freedom) * error  # of two seeds each, by Welch and Satterthwaite
    assert table.value(other, "above") == pytest.approx(1.0015)
    assert (table.value(other, "low"), table.value(other, "high")) == pytest.approx((1.0015 - half, 1.0015 + half))
    assert table.value(other, "memory") == pytest.approx(14) and table.value(other, "updates") == LENGTH
    assert any(note.startswith("Not at equal seconds") for note in table.notes)


def test_equal_seconds():
    """The narrow model takes half the time, so BCD has half its updates, and is behind after them."""
    table = equal_memory.table(Cases(made(5.0, 5.5) + [timed(2.0, submodels=3), timed(1.0, NARROW)]))
    by_seconds = [label for label in table.labels if label.endswith(", equal seconds")]
    assert len(table.rows) == 4 and "2x48" in by_seconds[0] and "2x48" not in table.labels[0]
    assert table.value(by_seconds[0], "updates") == LENGTH and table.value(by_seconds[1], "updates") == LENGTH / 2
    assert table.value(by_seconds[1], "loss") == pytest.approx(5.0015 - 0.8)
    assert table.value(by_seconds[0], "loss") == pytest.approx(5.503 - 1.8)
    assert not any(note.startswith("Not at") for note in table.notes)


def test_equal_tokens_are_those_of_the_shortest():
    """What another method was trained with beyond them does not count."""
    longer = made()
    for one in longer[1::2]:
        one.row["steps"] = 2 * LENGTH
    assert [row[2].value for row in equal_memory.table(Cases(longer)).rows] == [LENGTH] * 2


@pytest.mark.parametrize("seconds", [1.282, 1.1, 0.7, 3.3])
def test_the_fastest_method_has_all_its_updates(seconds):
    table = equal_memory.table(Cases(made() + [timed(2 * seconds, submodels=3), timed(seconds, NARROW)]))
    assert sorted(row[2].value for row in table.rows) == [LENGTH / 2] + [LENGTH] * 3


def test_times_of_two_computers_are_not_compared():
    other = timed(1.0, NARROW)
    other.provenance["cpu"] = "another processor"
    assert len(equal_memory.table(Cases(made() + [timed(2.0, submodels=3), other])).rows) == 2


def test_a_method_without_a_time_leaves_no_equal_seconds():
    table = equal_memory.table(Cases(made() + [timed(2.0, submodels=3)]))
    assert all(label.endswith("tokens") for label in table.labels)


@pytest.mark.parametrize("rows", [0, 1])
def test_a_training_that_ended_at_once_has_no_time(rows):
    short = timed(1.0, NARROW)
    short.curve = {name: values[:rows] for name, values in short.curve.items()}
    assert math.isnan(curves.seconds_per_update(short))
    table = equal_memory.table(Cases(made() + [timed(2.0, submodels=3), short]))
    assert all(label.endswith("tokens") for label in table.labels)


def test_what_is_always_active_is_another_method():
    """It has its own time, and its label says what it is."""
    ends = [trained(fall(5.2, seed), submodels=3, always_active="ends", seed=seed) for seed in (1, 2)]
    times = [timed(2.0, submodels=3), timed(1.0, NARROW)]
    assert len(equal_memory.table(Cases(made() + ends + times)).rows) == 3
    table = equal_memory.table(Cases(made()[1::2] + ends + times + [timed(4.0, submodels=3, always_active="ends")]))
    assert sum("always-active ends" in label for label in table.labels) == 2
    assert sorted(row[2].value for row in table.rows) == [LENGTH / 4, LENGTH, LENGTH, LENGTH]


def test_undecided_and_diverged():
    assert equal_memory.table(Cases(made(5.0, 5.0))).column("answer")[0].value == "undecided"
    some = made(5.0, 6.0)
    some[0].row["status"] = "diverged"
    table = equal_memory.table(Cases(some))
    assert "2x48" in table.labels[0] and table.column("answer")[0].value == "undecided"
    assert "diverged: seed 1" in table.labels[1] and table.cell(table.labels[1], "loss").is_empty


def test_too_few_evaluations_have_no_loss():
    assert math.isnan(equal_memory.loss_after(made()[0], 49)) and equal_memory.loss_after(made()[0], 50) > 0


def test_only_the_group():
    """Rates, and trainings of others, have no such table."""
    for file in ("equal-memory-rates.h5", "run.h5"):
        some = made()
        for one in some:
            one.file = file
        assert not equal_memory.table(Cases(some)).rows
