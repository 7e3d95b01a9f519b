"""The files of trainings are written and read back; older and damaged files."""
import math
import re

import h5py
import numpy as np
import pytest

import cases
import check_schema
import curves
import program
import schema
import store
import study
from conftest import RESULTS
from errors import Refused
from samples import STEPS, curve, like, pairs, same, training

PAGE = RESULTS / "README.md"


def same_arrays(a, b):
    return set(a) == set(b) and all(
        list(a[name]) == list(b[name]) if a[name].dtype == object else np.array_equal(a[name], b[name], equal_nan=True)
        for name in a)


# ---- files of many ------------------------------------------------------------------------------

def test_a_table_from_before_there_was_a_status(tmp_path):
    path = str(tmp_path / "study.h5")
    study.write(path, pairs())
    with h5py.File(path, "r+") as file:
        del file["table/status"]
    assert {each["status"] for each in study.read([path])} == {study.FINISHED}


def test_round_trip(tmp_path):
    path = str(tmp_path / "study.h5")
    before = pairs()
    before[1].row["accuracy"] = math.nan
    study.write(path, before)
    after = study.read([path])
    assert len(after) == len(before)
    for a, b in zip(before, after):
        assert all(same(a[name], b[name]) for name in a.row), a["row"]
        assert a.settings == b.settings and a.spec == b.spec
        assert {name: value for name, value in b.provenance.items() if value != ""} == a.provenance
        assert same_arrays(a.curve, b.curve) and same_arrays(a.evaluation, b.evaluation)
        assert same_arrays(a.switches, b.switches)
    assert len(after[1].curve["loss"]) == STEPS and after[1].switches["reason"][1] == "after 20 steps"


def test_schema(tmp_path):
    path = str(tmp_path / "study.h5")
    study.write(path, pairs())
    assert check_schema.Check(path, check_schema.read_page(PAGE)).mistakes == []
    with h5py.File(path) as file:
        assert file.attrs["version"] == 2 and file.attrs["convergence"].decode() == curves.RULE
        assert all(len(data) == 4 for data in file["table"].values())
        first, rows = file["curves/training_first"][:], file["curves/training_rows"][:]
        assert first.tolist() == [0, 200, 400, 600] and rows.tolist() == [200] * 4
        assert file["training/loss"].fletcher32 and file["training/loss"].compression == "gzip"
        assert file["table/accuracy"].dims[0].values() == [file["table/row"]]


def test_long_model(tmp_path):
    """The specification of a real model, which takes the place of its name, is longer than a name."""
    model = ("llama:layers=30,width=576,heads=9,ffn=1536,context=8192,vocabulary=49152,groups=3,tied=1,rope_base=100000,"
             "rope_scaling=linear,rope_factor=2")
    assert len(model) > store.TEXT
    path = str(tmp_path / "study.h5")
    study.write(path, [like(pairs()[0], model=model)])
    assert study.read([path])[0]["model"] == model


def test_empty_study(tmp_path):
    path = str(tmp_path / "none.h5")
    study.write(path, [])
    assert study.read([path]) == []


def test_several_files(tmp_path):
    """Several files are read one after the other. One has a training without curves, and one a long setting."""
    bare, full = str(tmp_path / "bare.h5"), str(tmp_path / "full.h5")
    none = like(training(submodels=3), data_dir="7" * 400)
    none.curve, none.evaluation = curve([]), {name: values[:0] for name, values in none.evaluation.items()}
    study.write(bare, [none])
    study.write(full, pairs())
    found = study.read([full, bare, full])
    assert len(found) == 9 and len(found[4].curve["step"]) == 0 and found[4].setting("data-dir") == "7" * 400
    assert same_arrays(found[1].curve, found[6].curve)


def test_older_files(tmp_path):
    """Flags may be missing, and columns may not."""
    path = str(tmp_path / "old.h5")
    study.write(path, pairs())
    with h5py.File(path, "r+") as file:
        for flag in schema.ADDED_FLAGS:
            del file["settings"][flag]
    assert study.read([path])[1].setting("beta2") == 0.999
    with h5py.File(path, "r+") as file:
        del file["table/resident"]
    with pytest.raises(Refused, match="old.h5: .*: '/table/resident is missing'"):
        study.read([path])


def nan_loss(file):
    file["training/loss"][250] = math.nan


def back_in_time(file):
    file["training/step"][210] = 3


def seconds_back(file):
    file["training/seconds"][210] = 0.01


def evaluation_back(file):
    file["evaluation/step"][5] = 7


def no_submodels(file):
    file["table/submodels"][1] = 0


def no_batch(file):
    file["table/batch"][1] = 0


def too_many_rows(file):
    file["curves/training_rows"][0] = 2**40


def too_few_rows(file):
    file["curves/training_rows"][0] = 100


def no_rate(file):
    del file["settings/lr"]


def a_text_as_rate(file):
    replaced(file, "settings/lr", np.array([b"high"] * 4))


def a_number_as_optimizer(file):
    replaced(file, "settings/optimizer", np.zeros(4))


def no_column(file):
    del file["table/seconds"]


def another_version(file):
    file.attrs["version"] = 1


def another_format(file):
    del file.attrs["format"]


def replaced(file, name, values):
    del file[name]
    file[name] = values


def shorter_losses(file):
    replaced(file, "training/loss", file["training/loss"][:-1])


def texts_as_losses(file):
    replaced(file, "training/loss", np.array([b"low"] * len(file["training/loss"])))


def numbers_as_reasons(file):
    replaced(file, "switches/reason", np.zeros(len(file["switches/reason"])))


def texts_as_peaks(file):
    replaced(file, "table/peak_total", np.array([b"much"] * 4))


def shorter_table(file):
    replaced(file, "table/seconds", np.zeros(3))


def shorter_settings(file):
    replaced(file, "settings/batch", np.zeros(3))


def numbers_as_a_computer(file):
    replaced(file, "provenance/cpu", np.zeros(4))


def texts_as_rows(file):
    replaced(file, "curves/training_rows", np.array([b"many"] * 4))


@pytest.mark.parametrize("damage, words", [
    (shorter_losses, "/training: its columns have 799 and 800 rows"), (texts_as_losses, "/training/loss has no numbers"),
    (numbers_as_reasons, "/switches/reason has no texts"), (texts_as_peaks, "/table/peak_total has no numbers"),
    (shorter_settings, "/settings: its columns have 3 and 4 rows"), (numbers_as_a_computer, "/provenance/cpu has no texts"),
    (shorter_table, "/table: its columns have 3 and 4 rows"), (texts_as_rows, "/curves/training_rows has no numbers"),
    (nan_loss, "the loss of update 51 is nan"), (back_in_time, "row 11 of its curve is before row 10"),
    (seconds_back, "row 11 of its curve is before row 10"), (evaluation_back, "evaluation 2 is before evaluation 1"),
    (no_submodels, "it has 0 submodels"), (no_batch, "200 updates of 0 samples"), (too_many_rows, "damaged"),
    (too_few_rows, "training has 800"), (no_rate, "/settings has no lr"),
    (a_text_as_rate, "/settings has 'high' as lr, which is no number"),
    (a_number_as_optimizer, "/settings has 0.0 as optimizer, which is no text"), (no_column, "seconds is missing"),
    (another_version, "version 1; this program reads version 2"), (another_format, "neither a study")])
def test_damaged(tmp_path, damage, words):
    path = str(tmp_path / "damaged.h5")
    study.write(path, pairs())
    with h5py.File(path, "r+") as file:
        damage(file)
    with pytest.raises(Refused, match=re.escape("damaged.h5: ")) as refused:
        study.read([path])
    assert words in str(refused.value)


def test_every_byte_cut_is_refused(tmp_path):
    """A file cut short anywhere is refused in one line."""
    path = tmp_path / "whole.h5"
    study.write(str(path), pairs()[:1])
    content = path.read_bytes()
    for part in range(1, 20):
        cut = tmp_path / "cut.h5"
        cut.write_bytes(content[:len(content) * part // 20])
        with pytest.raises(Refused, match="cut.h5: "):
            study.read([str(cut)])


def test_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "kept.h5"
    study.write(str(path), pairs())
    before = path.read_bytes()
    with pytest.raises(Refused, match="text of 1024 bytes"):
        study.write(str(path), [like(training(), model="m" * 1024)])
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]


def test_what_could_not_be_read_is_not_written(tmp_path):
    path = tmp_path / "kept.h5"
    study.write(str(path), pairs())
    before = path.read_bytes()
    wrong = training()
    wrong.curve["loss"][7] = math.nan
    with pytest.raises(Refused, match="kept.h5: images-1: .*the loss of update 8 is nan"):
        study.write(str(path), [*pairs(), wrong])
    assert path.read_bytes() == before


def test_reading_and_grouping_need_no_program(monkeypatch):
    for name in ("find", "run", "ask_once", "flags"):
        monkeypatch.setattr(program, name, None)
    trainings = study.read([RESULTS / "converged.h5"])
    assert len(trainings) == 67 and len(cases.Cases(trainings).methods) > 10


def test_flags_are_those_of_the_program():
    """What is known of them without the program."""
    table = program.ask_once("info")["flags"]
    rows = {name: [cell.value for cell in row] for name, row in zip(table.labels, table.rows)}
    assert schema.TEXT_FLAGS == {name for name, (kind, role, _) in rows.items()
                                 if kind in ("text", "choice", "switch") and role != "local"}
    idle = {name for name, (_, role, _) in rows.items() if role in ("free", "rounds", "moves", "extends")}
    assert cases.IRRELEVANT == idle - {"data", "eval-samples"} | {"seed", "model"}
    assert cases.NOT_OF_SGD == {name for name, (_, _, optimizers) in rows.items()
                                if optimizers and "sgd" not in optimizers.split(", ")}


# ---- thinning -----------------------------------------------------------------------------------

def test_thinned():
    """A thinned row stands for up to three updates of one phase: its loss is their mean, everything else is the last
    one's."""
    one = training()
    one.curve = curve([9, 6, 3, 8, 4, 2]) | {"submodel": np.array([0, 0, 0, 0, 1, 1], np.int32),
                                            "lr": 0.1 * np.arange(6), "seconds": 2.0 * np.arange(6)}
    thin = one.thinned(3).curve
    assert thin["loss"].tolist() == [6, 8, 3] and thin["step"].tolist() == [3, 4, 6]
    assert thin["seconds"].tolist() == [4, 6, 10] and thin["submodel"].tolist() == [0, 0, 1]
    assert thin["lr"].tolist() == [0.2, pytest.approx(0.3), 0.5] and thin["step"].dtype == np.uint64
    assert one.thinned(1).curve["loss"].tolist() == one.curve["loss"].tolist()
    one.curve = curve([])
    assert len(one.thinned(3).curve["step"]) == 0
