"""The rows of an experiment: which count as trained, how one goes on, and what of them is written to its table."""
import argparse
import types

import pytest

import pool
import program
import run
import study
import trained
import trainings
from errors import Refused
from samples import like, training
from test_trainings import Stored, changed, plan

STEPS = 48


# ---- which count as trained ---------------------------------------------------------------------

@pytest.mark.parametrize("flag, other", [
    ("eval-every", 5), ("eval-samples", 8), ("seed", 2), ("device", "cuda"), ("precision", "bf16"), ("batch", 16),
    ("switch-every", "2e")])
def test_what_changes_a_result_is_another_training(flag, other):
    """Also which evaluations there are: a score is a mean of the last five."""
    stored = {"lr": 0.1, "eval-every": 10, "eval-samples": 0, "seed": 1, "device": "cpu", "precision": "fp32", "batch": 32,
              "switch-every": "1e"}
    asked = trainings.Row("x", dict(stored))
    assert trained.is_as_asked(stored, asked, "x")
    with pytest.raises(Refused, match=f"x: trained with --{flag} .*; for {other} choose another --out"):
        trained.is_as_asked(stored, changed(asked, **{flag: other}), "x")


def test_a_length_may_be_asked_for_otherwise():
    """What began with --epochs goes on with --steps."""
    command, stored = "bcd train --lr 0.1 --epochs 2 --out x", {"lr": 0.1, "epochs": 2.0, "steps": 16}
    assert trained.is_as_asked(stored, trainings.Row("x", {"lr": 0.1, "steps": 16}), "x", command)
    assert not trained.is_as_asked(stored, trainings.Row("x", {"lr": 0.1, "steps": 24}), "x", command)


def test_a_command_may_be_cut():
    """A file has the first 1,023 bytes of it: half of a flag, or what is between quotes."""
    row = trainings.Row("x", {"lr": 0.1, "data": "text:my text"})
    assert trained.is_as_asked({"lr": 0.1}, row, "x", f"bcd train --lr 0.1 --data {'x' * 990} --submo"[:1023])
    assert trained.is_as_asked({"lr": 0.1}, row, "x", "bcd train --lr 0.1 --data 'text:my te")
    with pytest.raises(Refused, match="x: trained with --order, which is not asked for now"):
        trained.is_as_asked({"lr": 0.1}, row, "x", "bcd train --order random --data 'text:my te")


def test_weights_are_in_no_table(tmp_path):
    """What another training starts from is trained again where its directory is gone."""
    asked = plan("pretraining", "smoke")
    row, = asked.rows
    assert trained.finished_rows(asked, tmp_path, {row.name: Stored(status="finished")}, "x") == set()


# ---- how one goes on ----------------------------------------------------------------------------

def test_what_goes_on_takes_its_length_and_where_it_runs(tmp_path):
    """It has the other settings in its directory.  bcd train would keep the device and the precision that it had."""
    row = trainings.Row("some", {"lr": 0.1, "steps": 24, "device": "cuda", "precision": "bf16", "order": "random"})
    one = pool.Pool.__new__(pool.Pool)
    one.dir, one.options = tmp_path, argparse.Namespace(quiet=False, jobs=1)
    one.plan = argparse.Namespace(asked=argparse.Namespace(flags={"threads": "3"}))
    folder = tmp_path / "rows" / "some"
    where, there = ["--steps", "24", "--device", "cuda", "--precision", "bf16"], ["--threads", "3", "--brief"]
    assert one._command(row)[1:] == ["train", "--out", str(folder), "--lr", "0.1", *where, "--order", "random", *there]
    folder.mkdir(parents=True)
    (folder / "run.h5").touch()
    assert one._command(row)[1:] == ["train", "--resume", str(folder), *where, *there]


@pytest.mark.parametrize("status, code, done", [
    ("finished", 0, True), ("diverged", 1, True), ("finished", 1, False), ("running", 0, False), ("interrupted", 75, False)])
def test_what_ended_is_done_unless_it_complained(tmp_path, monkeypatch, status, code, done):
    """A training that diverged says so by its exit status; another one that fails is to be looked at."""
    row = trainings.Row("some", {})
    (tmp_path / "rows" / "some").mkdir(parents=True)
    (tmp_path / "rows" / "some" / "run.h5").touch()
    monkeypatch.setattr(pool, "Run", lambda directory: types.SimpleNamespace(status=status, ended=status in study.ENDED))
    one = pool.Pool.__new__(pool.Pool)
    one.dir, one.options = tmp_path, argparse.Namespace(quiet=True, jobs=1, deadline=None)
    one.signal, one.failed, one.finished, one.write_table = 0, 0, set(), lambda: None
    monkeypatch.setattr(one, "_wait", lambda: (row, code), raising=False)
    one._end()
    assert (one.finished, one.failed) == (({"some"}, 0) if done else (set(), 1))


# ---- what is written ----------------------------------------------------------------------------

@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A directory with one trained row."""
    made = tmp_path_factory.mktemp("results")
    program.run("train", *program.flags_of(model="resnet:depth=8,width=2", data="synthetic", limit=32, batch=4, threads=1,
                                           steps=STEPS, quiet=True, out=str(made / "rows" / "some")))
    return made


def rows_of(folder, path, hours=True):
    return run.rows_of(types.SimpleNamespace(name="group", hours=hours, rows=[trainings.Row("some", {})]), folder, path)


def test_a_row_has_the_name_of_its_experiment(folder, tmp_path):
    """By which the group of the protocol is known, wherever the row is copied to."""
    one, = rows_of(folder, tmp_path / "none.h5")
    assert one["experiment"] == "group" and one["steps"] == STEPS


@pytest.mark.parametrize("hours, ends", [(True, [20, 40, STEPS]), (False, list(range(1, STEPS + 1)))])
def test_only_the_curve_of_a_long_training_is_thinned(folder, tmp_path, hours, ends):
    one, = rows_of(folder, tmp_path / "none.h5", hours)
    assert one.curve["step"].tolist() == ends


@pytest.mark.parametrize("status, steps", [("finished", STEPS), ("diverged", STEPS), ("running", 8), ("interrupted", 8)])
def test_what_has_not_ended_leaves_the_table_as_it_was(folder, tmp_path, monkeypatch, status, steps):
    """A row that goes on, to be longer, is replaced when it is at its end."""
    path = str(tmp_path / "group.h5")
    study.write(path, [like(training(), row="other"), like(training(), row="some", steps=8)])
    real = study.read_run

    def read(file):
        found = real(file)
        found.row["status"] = status
        return found
    monkeypatch.setattr(study, "read_run", read)
    assert [(one["row"], one["steps"]) for one in rows_of(folder, path)] == [("some", steps), ("other", 200)]
