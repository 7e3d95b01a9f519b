"""The trainings of which an experiment consists (trainings.py, trainings.toml)."""
import argparse
import dataclasses
import re

import pytest

import experiment
import program
import study
import trained
import trainings
from conftest import RESULTS
from errors import Refused

SMALL = "resnet:depth=8,width=2"


def plan(name="validity", preset="smoke", models=None, optimizers=None, seeds=None, **flags):
    flags = {flag.replace("_", "-"): value for flag, value in flags.items()}
    return trainings.Plan(name, argparse.Namespace(preset=preset, models=models, optimizers=optimizers, seeds=seeds,
                                                   flags=flags))


# Rows of finetune are named after its model.
TABLES = [path.stem for path in sorted(RESULTS.glob("*.h5")) if path.stem in trainings.experiments() and path.stem != "finetune"]


@pytest.mark.parametrize("name", TABLES)
def test_rows_have_the_settings_of_committed_ones(name, all_data):
    file = f"{name}.h5"
    committed = {row["row"]: row.settings for row in study.read([RESULTS / file])}
    rows = plan(name, "laptop", data_dir=str(all_data)).rows
    assert {row.name for row in rows} & set(committed)
    for row in rows:
        if row.name in committed:  # with another directory of data
            assert trained.is_as_asked(committed[row.name], row, file)


def test_every_entry_makes_rows(all_data):
    for name, table in trainings.experiments().items():
        for preset in set(table) & set(trainings.PRESETS):
            assert plan(name, preset, data_dir=str(all_data)).rows, (name, preset)


def test_stand_ins_alone_are_said_to_be_such(monkeypatch, all_data, tmp_path):
    (tmp_path / "t.toml").write_text("[shared]\n[alone]\ntrainings = [{}]\n[[alone.laptop]]\nmodel = 'gpt2'\ndata = 'text'\n"
                                     "instead-of = 'wikitext2:2048'\noptimizers = ['adam']\n")
    monkeypatch.setattr(trainings, "FILE", tmp_path / "t.toml")
    assert plan("alone", "laptop", data_dir=str(tmp_path / "empty")).rows
    with pytest.raises(Refused, match="alone: it has only stand-ins for wikitext2:2048, which is there, for --preset laptop"):
        plan("alone", "laptop", data_dir=str(all_data))
    with pytest.raises(Refused, match="alone: it has no trainings for --preset gpu"):
        plan("alone", "gpu", data_dir=str(all_data))


def test_lists_are_a_training_for_each_combination(all_data):
    assert trainings.variants({"submodels": 3, "lr": [0.1, 0.2], "switch-every": [40, "1e"]}) == [
        {"submodels": 3, "lr": lr, "switch-every": phase} for lr in (0.1, 0.2) for phase in (40, "1e")]
    rows = plan("width-rates", "laptop", data_dir=str(all_data)).rows
    assert [re.search(r"width=(\d+)", row.flags["model"])[1] for row in rows[::6]] == ["64", "128", "256", "512"]


@pytest.mark.parametrize("name, line", [
    ("smollm", "smollm2: not there; to make it: data/fetch smollm2 shakespeare, then experiments/paper/smollm.py prepare"),
    ("gpt-rates", "train.gpt2-2048.tokens: not there; to make it: bcd train --data wikitext2:2048"),
    ("equal-memory-rates", "train.gpt2-8192.tokens: not there; to make it: bcd train --data wikitext2:8192"),
    ("width-rates", "train.gpt2-2048.tokens: not there; to make it: bcd train --data wikitext2:2048")])
def test_a_missing_file_is_named_with_how_it_is_made(name, line, all_data):
    row = plan(name, "laptop", data_dir=str(all_data)).rows[0]
    with pytest.raises(Refused, match=line):
        row.check_files()
    for file in map(row.flags.get, row.files):
        (all_data / file).parent.mkdir(exist_ok=True)
        (all_data / file).touch()
    row.check_files()


def test_every_entry_says_how_its_files_are_made(all_data):
    for name, table in trainings.experiments().items():
        for preset in set(table) & set(trainings.PRESETS):
            for row in plan(name, preset, data_dir=str(all_data)).rows:
                assert bool(row.files) == bool(row.prepare), row.name


def test_the_paper_preset_has_the_published_lengths(all_data):
    rows = plan("validity", "paper", data_dir=str(all_data)).rows
    assert len(rows) == 24
    by_name = {row.name: row.flags for row in rows}
    assert by_name["resnet8-cifar10-sgd-full"]["epochs"] == 639
    assert by_name["resnet8-cifar10-sgd-bcd3"]["epochs"] == 395
    assert {(flags["optimizer"], flags["lr"]) for flags in by_name.values()} == {("sgd", 0.1), ("adam", 1e-4)}
    assert by_name["gpt2-0.15B-wikitext2-sgd-full"] | {"epochs": 24, "batch": 1} == by_name["gpt2-0.15B-wikitext2-sgd-full"]
    assert by_name["gpt2-0.15B-webtext2-adam-bcd3"]["steps"] == 1045000


def test_seeds_come_one_after_the_other_and_entries_where_it_takes_hours(all_data):
    short = [row.seed for row in plan(seeds=2).rows]
    assert short == sorted(short) and set(short) == {1, 2}
    long = plan("converged", "laptop", data_dir=str(all_data)).rows
    assert [row.seed for row in long[:6]] == [1, 1, 2, 2, 3, 3]
    assert len({(row.flags["model"], row.flags["data"]) for row in long[:6]}) == 1


def test_flags_override_an_entry():
    rows = plan(models=[SMALL], optimizers=["sgd"], epochs="2", lr="0.5", partition="0-1/2-3/4", seed="7", pre_infer=True).rows
    assert [row.name for row in rows] == ["resnet-depth-8-width-2-synthetic-sgd-full-seed7",
                                          "resnet-depth-8-width-2-synthetic-sgd-bcd3-seed7"]
    full, bcd = (row.flags for row in rows)
    assert "steps" not in full and full["epochs"] == "2" and full["lr"] == "0.5"
    assert "partition" not in full and bcd["partition"] == "0-1/2-3/4"
    assert "pre-infer" not in full and bcd["pre-infer"], "there is nothing that a full update could keep"


def test_submodels_replace_three():
    assert {row.submodels for row in plan("switching", submodels="2").rows} == {1, 2}
    assert {row.submodels for row in plan("ufp", submodels="5").rows} == {1, 2, 4, 5}
    with pytest.raises(Refused, match="--submodels 1: BCD needs at least 2"):
        plan(submodels="1")


def test_a_long_name_is_cut_before_its_seed():
    name = trainings.row_name({"model": "m" * 70, "data": "a/b/" + "d" * 30, "optimizer": "sgd", "seed": 2},
                              {"submodels": 3, "lr": 0.1, "order": "x" * 60}, 3)
    assert len(name) <= 127 and name.endswith("-seed2") and name.startswith("m" * 60 + "-" + "d" * 20 + "-sgd-bcd3-lr-0.1")


def test_a_size_is_the_bytes_that_it_stands_for():
    """As bcd train reads it; a name that ends like one is a name."""
    for stored, size in ((1610612736, "1.5G"), (1 << 40, "1T"), (2 << 20, "2M"), (1536, "1.5K"), (0, "none"), (100, "1e2")):
        assert trained.same_value(stored, size), size
        assert not trained.same_value(stored + 1, size), size
    assert trained.same_value("2M", "2M") and not trained.same_value("2M", "2K") and not trained.same_value(0, "G")


def test_two_trainings_of_one_name_are_refused(monkeypatch, tmp_path):
    entry = '[shared]\n[twins]\ntitle = ""\n[[twins.smoke]]\nmodel = "resnet8"\ndata = "synthetic"\noptimizers = ["sgd"]\n'
    long = "x" * 60
    (tmp_path / "t.toml").write_text(entry + f'trainings = [{{ order = "{long}a" }}, {{ order = "{long}b" }}]\n')
    monkeypatch.setattr(trainings, "FILE", tmp_path / "t.toml")
    with pytest.raises(Refused, match="two trainings are named resnet8-synthetic-sgd-full-order"):
        plan("twins")
    (tmp_path / "named.toml").write_text(entry + f'trainings = [{{ order = "{long}a", name = "a" }}, {{ order = "{long}b" }}]\n')
    monkeypatch.setattr(trainings, "FILE", tmp_path / "named.toml")
    assert plan("twins").rows[0].name == "resnet8-synthetic-sgd-full-a"


def test_all_is_the_tables_of_the_paper():
    """Trainings of hours are beyond it, without saying so."""
    assert " ".join(experiment.listed(False)) == "validity compression ufp finetune memory cost timing inference"
    hours = [name for name, entry in trainings.experiments().items() if entry.get("hours")]
    assert len(hours) > 10 and set(hours) <= set(experiment.listed(True))


def test_every_experiment_has_a_preset_of_seconds():
    assert all(plan(name).rows for name in trainings.experiments())


def test_other_data_stand_in_for_missing_ones(all_data, tmp_path):
    there, missing = plan("validity", "laptop", data_dir=str(all_data)), plan("validity", "laptop", data_dir="/nonexistent")
    assert not there.replaced and {row.flags["data"] for row in there.rows} == {"cifar10", "wikitext2:2048"}
    assert missing.replaced == [("cifar10", "synthetic"), ("wikitext2:2048", "text")]
    assert {row.flags["data"] for row in missing.rows} == {"synthetic", "text"}


def test_other_data_replace_those_of_their_kind(all_data):
    """Also where no model is named; what reads the other kind is left out."""
    rows = plan("validity", "smoke", data="cifar100", data_dir=str(all_data)).rows
    assert {row.flags["data"] for row in rows} == {"cifar100"} and all("resnet" in row.flags["model"] for row in rows)
    tuned = plan("finetune", "laptop", data="x.tokens", init="some/model", data_dir=str(all_data)).rows
    assert {row.flags["data"] for row in tuned} == {"x.tokens"}
    with pytest.raises(Refused, match="--data cifar10: the preset has no setting for images"):
        plan("finetune", "laptop", data="cifar10", data_dir=str(all_data))


@pytest.mark.parametrize("stored, asked, same", [(0, False, True), (1, False, False), ("1e", "1e", True)])
def test_values_as_they_are_typed(stored, asked, same):
    assert trained.same_value(stored, asked) == same


def test_flags_as_bcd_train_reads_them():
    assert experiment.read_flags(["--lr=0.7", "--no-augment", "--recompute", "--batch", "8"]) == {
        "lr": "0.7", "augment": False, "recompute": True, "batch": "8"}
    assert program.train_flags({"augment": False, "recompute": True, "lr": 0.1}) == [
        "--no-augment", "--recompute", "--lr", "0.1"]
    for words, wrong in [(["--nonsense", "7"], "bcd train has no flag --nonsense"), (["--lr", "1", "--lr=2"], "given twice"),
                         (["--augment", "--no-augment"], "given twice")]:
        with pytest.raises(Refused, match=wrong):
            experiment.read_flags(words)


def changed(row, **flags):
    return dataclasses.replace(row, flags=row.flags | flags)


def test_a_training_goes_on_without_a_flag():
    """What --no-augment began is what the same command asks for."""
    asked = plan("validity", "smoke", augment=False).rows[0]
    stored = {"augment": 0, "model": asked.flags["model"]}
    assert trained.is_as_asked(stored, asked, "x", "bcd train --no-augment --out x")
    with pytest.raises(Refused, match="trained with --augment 0; for 1"):
        trained.is_as_asked(stored, changed(asked, augment=True), "x", "bcd train --no-augment --out x")


class Stored(dict):
    """A training of a table whose directory is gone."""
    settings, provenance = {}, {"command": ""}


@pytest.mark.parametrize("status, done", [("finished", True), ("diverged", True), ("interrupted", False), ("running", False)])
def test_a_row_of_a_table_has_ended(tmp_path, status, done):
    asked = plan("validity", "smoke")
    name = asked.rows[0].name
    assert trained.finished_rows(asked, tmp_path, {name: Stored(status=status)}, "x") == ({name} if done else set())


def test_a_number_that_is_none():
    for flag in ("submodels", "seed", "fraction"):
        with pytest.raises(Refused, match=f"--{flag} x: expected a number"):
            plan("validity", "smoke", **{flag: "x"})


@pytest.mark.parametrize("model, data", [
    ("bottleneck:depth=14,width=2", "synthetic"), ("mlp:inputs=3072,layers=2,width=8,classes=10", "synthetic"),
    ("llama:layers=1,width=8,heads=1,context=8", "text")])
def test_a_model_of_a_shape_takes_the_data_that_it_reads(model, data):
    assert {row.flags["data"] for row in plan(models=[model]).rows} == {data}


def test_another_optimizer_takes_no_rate_of_adam():
    """The entries of validity have rates of SGD and of Adam."""
    with pytest.raises(Refused, match="validity: no learning rate for lion; give --lr"):
        plan(optimizers=["lion"])
    assert {row.flags["lr"] for row in plan(optimizers=["lion"], lr="1e-4").rows} == {"1e-4"}
    assert {row.flags["lr"] for row in plan(optimizers=["adam"]).rows} == {1e-2, 3e-3}


def test_other_models_take_the_settings_of_their_kind(all_data):
    rows = plan("validity", "laptop", models=["resnet20"], optimizers=["sgd"], seeds=1, data_dir=str(all_data)).rows
    assert [row.flags["data"] for row in rows] == ["cifar10"] * 2 and rows[0].flags["batch"] == 128
    with pytest.raises(Refused, match="the preset has no setting for such a model"):
        plan("ufp", models=["resnet8"])


def test_what_was_trained_otherwise_is_refused():
    stored = {"lr": 0.1, "epochs": 6.0, "always-active": "", "switch-every": "1e", "threads": 8}
    asked = trainings.Row("x", {"lr": 0.1, "epochs": 6, "always-active": "none", "switch-every": "1e", "threads": 1})
    assert trained.is_as_asked(stored, asked, "x")
    assert not trained.is_as_asked(stored, changed(asked, epochs=7), "x")
    with pytest.raises(Refused, match="x: trained with --lr 0.1; for 0.2 choose another --out"):
        trained.is_as_asked(stored, changed(asked, lr=0.2), "x")


@pytest.mark.parametrize("flag, without, other", [
    ("switch-warmup", 0, 40), ("beta2", 0.999, 0.95), ("always-active", "none", "ends"), ("valid", "", "score.tokens")])
def test_a_flag_that_an_older_training_lacks(flag, without, other):
    """It did without it, so that it is no training with another value."""
    asked = trainings.Row("x", {"lr": 0.1, flag: without})
    assert trained.is_as_asked({"lr": 0.1}, asked, "x")
    with pytest.raises(Refused, match=f"x: trained with --{flag} .*; for {other} choose another --out"):
        trained.is_as_asked({"lr": 0.1}, changed(asked, **{flag: other}), "x")


@pytest.mark.parametrize("stored, same", [
    ("data/words/train.tokens", True), ("/elsewhere/words/train.tokens", True), ("/elsewhere/words/score.tokens", False),
    ("/elsewhere/train.tokens", False), ("/elsewhere/more-words/train.tokens", False)])
def test_a_file_of_data_may_lie_in_another_directory(stored, same):
    """As on another machine; of a file that is not among the data the whole path counts."""
    asked = trainings.Row("x", {"data": "here/words/train.tokens"}, {"data": "{data}/words/train.tokens"})
    if same:
        assert trained.is_as_asked({"data": stored}, asked, "x")
    else:
        with pytest.raises(Refused, match="x: trained with --data"):
            trained.is_as_asked({"data": stored}, asked, "x")
    with pytest.raises(Refused, match="x: trained with --data"):
        trained.is_as_asked({"data": stored}, trainings.Row("x", asked.flags), "x")
