"""Rows from run.h5; what is counted and computed for them by the program; damaged files."""
import math
import os
import random
import re
import subprocess

import h5py
import numpy as np
import pytest

import cases
import check_schema
import compare
import program
import schema
import store
import study
import tables
from conftest import RESULTS, ROOT
from errors import Refused
from samples import curve, like, pairs, training, unfinished

PAGE = RESULTS / "README.md"
SMALL = ("train --model resnet:depth=8,width=2 --data synthetic --limit 32 --batch 4 --threads 1 --steps 24 --quiet "
         "--eval-every 12")


def bcd(arguments):
    """Runs the program, which must succeed."""
    end = subprocess.run([program.find(), *arguments.split()], capture_output=True, text=True, check=False)
    assert end.returncode == 0, end.stderr


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    bcd(f"{SMALL} --out {folder}/full")
    bcd(f"{SMALL} --out {folder}/bcd --submodels 3 --switch-every 4")
    bcd("train --model gpt:layers=1,width=8,heads=1,context=8 --data text --limit 40 --batch 4 --steps 10 --quiet --optimizer "
        f"adamw --precision fp32 --seed 9 --threads 1 --out {folder}/text")
    return folder


def test_a_run_is_a_row(runs):
    path = f"{runs}/bcd/run.h5"
    one, = study.read([path])
    with h5py.File(path) as file:
        epoch = file["data"].attrs["steps_per_epoch"]
        assert one.curve["loss"].tolist() == file["curve/loss"][:].tolist()
        assert one["checksum"] == f"{file['data'].attrs['checksum']:016x}"
    assert (one["row"], one["model"], one["input"], one["data"], one["method"], one["switching"]) == (
        "bcd", "resnet:depth=8,width=2", "images", "synthetic", "BCD", "4")
    assert (one["submodels"], one["batch"], one["seed"], one["steps"], one["epochs"]) == (3, 4, 1, 24, 24 / epoch)
    assert one["rate"] == pytest.approx(24 * 4 / one["seconds"])
    assert one["accuracy"] == one.evaluation["accuracy"][-1] and one["peak_total"] > one["peak_parameters"] > 0
    counts = [cell.value for cell in program.ask("info", "--model", one["model"])["blocks"].column("parameters")]
    active = counts[0] + counts[-1] + sum(counts[1:-1]) / 3  # the ends of a ResNet are always active
    assert one["closed_form"] == pytest.approx(4 * (one["parameters"] + 2 * active))
    assert math.isnan(one["multiplier"])


def test_a_run_that_went_on_elsewhere_has_no_time(runs, tmp_path):
    """Its seconds are those of two computers: it is named after both, and is compared with none, not even itself."""
    path = tmp_path / "moved" / "run.h5"
    path.parent.mkdir()
    path.write_bytes((runs / "bcd" / "run.h5").read_bytes())
    with h5py.File(path, "r+") as file:
        sessions = {name: column[:] for name, column in file["sessions"].items()}
        del file["sessions"]
        for name, values in sessions.items():
            twice = np.concatenate([values, values])
            if name in ("computer", "commit"):
                twice[1] = b"another one"
            file[f"sessions/{name}"] = twice
        first, commit = sessions["computer"][0].decode(), sessions["commit"][0].decode()
    for made in study.read([str(path)]), study.read([written(tmp_path / "study.h5", study.read([str(path)]))]):
        one, = made
        assert one["cpu"] == one.computer == f"{first} then another one" and one["commit"] == f"{commit} then another one"
        assert not one.times_comparable(one)
    plain, = study.read([f"{runs}/bcd/run.h5"])
    assert plain.times_comparable(plain) and plain.computer == first


@pytest.mark.parametrize("column, counts, names", [("threads", (2, 1), "{0}, 2 threads then {0}, 1 thread"),
                                                   ("ranks", (0, 4), "{0}, 0 ranks then {0}, 4 ranks")])
def test_a_run_that_went_on_with_others_has_no_time(runs, tmp_path, column, counts, names):
    """Other threads, or ranks, have another speed: such a run is compared with none."""
    path = tmp_path / "changed" / "run.h5"
    path.parent.mkdir()
    path.write_bytes((runs / "bcd" / "run.h5").read_bytes())
    with h5py.File(path, "r+") as file:
        sessions = {name: np.concatenate([values[:]] * 2) for name, values in file["sessions"].items()}
        sessions[column] = np.array(counts, np.int32)
        computer = sessions["computer"][0].decode()
        del file["sessions"]
        for name, values in sessions.items():
            file[f"sessions/{name}"] = values
    one, = study.read([written(tmp_path / "study.h5", study.read([str(path)]))])
    assert one.computer == names.format(computer) and not one.times_comparable(one)
    assert one.provenance["ranks"] == (4 if column == "ranks" else 0)


def test_times_of_other_numbers_of_ranks(runs):
    one, other = (study.read([f"{runs}/bcd/run.h5"])[0] for _ in range(2))
    for each, ranks in ((one, 2), (other, 4)):
        each.settings["pipeline"], each.provenance["ranks"] = "mpi", ranks
    assert one.times_comparable(one) and not one.times_comparable(other)


def written(path, trainings):
    study.write(path, trainings)
    return str(path)


def test_a_name_that_is_cut_in_a_character():
    assert store.text("ё".encode() + "ё".encode()[:1]) == "ё\N{REPLACEMENT CHARACTER}"


def test_a_run_of_text(runs):
    one, = study.read([f"{runs}/text/run.h5"])
    assert (one["input"], one["optimizer"], one["method"], one["seed"]) == ("tokens", "adamw", "full", 9)
    assert one["rate"] == pytest.approx(10 * 4 * 8 / one["seconds"]), "targets a second"
    assert one["perplexity"] == pytest.approx(math.exp(one["valid_loss"]))


def test_runs_to_a_study(runs, tmp_path):
    path = str(tmp_path / "both.h5")
    trainings = study.read([f"{runs}/full/run.h5", f"{runs}/bcd/run.h5"])
    compare.converge(trainings)
    study.write(path, trainings)
    assert check_schema.Check(path, check_schema.read_page(PAGE)).mistakes == []
    assert [t["multiplier"] for t in study.read([path])] == [t["multiplier"] for t in trainings]


def test_unfinished(runs, tmp_path):
    path = unfinished(runs / "bcd" / "run.h5", tmp_path / "half" / "run.h5")
    assert study.unfinished(study.read([str(path)])) == "not at its end: half (running)"


def test_a_run_over_nccl_goes_on_with_its_device(runs, tmp_path):
    """Its ranks join before the run is opened."""
    path = unfinished(runs / "bcd" / "run.h5", tmp_path / "nccl" / "run.h5")
    with h5py.File(path, "r+") as file:
        for name, value in {"device": b"cuda", "pipeline": b"nccl"}.items():
            file["settings"].attrs[name] = np.bytes_(value)
    end = subprocess.run([program.find(), "train", "--resume", path.parent], capture_output=True, text=True, check=False)
    assert end.returncode == 1 and end.stderr.count("\n") == 1 and "needs --device cuda" not in end.stderr, end.stderr


def test_a_run_that_diverged(runs, tmp_path):
    """It has the length that was asked for, and nothing at its end; in a study, too."""
    words = f"{SMALL} --lr 1000 --weight-decay 1000 --out {tmp_path}/wild".replace("every 12", "every 1")
    assert subprocess.run([program.find(), *words.split()], capture_output=True, check=False).returncode == 1
    read = study.read([f"{tmp_path}/wild/run.h5"])
    assert study.unfinished(read) == "not at its end: wild (diverged)"
    finished, = study.read([f"{runs}/full/run.h5"])
    path = str(tmp_path / "both.h5")
    compare.converge([finished, *read])
    study.write(path, [finished, *read])
    assert check_schema.Check(path, check_schema.read_page(PAGE)).mistakes == []
    assert study.read([path])[0].is_finished
    for one in (*read, study.read([path])[1]):
        assert one["status"] == "diverged" and one["steps"] == 24 > len(one.curve["step"])
        assert one["epochs"] == finished["epochs"]
        at_the_end = "accuracy", "valid_loss", "perplexity", "train_loss", "end_score"
        assert all(math.isnan(one[name]) for name in at_the_end)


def test_a_model_that_the_program_does_not_know(runs, tmp_path):
    """The file is not what the user typed, so this is no wrong use; the line names it."""
    path = unfinished(runs / "bcd" / "run.h5", tmp_path / "new" / "run.h5")
    with h5py.File(path, "r+") as file:
        file["model"].attrs["spec"] = np.bytes_(b"newfamily:depth=8")
    with pytest.raises(Refused, match=f'^{re.escape(str(path))}: .*no model "newfamily:depth=8"') as refused:
        study.read([path])
    assert refused.value.status == 1


def test_knows_every_flag(runs):
    """A flag that changes what is learned is either in the first files or has here the value that means "without it".
    Trainings from before and after the flag are then one case."""
    first = study.read([str(RESULTS / "gpt-wikitext2-full.h5")])[0].settings
    for name in ("full", "text"):
        new = study.read([f"{runs}/{name}/run.h5"])[0].settings
        unknown = set(new) - set(first) - set(schema.ADDED_FLAGS) - cases.IRRELEVANT
        assert unknown == set(), "it goes into schema.ADDED_FLAGS, or into cases.IRRELEVANT if it changes no result"


def test_added_flags_have_their_defaults(runs):
    """A training that gives none of them, by AdamW, is what one did without them."""
    new = study.read([f"{runs}/text/run.h5"])[0].settings
    assert {flag: new[flag] for flag in schema.ADDED_FLAGS} == schema.ADDED_FLAGS


@pytest.mark.parametrize("optimizer", program.ask_once("info")["optimizers"].labels)
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_closed_form(optimizer, precision):
    """Of n parameters and k vectors of state W (1 + (1 + k)/M), W = 4n; in bf16 W (1/2 + (2 + k)/M).  Where k depends on
    the parameter, it is between."""
    n = sum(cell.value for cell in program.ask("info", "--model", "resnet8")["blocks"].column("parameters"))
    vectors = sorted(program.ask("info")["optimizers"].value(optimizer, kind) for kind in ("matrix_state", "other_state"))
    settings = {"optimizer": optimizer, "momentum": 0.9, "always-active": ""}
    for submodels in (1, 2, 3):
        found = study.closed_form("resnet8", submodels, settings, precision)
        least, most = (4 * n * (1 + (1 + k) / submodels if precision == "fp32" else 0.5 + (2 + k) / submodels)
                       for k in vectors)
        assert found == pytest.approx(least) if least == most else least < found < most


def test_closed_form_without_momentum():
    """SGD has no state then: the gradients of half of the parameters."""
    n = sum(cell.value for cell in program.ask("info", "--model", "resnet8")["blocks"].column("parameters"))
    settings = {"optimizer": "sgd", "momentum": 0.0, "always-active": ""}
    assert study.closed_form("resnet8", 2, settings, "fp32") == pytest.approx(4 * n * 1.5)


@pytest.mark.parametrize("optimizer, vectors", [("sgd", 1), ("adam", 2)])
def test_closed_form_with_blocks_that_are_always_active(optimizer, vectors):
    """Half of what is between the ends of a ResNet trains, and the ends."""
    counts = [cell.value for cell in program.ask("info", "--model", "resnet8")["blocks"].column("parameters")]
    settings = {"optimizer": optimizer, "momentum": 0.9, "always-active": "ends"}
    active = counts[0] + counts[-1] + sum(counts[1:-1]) / 2
    bytes_ = study.closed_form("resnet8", 2, settings, "fp32")
    assert bytes_ == pytest.approx(4 * (sum(counts) + (1 + vectors) * active))


# ---- operations ---------------------------------------------------------------------------------

def test_operations():
    """A transformer that is small enough to count by hand: products of linear layers, equally many in each pass, and
    attention. The output shares the embedding's matrix, which trains with the embedding."""
    t, c, v = 8, 16, 256
    linear, head, attention = 2 * t * c * (3 * c + c + 4 * c + 4 * c), 2 * t * c * v, 2 * t * t * c
    forward, backward = linear + head + attention, linear + head + 2.5 * attention
    each = [forward + backward + head, forward + backward + linear, forward + head]
    one = training(submodels=3, batch=4)
    one.spec = "gpt:layers=1,width=16,heads=2,context=8,vocabulary=256"
    one.curve = curve([3, 2, 1]) | {"submodel": np.array([0, 1, 2], np.int32)}
    assert one.operations.tolist() == np.cumsum([4 * count for count in each]).tolist()

    def operations(**how):
        other = like(one, **how)
        other.spec, other.curve = one.spec, dict(one.curve)
        return other
    thin = operations()
    thin.curve["step"] = np.array([1, 5, 6], np.uint64)  # a row that stands for four updates
    assert thin.operations[1] == 4 * (each[0] + 4 * each[1])
    full = operations(submodels=1)
    full.curve["submodel"] = np.zeros(3, np.int32)
    assert full.operations[2] == 3 * 4 * (forward + backward + linear + head)
    assert operations(submodels=2).operations is None, "update 3 is of submodel 3 of 2"
    other = operations(submodels=1, partition="0/1,2")
    other.curve["submodel"] = np.zeros(3, np.int32)
    assert other.operations is None, "two submodels that are one"
    unknown = operations()
    unknown.spec = "nothing"
    assert unknown.operations is None


# ---- the program --------------------------------------------------------------------------------

def test_program_says_what_is_wrong():
    with pytest.raises(Refused, match="nothing"):
        program.ask("info", "--model", "nothing")


def test_program_is_missing(monkeypatch, tmp_path):
    monkeypatch.setenv("BCD_PROGRAM", str(tmp_path / "bcd"))
    monkeypatch.setattr(program.sys, "argv", [str(tmp_path / "x")])
    monkeypatch.setattr(program, "__file__", str(tmp_path / "a" / "b" / "program.py"))
    with pytest.raises(Refused, match="type: make"):
        program.find()
    with pytest.raises(Refused, match="type: make"):
        assert training().operations is None, "of a program that is there, and does not know the settings"


@pytest.mark.parametrize("ask", [program.flags, program.data_sets])
def test_program_is_older(monkeypatch, ask):
    ask.cache_clear()
    monkeypatch.setattr(program, "ask_once", lambda *words: tables.Tables())
    with pytest.raises(Refused, match="bcd: it is older than these scripts; type: make"):
        ask()


def test_provenance():
    known = program.provenance("bcd experiment cost")
    assert known["command"] == "bcd experiment cost" and known["commit"] and known["cpu"]
    assert set(known) >= {"compiler", "flags", "device", "precision", "threads", "seed", "started", "wall"}


def test_nothing_is_replaced_but_files(tmp_path):
    with store.replacing("/dev/null") as path:
        assert path == "/dev/null"
    link = tmp_path / "link"
    link.symlink_to("there")
    with store.replacing(str(link)) as part, open(part, "w", encoding="utf-8") as out:
        out.write("text")
    assert link.is_symlink() and (tmp_path / "there").read_text() == "text"
    with pytest.raises(Refused, match="/nowhere/at/all"):
        with store.replacing("/nowhere/at/all") as part, open(part, "w", encoding="utf-8"):
            pass
    assert not os.path.exists("/nowhere")


@pytest.mark.parametrize("name, values, words", [
    ("curve/loss", np.zeros(3), "/curve: its columns have 3 and "),
    ("curve/seconds", np.array([b"s"] * 3), "/curve/seconds has no numbers"),
    ("evaluation/loss", np.zeros(1), "/evaluation: its columns have 1 and "),
    ("switches/reason", np.zeros(1), "/switches/reason has no texts"),
    ("memory/peak", np.array([b"much"]), "/memory/peak has no numbers"),
    ("sessions/threads", np.array([b"two"]), "/sessions/threads has no numbers"),
    ("sessions/computer", np.zeros(1), "/sessions/computer has no texts")])
def test_columns_of_another_kind_or_length(runs, tmp_path, name, values, words):
    path = tmp_path / "damaged.h5"
    path.write_bytes((runs / "full" / "run.h5").read_bytes())
    with h5py.File(path, "r+") as file:
        del file[name]
        file[name] = values
    with pytest.raises(Refused, match="damaged.h5: not in the format") as refused:
        study.read([str(path)])
    assert words in str(refused.value)


def test_an_error_of_these_scripts_is_no_damage(runs, monkeypatch):
    """What fails with a training is not said of its file."""
    with pytest.raises(KeyError, match="misspelled"):
        with program.trained(model="resnet:depth=8,width=2", data="synthetic", limit=32, batch=4, steps=1, threads=1):
            raise KeyError("misspelled")
    monkeypatch.setattr(study, "closed_form", lambda *_: None + 1)
    with pytest.raises(TypeError, match="NoneType"):
        study.read_run(f"{runs}/full/run.h5")


@pytest.mark.parametrize("kind", ["study", "run", "tables"])
def test_damage_anywhere_is_refused_or_harmless(runs, tmp_path, kind):
    """Bytes that change on the disk are refused in one line, or lie where nothing is stored."""
    path = tmp_path / "damaged.h5"
    if kind == "study":
        study.write(str(path), pairs()[:2])
    else:
        source = runs / "full" / "run.h5" if kind == "run" else ROOT / "experiments/results/ufp-paper-estimate.h5"
        path.write_bytes(source.read_bytes())
    def read():
        return tables.read(str(path)) if kind == "tables" else study.read([str(path)])

    assert read()
    whole, draw, refused = path.read_bytes(), random.Random(1), 0
    for _ in range(60):
        content = bytearray(whole)
        for _ in range(4):
            content[draw.randrange(len(content))] = draw.randrange(256)
        path.write_bytes(content)
        try:
            read()
        except Refused as error:
            assert str(error).startswith(str(path)) and "\n" not in str(error)
            refused += 1
    assert refused > 10
