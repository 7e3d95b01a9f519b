"""The text of group 3 of protocol.md, as smollm.py cuts it for LoRA: that of bcd train."""
import numpy as np
import pytest

import program
import smollm

TEXT = b"to be or not to be, that is " * 20


@pytest.fixture
def tokens(tmp_path):
    """A file of these tokens."""
    (tmp_path / "text").write_bytes(TEXT)
    program.run("tokenize", str(tmp_path / "text"), "--tokenizer", "bytes", "--out", str(tmp_path / "text.tokens"))
    return tmp_path / "text.tokens"


def test_parts_are_all_of_the_text_once(tmp_path, monkeypatch):
    (tmp_path / "tinyshakespeare.txt").write_bytes(TEXT)
    monkeypatch.setenv("BCD_DATA", str(tmp_path))
    monkeypatch.setattr(program, "run", lambda *words: None)
    smollm.prepare()
    parts = [(tmp_path / "smollm" / f"{name}.txt").read_bytes() for name in ("train", "choose", "score")]
    assert b"".join(parts) == TEXT
    assert [len(part) / len(TEXT) for part in parts] == pytest.approx([0.8, 0.1, 0.1], abs=1 / len(TEXT))


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
