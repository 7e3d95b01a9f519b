"""Group 3 of protocol.md: the text as smollm.py cuts it for LoRA, which is that of bcd train, and its trainings."""
import math

import numpy as np
import pytest

import program
import smollm
import study
from samples import GPT, PROVENANCE, STEPS, training

TEXT = b"to be or not to be, that is " * 20


@pytest.fixture
def tokens(tmp_path):
    """A file of these tokens."""
    (tmp_path / "text").write_bytes(TEXT)
    program.run("tokenize", str(tmp_path / "text"), "--tokenizer", "bytes", "--out", str(tmp_path / "text.tokens"))
    return tmp_path / "text.tokens"


def test_parts_are_all_of_the_text_once(tmp_path, monkeypatch):
    text = " ".join(map(str, range(200))).encode()  # of which no two parts are alike
    (tmp_path / "tinyshakespeare.txt").write_bytes(text)
    monkeypatch.setenv("BCD_DATA", str(tmp_path))
    monkeypatch.setattr(program, "run", lambda *words: None)
    smollm.prepare()
    parts = [(tmp_path / "smollm" / f"{name}.txt").read_bytes() for name in ("train", "choose", "score")]
    assert b"".join(parts) == text
    assert [len(part) / len(text) for part in parts] == pytest.approx([0.8, 0.1, 0.1], abs=1 / len(text))


def test_tokens_are_read_in_either_width(tokens):
    narrow = tokens.read_bytes()
    assert smollm.read_tokens(tokens).tolist() == list(TEXT)
    wide = np.frombuffer(narrow[64:], "<u2").astype("<u4") + 70000
    tokens.write_bytes(narrow[:12] + bytes([4]) + narrow[13:64] + wide.tobytes())
    assert smollm.read_tokens(tokens).tolist() == wide.tolist()


def test_a_target_is_the_next_token():
    inputs, targets = smollm.sample(np.arange(10), 1, 3)
    assert inputs.tolist() == [3, 4, 5] and targets.tolist() == [4, 5, 6]


def test_order_is_that_of_another_model(tokens, tmp_path):
    settings = {"data": str(tokens), "valid": str(tokens), "batch": 2, "steps": 40, "seed": 5, "context": 8}
    program.run("train", "--model", "llama:layers=2,width=16,heads=2,ffn=16,context=8", "--quiet", "--log-samples",
                str(tmp_path / "log"), "--out", str(tmp_path / "run"),
                *program.flags_of(**{name: settings[name] for name in settings if name != "context"}))
    logged = np.loadtxt(tmp_path / "log", dtype=int)
    assert logged[:, 0].tolist() == list(range(1, 41))  # more than an epoch, of 69 samples
    assert smollm.order(settings) == logged[:, 1:].tolist()


def lora_training(losses, at_the_end=0.5):
    """A training by LoRA with these losses, which began at a validation loss of 1."""
    updates = [(0.5 * (step + 1), loss) for step, loss in enumerate(losses)]
    evaluations = [(0, 1.0, 0.2, 0.0), (100, 0.7, 0.4, 50.0), (STEPS, at_the_end, 0.6, 100.0)]
    return smollm.as_training(training(GPT, False, context=32), 0.01, (updates, evaluations, 1000, 10), PROVENANCE)


def test_a_training_by_lora_is_a_row(tmp_path):
    out = str(tmp_path / "lora.h5")
    smollm.add(out, lora_training([2.0] * STEPS))
    one, = study.read([out])
    assert (one["status"], one["steps"], one["valid_loss"], one["accuracy"]) == ("finished", STEPS, 0.5, 0.6)
    assert one["perplexity"] == pytest.approx(math.exp(0.5)) and one["rate"] == pytest.approx(32 * 32 / 0.5)
    assert len(one.curve["loss"]) == STEPS and one.evaluation["step"].tolist() == [0, 100, STEPS]


def test_a_training_replaces_only_itself(tmp_path):
    """One of another length or on another text is another training, though its row has the same name."""
    out, longer, other = str(tmp_path / "lora.h5"), lora_training([2.0] * STEPS), lora_training([2.0] * STEPS)
    longer.row["steps"] = STEPS + 1
    other.settings = other.settings | {"valid": "score.tokens"}
    for one in (lora_training([2.0] * STEPS), longer, other, lora_training([1.5] * STEPS)):
        smollm.add(out, one)
    assert [(one["steps"], one.setting("valid"), one.curve["loss"][0]) for one in study.read([out])] == [
        (STEPS + 1, "", 2.0), (STEPS, "score.tokens", 2.0), (STEPS, "", 1.5)]


@pytest.mark.parametrize("finite", [0, 1, 150])
def test_a_training_by_lora_that_diverged(tmp_path, finite):
    """It leaves its file readable, and has the length that was asked for, and nothing at its end."""
    out = str(tmp_path / "lora.h5")
    smollm.add(out, lora_training([2.0] * finite + [math.nan, 2.0] + [math.nan] * (STEPS - finite - 2), math.nan))
    one, = study.read([out])
    assert one["status"] == "diverged" and one["steps"] == STEPS and len(one.curve["loss"]) == finite
    assert one.evaluation["step"].tolist() == ([0] if finite < 100 else [0, 100])
    assert all(math.isnan(one[name]) for name in ("valid_loss", "accuracy", "perplexity", "train_loss"))


@pytest.mark.parametrize("loss", [math.inf, math.nan])
def test_a_training_by_lora_that_diverged_in_its_last_update(loss):
    one = lora_training([2.0] * STEPS, loss)
    assert one["status"] == "diverged" and len(one.curve["loss"]) == STEPS and math.isnan(one["valid_loss"])
