"""LoRA as smollm.py trains it, beside bcd train on the same tiny LLaMA; where torch and peft are installed."""
import math

import pytest

import program
import smollm
import study

torch, peft = pytest.importorskip("torch"), pytest.importorskip("peft")
pytest.importorskip("transformers")

TEXT = b"to be or not to be, that is the question " * 20
STEPS, LR = 4, 1e-3


@pytest.fixture(scope="module")
def full(tmp_path_factory):
    """A full update from an exported model, with a rate that changes, and evaluations in between."""
    folder = tmp_path_factory.mktemp("lora")
    (folder / "text").write_bytes(TEXT)
    tokens = folder / "text.tokens"
    program.run("tokenize", str(folder / "text"), "--tokenizer", "bytes", "--out", str(tokens))
    data = program.flags_of(data=str(tokens), valid=str(tokens), batch=2)
    program.run("train", "--model", "llama:layers=2,width=16,heads=2,ffn=32,context=8", "--steps", "0", "--quiet", "--out",
                str(folder / "begin"), *data)
    program.run("export", str(folder / "begin"), "--out", str(folder / "model"))
    program.run("train", "--init", str(folder / "model"), "--quiet", "--out", str(folder / "full"), *data, *program.flags_of(
        context=8, steps=STEPS, lr=2 * LR, optimizer="adamw", schedule="cosine", warmup=1, clip=0.5, eval_every=2,
        eval_samples=5, weight_decay=0.03, threads=1))
    return study.read_run(str(folder / "full" / "run.h5"))


def test_begins_as_the_full_update(full):
    """The adapters begin at zero: the first evaluation, and the first batch, are those of bcd train."""
    updates, evaluations, parameters, active = smollm.lora(full, LR)
    assert [each[0] for each in evaluations] == full.evaluation["step"].tolist() == [0, 2, 4]
    assert evaluations[0][1] == pytest.approx(full.evaluation["loss"][0], rel=1e-5)
    assert evaluations[0][2] == pytest.approx(full.evaluation["accuracy"][0])
    assert updates[0][1] == pytest.approx(full.curve["loss"][0], rel=1e-5) and len(updates) == STEPS
    assert parameters == full["parameters"]
    # Two layers of four square matrices and three of the SwiGLU, each with an input and an output of RANK.
    assert active == 2 * smollm.RANK * (4 * (16 + 16) + 3 * (16 + 32))


def test_a_rate_of_zero_changes_nothing(full):
    """Then each update has the loss of its own batch, which the order of bcd train chose."""
    _, evaluations, *_ = smollm.lora(full, 0.0)
    assert len({loss for _, loss, *_ in evaluations}) == 1


def test_settings(full, monkeypatch):
    """AdamW with the decay, the clipping and the schedule of the full update, at another highest rate."""
    made, rates, clipped = [], [], []

    class Optimizer(torch.optim.AdamW):
        def __init__(self, active, **settings):
            made.append(settings)
            super().__init__(active, **settings)

        def step(self):
            rates.append(self.param_groups[0]["lr"])
            return super().step()

    config, clip = peft.LoraConfig, torch.nn.utils.clip_grad_norm_
    monkeypatch.setattr(torch.optim, "AdamW", Optimizer)
    monkeypatch.setattr(peft, "LoraConfig", lambda **words: made.append(words) or config(**words))
    monkeypatch.setattr(torch.nn.utils, "clip_grad_norm_", lambda *words: clipped.append(words[1]) or clip(*words))
    smollm.lora(full, LR)
    lora, adamw = made
    assert lora["r"] == 16 and lora["lora_alpha"] == 32 and lora["lora_dropout"] == 0
    assert adamw["weight_decay"] == 0.03 and adamw["betas"] == (0.9, 0.999) and adamw["eps"] == 1e-8
    assert clipped == [0.5] * STEPS
    assert rates == pytest.approx((full.curve["lr"] / 2).tolist()) and rates[1] == pytest.approx(LR)
    assert not math.isclose(rates[1], rates[-1])
