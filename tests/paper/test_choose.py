"""Methods of fine-tuning by name: what each reached and took, and their picture."""
import copy
import dataclasses
import math
import re
import subprocess

import numpy as np
import pytest

import choose
import document
import pictures
import program
import render
import study
from conftest import ROOT
from errors import Refused
from record import RESULTS
from samples import LATER, MIB, PROVENANCE, evaluations, like, training
from test_registered import fine_tuned, lora
from test_trainings import plan


DEEP = "gpt:layers=30,width=8,heads=1,context=8,vocabulary=16"  # has 30 submodels


def made_of(row, loss):
    columns = {name: row.flags[name] for name in ("optimizer", "order", "momentum") if name in row.flags}
    made = training(DEEP, False, row.submodels, started=LATER, init="model", seed=row.seed, schedule="cosine", steps=10,
                    context=8, resident=(6 - loss) * 100 * MIB, **columns)
    made.evaluation = evaluations([0, 120, 240], [4.0, loss - 0.1, loss])
    return made


@pytest.fixture(scope="module")
def trained():
    """What group 3 trains: method number k ends at 3 + k / 10, and seed s adds s / 1000."""
    rows = {name: plan(name, "laptop").rows for name in ("smollm", "smollm-added")}
    names = list(dict.fromkeys(row.name.split("-seed")[0] for some in rows.values() for row in some))
    found = {name: [made_of(row, 3 + names.index(row.name.split("-seed")[0]) / 10 + (row.seed - 1) / 1000)
                    for row in some] for name, some in rows.items()}
    found["smollm-lora"] = [lora(fine_tuned(3.0, seed=seed), 2.499 + seed / 1000) for seed in (1, 2, 3)]
    for one in found["smollm-lora"]:
        one.row["model"] = DEEP
    for name, some in found.items():
        for one in some:
            one.file = f"{name}.h5"
    return [one for some in found.values() for one in some]


@pytest.fixture(scope="module")
def methods(trained):
    return choose.tuned(trained)


@pytest.fixture
def files(trained, monkeypatch):
    """All of them are there; those that were timed have one seed."""
    timed = [copy.copy(one) for one in trained if one["seed"] == 1]
    for one in timed:
        one.provenance = PROVENANCE
    monkeypatch.setattr(choose, "trainings", lambda experiment: timed if experiment == choose.SPEED else trained)


def test_times_of_two_computers_are_refused(files):
    choose.trainings(choose.SPEED)[2].provenance = PROVENANCE | {"cpu": "another processor"}
    with pytest.raises(Refused, match="was not timed on the computer of the full update"):
        choose.seconds_per_update()


def test_every_method_has_a_name(methods):
    assert [each.method for each in methods] == choose.METHODS
    assert [len(each.trainings) for each in methods] == [3] * len(methods)


def test_what_they_reached(methods):
    by_name = {each.method.name: each for each in methods}
    full, plain, thirds, rank = (by_name[name] for name in (choose.FULL, choose.PLAIN, "BCD-1/3", "LoRA, rank 16"))
    assert full.losses == pytest.approx([3.0, 3.001, 3.002]) and full.lowest == pytest.approx([2.9, 2.901, 2.902])
    assert full.difference is None and full.answer == ""
    assert thirds.difference.value == pytest.approx(-0.1) and thirds.answer == "no"
    assert rank.difference.value == pytest.approx(0.5) and rank.answer == "yes"
    assert plain.difference.value == pytest.approx(-0.8) and plain.answer == "no"
    # Seven comparisons were registered, and are corrected together; the others have files of their own.
    outside = choose.PLAIN, "LoRA, rank 16"
    assert {each.trainings[0].file for each in methods if each.method.name not in outside} == {"smollm.h5"}
    assert rank.p == rank.difference.p and plain.p == plain.difference.p
    assert max(each.p / each.difference.p for each in methods[1:]) == pytest.approx(7)
    assert full.trained == pytest.approx(9) and rank.trained == pytest.approx(4 * (1000 + 40) / MIB)
    assert full.mean("resident", 1 / MIB) == pytest.approx(299.9)


def test_pictures(methods, files):
    """A mark or a line in both halves for each method, and the loss before training."""
    marks, lines = (draw(methods) for draw in pictures.CHOOSE.values())
    assert "before: 4.00" in marks.axes[0].get_ylabel()
    for axis in marks.axes:
        found = [line for line in axis.lines if line.get_marker() not in ("None", "")]
        assert len(found) == len(methods) and all(math.isfinite(line.get_xdata()[0]) for line in found)
    for axis in lines.axes:
        assert [line.get_ydata()[-1] for line in axis.lines] == [pytest.approx(sum(each.losses) / 3) for each in methods]
    assert list(lines.axes[0].lines[0].get_xdata()) == [0, 120 * 32 * 8 / 1e3, 240 * 32 * 8 / 1e3]
    # By samples.py a full update takes 30 s / 200 updates, one of BCD 20 / 200; by test_registered.py LoRA's 10 take 10 s.
    assert [line.get_xdata()[-1] for line in lines.axes[1].lines] == pytest.approx(
        [240 * 30 / 200] * 4 + [240 * 20 / 200] * 5 + [10])
    for figure in (marks, lines):
        assert [text.get_text() for text in figure.legends[0].get_texts()] == [each.method.name for each in methods]


def test_every_method_was_trained_with_three_seeds_and_timed():
    for experiment, seeds, missing in ((choose.FILE, [1, 2, 3], []), (choose.SPEED, [1], [choose.PLAIN])):
        found = choose.by_method(choose.trainings(experiment))
        assert [method.name for method, _ in found] == [each.name for each in choose.METHODS if each.name not in missing]
        assert [sorted(one["seed"] for one in made) for _, made in found] == [seeds] * len(found), experiment


def test_the_first_update_is_not_timed(trained, monkeypatch):
    one = like(trained[0])
    one.curve["seconds"] = 9.0 + 2.0 * np.arange(len(one.curve["seconds"]))
    monkeypatch.setattr(choose, "trainings", lambda experiment: [one])
    assert choose.seconds_per_update() == {choose.FULL: 2.0}


def test_as_text(files):
    rows = {row["name"]: row for row in document.fine_tuned()}
    assert rows[choose.FULL]["loss"] == "3.001 ± 0.001" and rows[choose.FULL]["difference"] == rows[choose.FULL]["p"] == ""
    assert rows["BCD-1/3"]["difference"].startswith("-0.100 (-0.10") and rows["BCD-1/3"]["answer"] == "no"
    assert rows["BCD-1/3"]["seconds"] == "0.67" and rows["BCD-1/3"]["gain"] == "90 %"
    assert rows["BCD-1/3"]["same_time"] == "3.939" and rows["LoRA, rank 16"]["same_time"] == "" and rows["BCD-1/3"]["peak_total"] == "10"
    assert rows["LoRA, rank 16"]["peak_total"] == "–"


def test_what_fits():
    """Of a model of six equal layers, by hand: the parameters, and gradients and two vectors of what trains; less of
    them with more submodels, and fewer operations."""
    model = "gpt:layers=6,width=256,heads=4,context=64,vocabulary=64"
    found = choose.needs(model, "fp32", context=64)
    assert list(found) == [method.name for method in choose.METHODS if method.info]
    layer = 4 * (12 * 256**2 + 13 * 256)
    rest = 4 * ((64 + 64) * 256 + 2 * 256)
    whole = 6 * layer + rest
    assert 4 * whole < found[choose.FULL][0] < 4 * whole + 4 * MIB and found[choose.FULL][1] == 1
    assert found[choose.FULL][0] - found["full, Lion"][0] == pytest.approx(whole)
    assert found["full, SGD"][0] - found[choose.PLAIN][0] == pytest.approx(whole)
    assert found[choose.FULL][0] - found["BCD-1/3"][0] == pytest.approx(3 * (whole - 2 * layer - rest / 2), rel=0.05)
    assert found["a layer at a time"][0] < found["LISA"][0] < found["BCD-1/3"][0]
    assert found["a layer at a time"][1] < found["BCD-1/3"][1] < 0.75


def test_factors_of_lora():
    """As many as the peft library made beside SmolLM2; of LLaMA 3.2, published with it for rank 16, 11.3 million."""
    made = study.read([str(RESULTS / "smollm-lora.h5")])[0]
    assert choose.low_rank(made.spec) == made["parameters"] == 4884480
    assert choose.low_rank("layers=16,width=2048,heads=32,ffn=8192,groups=8,rope_base=500000") == 11272192


@pytest.mark.parametrize("precision, frozen, trained", [("fp32", 4, 16), ("bf16", 2, 18)])
def test_what_lora_fits_into(precision, frozen, trained):
    """By hand: all parameters frozen, the factors with gradients, two vectors and in bf16 masters, and the activations
    and workspace that the full update has, too."""
    model = "llama:layers=6,width=256,heads=4,ffn=512,context=64,vocabulary=64"
    layer = 4 * 256**2 + 3 * 256 * 512 + 2 * 256
    whole, factors = 6 * layer + 2 * 64 * 256 + 256, 6 * 16 * (4 * 512 + 3 * 768)
    full = choose.needs(model, precision, context=64)[choose.FULL][0]
    assert choose.lora_needs(model, precision, context=64) == full - trained * (whole - factors) + frozen * whole


@pytest.mark.parametrize("model", ["llama3.2-1B", "llama3.2-3B", "llama3-8B"])
def test_masters_decide_in_bf16(model):
    """Plain SGD takes more than BCD-1/3, and would take less with its masters on the host, where BCD has most of its own."""
    found = choose.needs(model, "bf16")
    plain, thirds = found[choose.PLAIN][0], found["BCD-1/3"][0]
    assert plain - choose.masters(model) < thirds < plain


def test_updates_to_the_same_loss():
    """Of BCD-1/3 over the full update of the same seed, from the raw curves: at the higher of the two lowest losses."""
    by_name = {one.method.name: one for one in choose.tuned(choose.trainings(choose.FILE))}
    full, thirds = by_name[choose.FULL], by_name["BCD-1/3"]
    for times, bcd in zip(thirds.times_the_updates(full), sorted(thirds.trainings, key=lambda one: one["seed"])):
        other, = (one for one in full.trainings if one["seed"] == bcd["seed"])
        level, steps, losses = bcd.evaluation["loss"][-1], *(other.evaluation[name] for name in ("step", "loss"))
        after = int(np.flatnonzero(losses <= level)[0])
        way = (losses[after - 1] - level) / (losses[after - 1] - losses[after])
        assert times == pytest.approx(480 / (steps[after - 1] + way * 120.0)) and times > 1.8


def test_a_missing_seed_has_no_pair(methods):
    """Its trainings are not compared with those of another seed."""
    full, thirds = (next(each for each in methods if each.method.name == name) for name in (choose.FULL, "BCD-1/3"))
    first, second, third = thirds.times_the_updates(full)
    without = dataclasses.replace(full, trainings=[one for one in reversed(full.trainings) if one["seed"] != 1])
    assert thirds.times_the_updates(without) == pytest.approx([math.nan, second, third], nan_ok=True)
    one_less = dataclasses.replace(thirds, trainings=thirds.trainings[:2])
    assert one_less.times_the_updates(full) == pytest.approx([first, second])
    assert len({first, second, third}) == 3


@pytest.mark.parametrize("source, words", [
    ("experiments/choose.md.in", "## What each reached"), ("experiments/paper_repro.md.in", "### In fine-tuning"),
    ("experiments/readme_numbers.md.in", "| BCD-1/3, AdamW | 3.101 ± 0.001 |")])
def test_documents(source, words, files):
    """They say what the files have."""
    text = render.render(source)
    assert words in " ".join(text.split()) and "2.501 ± 0.001" in text


def test_what_is_advised_won():
    """The rates that finetune.md names, and the defaults of bcd train, are the best of smollm-rates.h5."""
    best = {name: min(tried, key=lambda one: one[1])[0] for name, tried in choose.tuned_rates()}
    for name, tried in choose.tuned_rates():
        assert min(rate for rate, _ in tried) < best[name] < max(rate for rate, _ in tried), name
    assert set(best) == {method.name for method in choose.METHODS} - {choose.PLAIN}  # its rates were added later
    page = " ".join((ROOT / "experiments" / "finetune.md").read_text(encoding="utf-8").split())
    named = re.search(r"with `--init` (\S+) for AdamW, (\S+) for Lion, (\S+) for SGD; AdamW (\S+) from 6 submodels on, "
                      r"and (\S+) from 30 on unless blocks are always active", page)
    adamw, lion, sgd, six, thirty = map(float, named.groups())
    assert [best[name] for name in (choose.FULL, "BCD-1/3", "full, Lion", "full, SGD", "BCD-1/6", "LISA",
                                    "a layer at a time")] == [adamw, adamw, lion, sgd, six, six, thirty]
    shown = subprocess.run([program.find(), "train", "--help"], capture_output=True, text=True, check=True).stdout
    shown = " ".join(shown.split())
    defaults = {name: float(rate) for names, rate in re.findall(r"([a-z, ]+) (\S+?)(?:;|$)", re.search(
        r"with --init: ([^]]+)\]", shown).group(1)) for name in names.strip().split(", ")}
    assert [defaults[name] for name in ("sgd", "adam", "adamw", "lion", "muon")] == [sgd, adamw, adamw, lion, lion]
    times = re.search(r"adamw takes (\d+) times its own from 6 submodels on, and from 30 on (\d+) times, but with blocks that "
                      r"are always active (\d+) ", shown)
    assert [six / adamw, thirty / adamw, six / adamw] == pytest.approx([float(each) for each in times.groups()])
