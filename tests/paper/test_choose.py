"""Methods of fine-tuning by name: what each reached and took, and their picture."""
import math

import pytest

import choose
from samples import GPT, MIB, evaluations, training
from test_registered import LATER, fine_tuned, lora
from test_trainings import plan


def method_of(flags):
    return tuple(flags.get(name) for name in ("submodels", "order", "optimizer"))


def made_of(flags, loss, seed):
    columns = {name: flags[name] for name in ("optimizer", "order") if name in flags}
    made = training(GPT, False, int(flags.get("submodels", 1)), started=LATER, init="model", seed=seed, schedule="cosine",
                    steps=10, resident=(6 - loss) * 100 * MIB, **columns)
    made.evaluation = evaluations([0, 120, 240], [4.0, loss - 0.1, loss])
    return made


@pytest.fixture(scope="module")
def methods():
    """One rate of each method of group 3, three seeds: method number k ends at 3 + k / 10."""
    rows = {}
    for row in plan("smollm-rates", "laptop").rows:
        rows.setdefault(method_of(row.flags), row)
    found = [made_of(row.flags, 3 + number / 10 + seed / 1000, seed)
             for seed in range(3) for number, row in enumerate(rows.values())]
    found += [lora(fine_tuned(3.0, seed=seed), 2.5 + seed / 1000) for seed in range(3)]
    return choose.tuned(found)


def test_every_method_has_a_name(methods):
    assert [method.name for method in methods] == [name for name, *_ in choose.METHODS]
    assert [len(method.trainings) for method in methods] == [3] * len(methods)


def test_what_they_reached(methods):
    by_name = {method.name: method for method in methods}
    full, thirds, rank = (by_name[name] for name in (choose.FULL, "BCD-1/3", "LoRA, rank 16"))
    assert full.losses == pytest.approx([3.0, 3.001, 3.002]) and full.lowest == pytest.approx([2.9, 2.901, 2.902])
    assert full.difference is None and full.answer == ""
    assert thirds.difference.value == pytest.approx(-0.1) and thirds.answer == "no"
    assert rank.difference.value == pytest.approx(0.5) and rank.answer == "yes"
    assert full.mean("resident", 1 / MIB) == pytest.approx(299.9)


def test_picture(methods):
    """A mark in both halves for each method, and the loss before training across."""
    figure = choose.picture(methods)
    for axis in figure.axes:
        marks = [line for line in axis.lines if line.get_marker() not in ("None", "")]
        assert len(marks) == len(methods) and all(math.isfinite(line.get_xdata()[0]) for line in marks)
        assert any(line.get_linestyle() == ":" for line in axis.lines)
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert names == [method.name for method in methods]
