"""bcd experiment as a process: it trains, is stopped, is killed, and resumes."""
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
import types

import h5py
import pytest

import experiment as experiment_module
import run
import start as start_module
import store
import study
import tables
from conftest import ROOT, called
from errors import Refused
from samples import pairs

BCD = os.environ.get("BCD_PROGRAM", str(ROOT / "build" / "bcd"))
GPT = "gpt:layers=2,width=16,heads=2,context=16"
TWO_ROWS = ["validity", "--preset", "smoke", "--models", GPT, "--optimizers", "adam", "--threads", "1"]
FULL, BCD3 = (f"gpt-layers-2-width-16-heads-2-context-16-text-adam-{method}" for method in ("full", "bcd3"))
ENDLESS = ["--steps", "1000000000", "--save-every", "20"]


def start(*words, cwd, program=None):
    """Starts bcd experiment, or its Python alone with another program that it trains by."""
    command = [sys.executable, "-B", start_module.__file__, "experiment"] if program else [BCD, "experiment"]
    environment = dict(os.environ, BCD_DATA="/nonexistent", PYTHON=sys.executable, BCD_PROGRAM=str(program or BCD))
    return subprocess.Popen([*command, *map(str, words)], cwd=cwd, env=environment, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def experiment(*words, cwd, status=0):
    process = start(*words, cwd=cwd)
    out, complaint = process.communicate(timeout=600)
    assert process.returncode == status, out + complaint
    assert complaint.count("\n") == (1 if 0 < status < 75 else 0), complaint
    return out if status in (0, 75) else complaint


def wait_until(holds, process):
    """For ten minutes, while the process runs, unless it is None."""
    for _ in range(30000):
        if holds():
            return
        assert process is None or process.poll() is None, process.communicate()
        time.sleep(0.02)
    raise AssertionError("it never holds")


def changed_at(row, folder, command):
    """A program that is bcd, but first runs a command of the shell where it should begin to train a row."""
    program = folder / "changed"
    program.write_text(f'#!/bin/sh\ncase "$*" in train*/{row}*) {command} ;; esac\nexec {shlex.quote(BCD)} "$@"\n')
    program.chmod(0o755)
    return program


STANDS_STILL = "kill -STOP $$"
NEVER_ENDS = 'set -- $(echo "$*" | sed "s/--steps [0-9]*/--steps 1000000000/")'


def children_of(process):
    """The numbers of its trainings."""
    return [int(word) for word in pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]


def state_of(number):
    """The letter that /proc has for a process; "Z" where it has ended, whether or not somebody has collected it."""
    try:
        return pathlib.Path(f"/proc/{number}/stat").read_text().rpartition(") ")[2][0]
    except (FileNotFoundError, ProcessLookupError):
        return "Z"


def test_trains_once_and_then_longer(tmp_path):
    out = experiment(*TWO_ROWS, "--steps", 8, "--jobs", 2, cwd=tmp_path)
    assert "row 2 of 2: " + BCD3 in out and ": trained" in out and "table: results-smoke/validity.h5" in out
    table = tmp_path / "results-smoke" / "validity.h5"
    rows = study.read([table])
    assert [(row["row"], row["steps"], row["submodels"]) for row in rows] == [(FULL, 8, 1), (BCD3, 8, 3)]
    # A table that could not be written is written by the same command later.
    table.unlink()
    assert experiment(*TWO_ROWS, "--steps", 8, cwd=tmp_path).count("done before") == 2
    assert len(study.read([table])) == 2
    # The table alone is enough, as it may come from another machine.
    for path in sorted((tmp_path / "results-smoke" / "rows").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    assert experiment(*TWO_ROWS, "--steps", 8, cwd=tmp_path).count("done before") == 2
    experiment(*TWO_ROWS, "--steps", 12, "--quiet", cwd=tmp_path)
    assert [row["steps"] for row in study.read([table])] == [12, 12]
    complaint = experiment(*TWO_ROWS, "--steps", 12, "--lr", 0.5, cwd=tmp_path, status=1)
    assert "trained with --lr 0.003; for 0.5 choose another --out" in complaint
    # A flag that is not asked for any more is another training, too.
    experiment(*TWO_ROWS, "--steps", 4, "--weight-decay", 0.3, "--quiet", "--out", "decayed", cwd=tmp_path)
    complaint = experiment(*TWO_ROWS, "--steps", 4, "--out", "decayed", cwd=tmp_path, status=1)
    assert "trained with --weight-decay, which is not asked for now; choose another --out" in complaint


def test_other_rows_stay_in_the_table(tmp_path):
    experiment(*TWO_ROWS, "--steps", 4, "--brief", cwd=tmp_path)
    experiment(*TWO_ROWS, "--steps", 4, "--quiet", "--submodels", 2, cwd=tmp_path)
    rows = study.read([tmp_path / "results-smoke" / "validity.h5"])
    assert [row["submodels"] for row in rows] == [1, 2, 3]


def test_two_that_write_a_table_wait_for_each_other(tmp_path):
    """Else the later one would write what it had read before the row of the other was there."""
    table = tmp_path / "validity.h5"
    plan = types.SimpleNamespace(name="validity", hours=False, rows=[])
    other = threading.Thread(target=run.write_table, args=(plan, tmp_path, table))
    with store.changing(table):
        other.start()
        other.join(0.5)
        assert other.is_alive() and not table.exists()
        study.write(table, pairs())
    other.join()
    assert len(study.read([table])) == len(pairs())


def test_stops_when_time_is_up(tmp_path):
    out = experiment(*TWO_ROWS, *ENDLESS, "--minutes", 0.02, cwd=tmp_path, status=75)
    assert "stopped; the same command continues" in out
    assert (tmp_path / "results-smoke" / "rows" / FULL / "checkpoint.h5").exists()


def test_a_flag_that_is_turned_off_and_a_size_go_on(tmp_path):
    words = [*TWO_ROWS, "--steps", 4, "--no-recompute", "--cache", "1K", "--quiet"]
    for _ in range(2):
        experiment(*words, cwd=tmp_path)


def test_signals_are_their_own_again(monkeypatch):
    before = signal.getsignal(signal.SIGTERM)
    pool = experiment_module.pool.Pool.__new__(experiment_module.pool.Pool)
    monkeypatch.setattr(pool, "_run", lambda: signal.getsignal(signal.SIGTERM) == pool._remember, raising=False)
    assert pool.run() and signal.getsignal(signal.SIGTERM) == before


def test_the_multiplier_of_all(tmp_path):
    """Where none was measured, costs go without; a file that cannot be read is no such case."""
    options, path = types.SimpleNamespace(out=tmp_path), tmp_path / "validity.h5"
    assert experiment_module.measured_multiplier(options) == ""
    study.write(path, pairs())
    assert experiment_module.measured_multiplier(options) == str(path)
    study.write(path, [training for training in pairs() if training.is_full])
    assert experiment_module.measured_multiplier(options) == ""
    path.write_bytes(path.read_bytes()[:3000])
    with pytest.raises(Refused, match="validity.h5"):
        experiment_module.measured_multiplier(options)


def test_all_goes_on_after_the_tables_that_were_made(tmp_path, monkeypatch):
    """What is measured once more by each call would never leave time for what comes after it."""
    made = []

    def slow(name):
        def make(options):
            made.append(name)
            time.sleep(0.1)
            return [tables.Table("some", "Some", "row", [tables.Column("n", "n")])], {}
        return experiment_module.Other(make, name)
    monkeypatch.setattr(experiment_module, "OTHERS", {name: slow(name) for name in ("one", "two", "three")})
    monkeypatch.setattr(experiment_module, "listed", lambda beyond: {} if beyond else dict(experiment_module.OTHERS))
    words = ["all", "--minutes", "0.001", "--quiet", "--out", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["bcd-experiment", *words])
    assert [experiment_module.main(words) for _ in range(4)] == [75, 75, 0, 0] and made == ["one", "two", "three"]


@pytest.mark.parametrize("changed, minutes, made", [
    ({}, 1, True), ({}, None, False), ({"commit": "another"}, 1, False), ({"command": "bcd experiment all --seeds 5"}, 1, False)])
def test_tables_of_another_program_are_made_anew(tmp_path, changed, minutes, made):
    """Only a call that --minutes ended goes on, by the same command and the same program."""
    some = tables.Table("some", "Some", "row", [tables.Column("n", "n")])
    tables.Tables([some], experiment_module.program.provenance() | changed).write(tmp_path / "cost.h5")
    options = types.SimpleNamespace(out=str(tmp_path), deadline=minutes)
    assert experiment_module.is_made("cost", options) == made
    assert not experiment_module.is_made("validity", options) and not experiment_module.is_made("memory", options)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_trainings_save(tmp_path, number):
    process = start(*TWO_ROWS, *ENDLESS, cwd=tmp_path)
    row = tmp_path / "results-smoke" / "rows" / FULL
    wait_until((row / "checkpoint.h5").exists, process)
    process.send_signal(number)
    process.communicate(timeout=600)
    assert process.returncode == 128 + number
    assert study.read([row / "run.h5"])[0]["steps"] > 0


def test_kill_leaves_no_training_and_the_resumed_one_has_the_same_bits(tmp_path):
    words = [*TWO_ROWS, "--steps", 400, "--save-every", 20, "--out"]
    process = start(*words, "killed", cwd=tmp_path, program=changed_at(BCD3, tmp_path, STANDS_STILL))
    row = tmp_path / "killed" / "rows" / FULL
    wait_until((row / "checkpoint.h5").exists, process)
    children = children_of(process)
    assert children
    process.kill()
    process.communicate(timeout=600)
    wait_until(lambda: {state_of(child) for child in children} == {"Z"}, None)
    assert not (tmp_path / "killed" / "rows" / BCD3).exists()
    experiment(*words, "killed", "--quiet", cwd=tmp_path)
    experiment(*words, "whole", "--quiet", cwd=tmp_path)
    for name in (FULL, BCD3):
        resumed, whole = (tmp_path / out / "rows" / name / "checkpoint.h5" for out in ("killed", "whole"))
        assert resumed.read_bytes() == whole.read_bytes()


def test_rows_that_diverge_are_in_the_table(tmp_path):
    """They are not trained again."""
    wild = [*TWO_ROWS, "--steps", 40, "--lr", 1000, "--clip", 0]
    process = start(*wild, cwd=tmp_path)
    out, complaint = process.communicate()
    assert process.returncode == 0 and out.count(": diverged") == 2 and complaint.count("the last finite state") == 2
    rows = study.read([tmp_path / "results-smoke" / "validity.h5"])
    assert [(row["row"], row["status"], row["steps"]) for row in rows] == [
        (name, "diverged", 40) for name in (FULL, BCD3)]
    assert experiment(*wild, cwd=tmp_path).count("done before") == 2


def test_a_row_that_fails_leaves_the_others(tmp_path):
    """The first one is killed when it has begun."""
    process = start(*TWO_ROWS, "--steps", 400, "--save-every", 20, "--quiet", cwd=tmp_path,
                    program=changed_at(FULL, tmp_path, NEVER_ENDS))
    wait_until((tmp_path / "results-smoke" / "rows" / FULL / "run.h5").exists, process)
    os.kill(children_of(process)[0], signal.SIGKILL)
    complaint = process.communicate()[1]
    assert process.returncode == 1
    assert complaint.strip().split("\n")[-1] == "bcd: 1 of 2 rows failed"
    row, = study.read([tmp_path / "results-smoke" / "validity.h5"])
    assert row["row"] == BCD3


def test_a_row_that_is_killed_before_it_begins_lets_the_others_save(tmp_path):
    """The second one stands still at once, before it has a run.h5; the first one saves and can go on."""
    process = start(*TWO_ROWS, *ENDLESS, "--jobs", 2, "--quiet", cwd=tmp_path,
                    program=changed_at(BCD3, tmp_path, STANDS_STILL))
    rows = tmp_path / "results-smoke" / "rows"
    wait_until((rows / FULL / "checkpoint.h5").exists, process)
    wait_until(lambda: [state_of(child) for child in children_of(process)][1:] == ["T"], process)
    os.kill(children_of(process)[1], signal.SIGKILL)
    complaint = process.communicate(timeout=600)[1]
    assert process.returncode == 1
    assert complaint == f"bcd: {BCD3} was killed before it began; the same command continues\n"
    assert study.read([rows / FULL / "run.h5"])[0]["steps"] > 0


def test_short_trainings_are_only_estimated_if_asked(tmp_path):
    out = experiment(*TWO_ROWS, "--estimate", cwd=tmp_path)
    assert FULL in out and BCD3 in out and "together about" in out
    assert [path.name for path in (tmp_path / "results-smoke").iterdir()] == ["validity-smoke-estimate.h5"]


def test_hours_are_only_estimated_without_yes(tmp_path):
    out = experiment("validity", "--preset", "gpu", "--models", "resnet8", "--optimizers", "sgd", "--seeds", 1, "--data",
                     "synthetic", "--price", "rtx4090=2", "--out", "est", cwd=tmp_path)
    assert "start it with --yes" in out and "on one RTX 4090, simulated:" in out and "at 2.00 an hour" in out
    assert not (tmp_path / "est" / "rows").exists()
    path = tmp_path / "est" / "validity-gpu-estimate.h5"
    table = tables.read(path)["estimate"]
    with h5py.File(path) as file:
        assert file["provenance"].attrs["seed"].dtype == "uint64"  # as in every other file
    rows = ["resnet8-synthetic-sgd-full", "resnet8-synthetic-sgd-bcd3"]
    steps = 60 * 10000 / 128  # 60 epochs of 10,000 images
    for row in rows:
        assert table.value(row, "steps") == pytest.approx(steps, abs=1)
        assert table.value(row, "rtx4090_dollars") == pytest.approx(2 * table.value(row, "rtx4090_hours"))
    together = sum(table.value(row, "rtx4090_hours") for row in rows)
    assert table.value("together", "rtx4090_hours") == pytest.approx(together)


@pytest.mark.parametrize("words, line", [
    (["nothing"], "experiment nothing: no such experiment; there are validity, "),
    (["validity", "--seeds", "0"], "argument --seeds: 0: expected a whole number from 1 to 100"),
    (["validity", "--optimizers", "sgd,sgd"], "sgd is given twice"),
    (["validity", "--optimizers", "adamx"], "adamx: expected sgd, adam, adamw, lion, muon"),
    (["validity", "--preset", "tiny"], "argument --preset: invalid choice"),
    (["validity", "x"], "x: expected a flag"),
    (["validity", "--lr", "1", "--lr", "2"], "--lr is given twice"),
    (["validity", "--out", ""], "argument --out: the name is empty"),
    (["validity", "--log-samples", "ids"], "--log-samples is for one training"),
    (["validity", "--config", "flags"], "--config is for one training"),
    (["validity", "--like", "runs/a"], "--like is for one training"),
    (["validity", "--resume", "runs/a"], "--resume is for one training"),
    (["validity", "--preset", "smoke", "--models", "resnet14x"], 'no model "resnet14x"'),
    (["validity", "--preset", "smoke", "--optimizers", "lion"], "validity: no learning rate for lion; give --lr"),
    (["validity", "--preset", "smoke", "--models", GPT, "--nonsense", "3"], "no flag --nonsense"),
    (["memory", "--lr", "3"], "experiment memory: --lr changes nothing of it"),
    (["inference", "--device", "cuda"], "experiment inference: --device changes nothing of it"),
    (["cost", "--models", "resnet8"], "experiment cost: --models changes nothing of it"),
    (["cost", "--estimate"], "experiment cost: it has no trainings that --estimate could name"),
    (["all", "--estimate"], "experiment all: --estimate is of one experiment"),
    (["validity", "--preset", "smoke", "--estimate", "--yes"], "--yes: not allowed with argument --estimate"),
    (["validity", "--preset", "smoke", "--multiplier", "2"], "experiment validity: --multiplier changes nothing of it"),
])
def test_mistakes_are_one_line(tmp_path, words, line):
    end = called(experiment_module.main, tmp_path, *words)
    assert end.returncode == 2 and line in end.stderr and end.stderr.count("\n") == 1


def test_help_names_the_flags_that_are_not_taken():
    """--out is one of bcd experiment, too."""
    named = re.findall(r"--([a-z-]+)", experiment_module.REST.partition("except")[2])
    assert {*named, "out"} == {name for name, known in experiment_module.program.flags().items() if known == ("text", "local")}


def test_a_mistake_ends_the_process(tmp_path):
    assert "no such experiment" in experiment("nothing", cwd=tmp_path, status=2)


def test_finetune_starts_from_one_model(tmp_path):
    out = experiment("finetune", "--preset", "smoke", "--threads", 1, cwd=tmp_path)
    assert out.count("\ntable: ") == 2
    rows = study.read([tmp_path / "results-smoke" / "finetune.h5"])
    assert [row["submodels"] for row in rows] == [1, 3] and rows[0].curve["loss"][0] == rows[1].curve["loss"][0]
    assert rows[0].curve["loss"][0] < 4.5  # random weights: log 256 = 5.5
    complaint = experiment("finetune", "--init", "x", cwd=tmp_path, status=1)
    assert "--init x: give --data, to fine-tune on" in complaint
