"""How long trainings will take (estimate.py)."""
import argparse
import contextlib

import h5py
import pytest

import estimate
import pool
import program
import trainings
from errors import Refused
from test_trainings import plan


@pytest.mark.parametrize("name", trainings.experiments())
def test_every_training_can_be_estimated(name, monkeypatch):
    """The few steps that are timed have a length and evaluations of their own; no flag is given twice."""
    rows, asked = plan(name, "laptop").rows, []
    monkeypatch.setattr(program, "run",
                        lambda *words, processes: asked.append([word for word in words if word.startswith("--")]))
    for row in rows:
        with pytest.raises(FileNotFoundError, match="run.h5"):  # nothing was trained
            estimate.probe(estimate.full_update(row.flags))
        assert len(set(asked[-1])) == len(asked[-1]) and "--steps" in asked[-1], row.name


@pytest.mark.parametrize("flags, updates", [
    ({"steps": "100"}, 100), ({"epochs": 60}, 4688),  # 60 x 10000 / 128 = 4687.5
    ({"epochs": 50}, 3907),  # 3906.25
    ({"epochs": 240, "fraction": 0.9}, 16875), ({"epochs": "800", "fraction": "0.3"}, 18750), ({"epochs": 0.001}, 1)])
def test_estimated_updates(flags, updates):
    """As many as bcd train does; an epoch of less data has fewer."""
    assert estimate.Probe("resnet8", 1.0, 78.125, 128).updates(flags) == updates


@pytest.mark.parametrize("flags, line", [
    ({"steps": "x"}, "--steps x: expected a number"), ({"epochs": "x"}, "--epochs x: expected a number"),
    ({"epochs": "nan"}, "--epochs nan: expected a number"), ({"steps": "9" * 400}, "--steps 9+: expected a number"),
    ({"epochs": 1, "fraction": "x"}, "--fraction x: expected a number")])
def test_no_updates_of_what_is_no_number(flags, line):
    with pytest.raises(Refused, match=line):
        estimate.Probe("resnet8", 1.0, 78.125, 128).updates(flags)


@pytest.mark.parametrize("flags, line", [
    ({"correct-above": "x"}, "--correct-above x: expected a number"), ({"partition": "0/1/99"}, "99")])
def test_no_operations_of_what_cannot_be_trained(flags, line):
    """bcd says what is wrong with it."""
    row = trainings.Row("x", {"model": "resnet8", "submodels": 3, **flags})
    with pytest.raises(Refused, match=line):
        estimate.operations_share(row, estimate.Probe("resnet8", 1.0, 78.125, 128))


def test_less_data_is_less_work():
    """The first counts in epochs of the part that a submodel uses; BCD-1/3 has two thirds of the operations."""
    def work(**flags):
        return pool.relative_work(trainings.Row("x", {"epochs": 800, "submodels": 3, **flags}))
    assert work(fraction=0.3) == pytest.approx(0.3 * work())
    assert work(limit=5000) == pytest.approx(0.1 * work())
    assert work() == pytest.approx(2 / 3 * work(submodels=1))


def test_what_is_no_number_is_refused_before_it_trains():
    row = trainings.Row("x", {"epochs": 1, "submodels": 1, "limit": "x"})
    with pytest.raises(Refused, match="--limit x: expected a number"):
        pool.relative_work(row)
    one = pool.Pool.__new__(pool.Pool)
    one.plan = argparse.Namespace(asked=argparse.Namespace(flags={"threads": "x"}))
    with pytest.raises(Refused, match="--threads x: expected a number"):
        one.threads()


def test_networks_are_timed_apart():
    """A step of all images takes as long as one of 10,000, but there are more of them in an epoch."""
    few, every = ({"model": "resnet8", "data": "cifar10", "batch": 128} | more for more in ({"limit": 10000}, {}))
    assert estimate.network_of(few) != estimate.network_of(every) == estimate.network_of(every | {"lr": 0.1})
    for flag in ("model", "init", "data", "context", "batch", "accumulate", "recompute", "precision", "device"):
        assert estimate.network_of(every | {flag: "other"}) != estimate.network_of(every), flag


def test_a_probe_leaves_out_the_first_step(monkeypatch):
    """Three steps, the first of which takes 5 s and the others 2 s."""
    asked = {}

    @contextlib.contextmanager
    def trained(**flags):
        asked.update(flags)
        with h5py.File("probe", "w", driver="core", backing_store=False) as file:
            file["curve/seconds"] = [5.0, 7.0, 9.0]
            for group, name, value in (("model", "spec", "resnet8"), ("data", "steps_per_epoch", 78.125),
                                       ("settings", "batch", 128)):
                file.create_group(group).attrs[name] = value
            yield file
    monkeypatch.setattr(program, "trained", trained)
    way = {"model": "resnet8", "submodels": 3, "always-active": "ends", "epochs": 60, "lr": 0.05, "batch": 128}
    assert estimate.probe(estimate.full_update(way)) == estimate.Probe("resnet8", 2.0, 78.125, 128)
    assert asked == {"model": "resnet8", "submodels": 1, "always-active": "none", "lr": 0.05, "batch": 128,
                     "steps": estimate.PROBE_STEPS, "eval-samples": 1}


@pytest.mark.parametrize("seconds, text", [(99.4, "99 s"), (100, "2 min"), (5969, "99 min"), (7500, "2 h 05 min"),
                                           (10740, "2 h 59 min")])
def test_times_are_printed_as_by_bcd_train(seconds, text):
    assert estimate.format_time(seconds) == text


@pytest.fixture
def estimated(monkeypatch, capsys):
    """Estimates trainings with these flags, whose network takes `step_s`: the seconds here, the last ones together; the
    table; and what is printed."""
    def make(spec, rows, step_s=2.0, batch=128, price=""):
        seconds = []
        monkeypatch.setattr(estimate, "format_time", lambda time: seconds.append(time) or "")
        monkeypatch.setattr(estimate, "probe", lambda flags: estimate.Probe(spec, step_s, 10000 / batch, batch))
        made = estimate.estimate(argparse.Namespace(asked=argparse.Namespace(yes=False, flags={})),
                                 [trainings.Row(name, flags) for name, flags in rows.items()], price)
        return seconds, made["estimate"], capsys.readouterr().out
    return make


def test_time_here_is_that_of_the_operations(estimated):
    """By hand, from the columns of bcd info: the mean over the submodels, over one submodel of everything."""
    ways = {"full": {"submodels": 1}, "bcd3": {"submodels": 3}, "ends": {"submodels": 3, "always-active": "ends"},
            "layers": {"submodels": 5, "partition": "0/1/2/3/4"}}
    rows = {name: {"model": "resnet8", "optimizer": "sgd", "steps": 50, **way} for name, way in ways.items()}
    seconds, _, out = estimated("resnet8", rows)
    counted = []
    for way in ways.values():
        each = program.ask("info", "--model", "resnet8", *program.flags_of(**way))["submodels"].column("operations")
        counted.append(sum(cell.value for cell in each) / len(each))
    assert seconds[:-1] == pytest.approx([2.0 * 50 * part / counted[0] for part in counted])
    assert seconds[0] == 100 and 50 < seconds[3] < seconds[1] < seconds[2] < 95
    assert seconds[-1] == pytest.approx(sum(seconds[:-1]))
    assert "BCD's time is estimated by operations" in out


@pytest.mark.parametrize("flags", [{}, {"momentum": 0.0, "recompute": True, "accumulate": 4}, {"precision": "bf16"}])
def test_rented_time_is_that_of_the_samples(estimated, flags):
    """By hand, from the samples that bcd plan has in a second, at its price of an hour."""
    row = {"model": "resnet8", "optimizer": "sgd", "steps": 1000, "submodels": 3, **flags}
    _, table, out = estimated("resnet8", {"bcd3": row}, price="rtx4090=2,a100=3")
    for gpu, price in (("rtx4090", 2), ("a100", 3)):
        simulated = program.ask("plan", "--model", "resnet8", "--gpu", gpu, "--per-node", "1", "--batch", "128",
                                "--optimizer", "sgd", "--submodels", "3", "--method", "bcd", "--precision",
                                flags.get("precision", "fp32"), *(
                                    ["--momentum", "0", "--recompute", "--micro-batches", "4"] if "momentum" in flags else
                                    ["--no-recompute", "--micro-batches", "1"]))
        hours = 1000 * 128 / simulated["plan"].value("BCD-1/3", "rate") / 3600
        assert table.value("bcd3", f"{gpu}_hours") == pytest.approx(hours)
        assert table.value("bcd3", f"{gpu}_dollars") == pytest.approx(price * hours)
    assert "do not fit" not in out


def test_what_does_not_fit_is_not_counted(estimated):
    """16 bytes of each of 1.6 G parameters are 24 GiB, and a third of them trains in half of that."""
    rows = {name: {"model": "G-1.6B", "optimizer": "adam", "steps": 100, "submodels": submodels}
            for name, submodels in (("full", 1), ("bcd3", 3))}
    _, table, out = estimated("G-1.6B", rows, batch=1, price="rtx4090=2,a100=3")
    assert table.cell("full", "rtx4090_hours").is_empty and table.cell("full", "rtx4090_dollars").is_empty
    assert table.value("together", "rtx4090_hours") == table.value("bcd3", "rtx4090_hours") > 0
    assert table.value("together", "a100_hours") == table.value("full", "a100_hours") + table.value("bcd3", "a100_hours")
    of_gpu = {line.split(",")[0]: line for line in out.splitlines() if line.startswith("on one ")}
    assert of_gpu["on one RTX 4090"].endswith(" at 2.00 an hour; trainings that do not fit its memory, not counted: 1")
    assert of_gpu["on one A100"].endswith(" at 3.00 an hour")
