"""What bcd plan takes of measurements is what the files of results have."""
import collections
import json
import re
import shlex
import statistics

import numpy as np
import pytest

import choose
import compare
import curves
import document_multipliers
import program
import published
import record
from conftest import ROOT

FLAGS = {"per_node": 1, "batch": 1, "method": "bcd", "gpu": "h200", "precision": "bf16"}
LLAMA = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 64, "hidden_size": 8, "intermediate_size": 8,
         "num_hidden_layers": 30, "num_attention_heads": 1, "num_key_value_heads": 1, "max_position_embeddings": 8,
         "rms_norm_eps": 1e-5, "hidden_act": "silu", "rope_theta": 10000.0, "tie_word_embeddings": True}


def planned(**flags):
    """The table `plan` of one row."""
    return program.ask_once("plan", *program.flags_of(**FLAGS, **flags))["plan"]


def updates(**flags):
    table = planned(**flags)
    return table.value(table.labels[0], "updates")


def mean(network, method):
    return float(np.mean(record.multipliers(network, method, curves.plateau_multiplier)))


def of_images():
    """The means of BCD-1/3 in the long trainings of three seeds, by training, and the number of those of each network."""
    found = [(each, record.multipliers(*each, curves.plateau_multiplier)) for each in record.ALL_DATA
             if each[1].startswith("BCD-1/3") and not each[0].startswith("gpt")]
    kept = [(each, values) for each, values in found if len(values) == 3 and np.isfinite(values).all()]
    return ([statistics.fmean(values) for _, values in kept],
            collections.Counter(record.find(*each).first["model"] for each, _ in kept))


def test_updates_of_images():
    found, models = of_images()
    assert f"{updates(model='resnet8', submodels=3):.2f}" == f"{statistics.fmean(found):.2f}"
    notes = " ".join(planned(model="resnet8", submodels=3).notes)
    assert f", {min(found):.2f} to {max(found):.2f} by training" in notes
    assert models == {"resnet:depth=8,width=8": 9, "resnet8": 1}
    assert "ten of three seeds each, nine of ResNet-8x8 and one of ResNet-8" in notes
    assert f"{min(found):.2f} to {max(found):.2f}" == document_multipliers.same_loss_means(), "as the documents have them"


@pytest.mark.parametrize("submodels", [2, 3, 4])
def test_updates_of_text(submodels):
    assert f"{updates(model='gpt2', submodels=submodels):.2f}" == f"{mean('gpt', f'BCD-1/{submodels}'):.2f}"


@pytest.mark.parametrize("submodels, name", [(3, "BCD-1/3"), (6, "BCD-1/6"), (30, "a layer at a time")])
def test_updates_of_fine_tuning(submodels, name, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(LLAMA))
    by_name = {each.method.name: each for each in choose.tuned(choose.trainings(choose.FILE))}
    measured = compare.mean(by_name[name].times_the_updates(by_name[choose.FULL]))[0]
    assert f"{updates(init=str(tmp_path), submodels=submodels):.2f}" == f"{measured:.2f}"


def test_every_number_of_the_note_is_measured():
    """What the notes say of the measurements are these numbers, and no others."""
    notes = " ".join(planned(model="gpt2", submodels=3).notes)
    said = re.search(r": x ([^:]*) \(measured\)", notes).group(1)
    assert said == ", ".join(f"{mean('gpt', f'BCD-1/{m}'):.2f} at M = {m}" for m in (2, 3, 4))
    full = record.find("gpt", "full")
    assert f"{full.first['parameters'] / 1e6:.1f} million parameters at a constant rate, two seeds" in notes
    assert len(full.trainings) == 2


def test_what_is_published():
    text = " ".join(planned(model="gpt2", submodels=3).notes)
    average, images, language = (f"{published.mean_multiplier('adam', *which):.2f}" for which in ((), (True,), (False,)))
    worst = published.cells()["text"]["multiplier_worst"]
    assert (f"five pairs with Adam: x {average} on average, x {images} of the ResNets and x {language} of the language "
            f"models, x {worst} at most") in text


# ---- as documents ask ---------------------------------------------------------------------------

def commands(document):
    """What a document tells to type: in code that stands alone, and in lines."""
    text = (ROOT / document).read_text(encoding="utf-8")
    inline = [" ".join(each.split()) for each in re.findall(r"`(bcd\s+plan\s[^`]+)`", text)]
    return inline + [each.strip() for each in re.findall(r"^    (bcd plan [^#\n]+)", text, re.MULTILINE)]


@pytest.mark.parametrize("document", ["README.md", "experiments/choose.md"])
def test_what_documents_ask_has_an_answer(document):
    asked = commands(document)
    assert asked
    for command in asked:
        assert program.ask(*shlex.split(command)[1:])["plan"].rows, command
