#!/usr/bin/env python3
"""Group 3 of protocol.md: the text that it trains on, and LoRA by the peft library as a baseline from outside.

    smollm.py prepare              makes train.tokens, choose.tokens and score.tokens in $BCD_DATA/smollm
    smollm.py lora RUN --lr F --out FILE.h5
                                   trains by LoRA as the full update in the directory RUN was trained: the same
                                   model, tokens, order, batch, schedule and evaluations (needs torch and peft); adds
                                   the training to FILE.h5, which bcd report reads next to those of bcd train
"""
import argparse
import datetime
import math
import os
import pathlib
import resource
import shlex
import sys
import tempfile
import time

import numpy as np

import compare
import errors
import program
import schema
import store
import study
import tables
import trainings
from errors import Refused

PARTS = {"train": (0.0, 0.8), "choose": (0.8, 0.9), "score": (0.9, 1.0)}  # of the text
RANK = 16
ALPHA = 2 * RANK  # by which peft scales the factors, over RANK
COMMAND = "experiments/paper/smollm.py"


# ---- the text ---------------------------------------------------------------------------------------------------


def prepare():
    data = trainings.data_dir()
    text = (data / "tinyshakespeare.txt").read_bytes()
    folder = data / "smollm"
    folder.mkdir(exist_ok=True)
    for name, (begin, end) in PARTS.items():
        part = folder / f"{name}.txt"
        part.write_bytes(text[int(begin * len(text)):int(end * len(text))])
        program.run("tokenize", str(part), "--tokenizer", str(data / "smollm2"), "--out",
                    str(folder / f"{name}.tokens"))


def read_tokens(path):
    """The tokens of a file that bcd tokenize wrote (data/tokens.h)."""
    with open(path, "rb") as file:
        header = file.read(64)
        if header[:8] != b"BCDTOKEN":
            raise Refused(f"{path}: no token file")
        return np.frombuffer(file.read(), "<u2" if header[12] == 2 else "<u4").astype(np.int64)


def sample(tokens, index, context):
    """Inputs and targets of a sample, as bcd train cuts them: one after the other, without gaps."""
    piece = tokens[index * context:(index + 1) * context + 1]
    return piece[:-1], piece[1:]


def order(settings):
    """The samples of each update.  They depend on the data and the seed, so a tiny model on the same ones says them."""
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "samples")
        words = {name: settings[name] for name in ("data", "valid", "batch", "steps", "seed")}
        tiny = f"gpt:layers=1,width=8,heads=1,context={settings['context']}"
        program.run("train", "--model", tiny, "--eval-samples", "1", "--quiet", "--log-samples", log,
                    "--out", os.path.join(folder, "run"), *program.flags_of(**words))
        return np.loadtxt(log, dtype=int, ndmin=2)[:, 1:].tolist()  # the first column is the update


# ---- LoRA -------------------------------------------------------------------------------------------------------


def rates_like(full, lr):
    """The learning rate of each update, by the schedule of the full update but with this highest rate."""
    return lr / full["lr"] * full.curve["lr"]


def lora(full, lr):
    """Trains as `full`, a study.Training, was trained.  Returns a row (seconds, training loss) for each update, a row
    (update, loss, accuracy, seconds) for each evaluation, and the numbers of all parameters and of the active ones."""
    import peft
    import torch
    import transformers

    settings = full.settings
    torch.set_num_threads(int(full["threads"]))
    torch.manual_seed(settings["seed"])
    model = transformers.AutoModelForCausalLM.from_pretrained(settings["init"], dtype=torch.float32,
                                                              trust_remote_code=False)
    parameters = sum(p.numel() for p in model.parameters())
    model = peft.get_peft_model(model, peft.LoraConfig(r=RANK, lora_alpha=ALPHA, target_modules="all-linear",
                                                       lora_dropout=0.0))
    active = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(active, lr=lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=settings["weight-decay"])
    train, valid = read_tokens(settings["data"]), read_tokens(settings["valid"])
    context, spent, rates = settings["context"], 0.0, rates_like(full, lr)
    updates, evaluations = [], []

    def logits_of(tokens, samples):
        pairs = [sample(tokens, index, context) for index in samples]
        inputs, targets = (torch.tensor(np.stack(part)) for part in zip(*pairs))
        return model(input_ids=inputs).logits.flatten(0, 1), targets.flatten()

    def evaluate(step):
        count = min((len(valid) - 1) // context, settings["eval-samples"] or len(valid))
        losses, correct = [], []
        with torch.no_grad():
            for index in range(count):
                logits, targets = logits_of(valid, [index])
                losses.append(float(torch.nn.functional.cross_entropy(logits, targets)))
                correct.append(float((logits.argmax(-1) == targets).float().mean()))
        evaluations.append((step, float(np.mean(losses)), float(np.mean(correct)), spent))
        print(f"update {step} of {settings['steps']}: on the other text {evaluations[-1][1]:.4f}, "
              f"{spent:.0f} s", flush=True)

    evaluate(0)
    for step, samples in enumerate(order(settings)):
        start = time.perf_counter()
        for group in optimizer.param_groups:
            group["lr"] = rates[step]
        optimizer.zero_grad(set_to_none=True)
        loss = torch.nn.functional.cross_entropy(*logits_of(train, samples))
        loss.backward()
        if settings["clip"]:
            torch.nn.utils.clip_grad_norm_(active, settings["clip"])
        optimizer.step()
        spent += time.perf_counter() - start
        updates.append((spent, float(loss.detach())))
        if (step + 1) % settings["eval-every"] == 0 or step + 1 == settings["steps"]:
            evaluate(step + 1)
    return updates, evaluations, parameters, sum(p.numel() for p in active)


def as_training(full, lr, measured, provenance):
    """A study.Training of what lora() measured, with the settings of `full` but its rate, and its own provenance.  It
    diverged where a loss is not finite: its curves end before, and there is nothing at its end, as with bcd train."""
    updates, evaluations, parameters, active = measured
    seconds, losses = np.array(updates).T
    when, loss, accuracy, after = np.array(evaluations).T
    done = int(np.isfinite(losses).cumprod().sum())
    diverged = done < len(losses) or not np.isfinite(loss[-1])
    steps = np.arange(1, len(losses) + 1)
    settings = full.settings | {"lr": lr}
    curve = {"step": steps.astype(np.uint64), "samples": (full["batch"] * steps).astype(np.uint64), "loss": losses,
             "lr": rates_like(full, lr), "submodel": np.zeros(len(steps), np.int32),
             "seconds": seconds}
    evaluation = {"step": when.astype(np.uint64), "loss": loss, "accuracy": accuracy, "perplexity": np.exp(loss),
                  "seconds": after}
    at_the_end = {"valid_loss": loss[-1], "accuracy": accuracy[-1], "perplexity": evaluation["perplexity"][-1]}
    spent = seconds[done - 1] if done else math.nan
    row = full.row | {f"peak_{role}": math.nan for role in schema.ROLES} | {
        "row": f"lora-lr-{lr:g}-seed{full['seed']}", "method": f"LoRA of rank {RANK}", "parameters": active, "lr": lr,
        "steps": len(steps), "status": study.DIVERGED if diverged else study.FINISHED,
        **(dict.fromkeys(at_the_end, math.nan) if diverged else at_the_end),
        "seconds": spent, "rate": full["batch"] * settings["context"] * done / spent,
        "closed_form": 4.0 * (parameters + 4 * active),  # of the adapters also gradients and AdamW's two vectors
        **{name: provenance[name] for name in ("commit", "started", "wall", "cpu", "device", "precision", "threads")}}
    return study.Training(row, settings, provenance, full.spec, {name: values[:done] for name, values in curve.items()},
                          {name: values[when <= done] for name, values in evaluation.items()}, full.switches)


def resident():
    """The most bytes that this process has held so far."""
    return 1024.0 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def train_lora(run, lr, out):
    import peft
    import torch
    import transformers

    full = study.read_run(str(pathlib.Path(run) / "run.h5"))
    if len(full.curve["lr"]) != full.settings["steps"]:
        raise Refused(f"{run}: it has no learning rate for each of {full.settings['steps']} updates")
    imported = resident() / tables.MIB
    start, started = time.perf_counter(), datetime.datetime.now(datetime.timezone.utc)
    measured = lora(full, lr)
    provenance = program.provenance(shlex.join([COMMAND, *sys.argv[1:]])) | {
        "seed": full["seed"], "threads": int(full["threads"]), "compiler": f"Python {sys.version.split()[0]}", "flags": "",
        "libraries": f"torch {torch.__version__}, transformers {transformers.__version__}, peft {peft.__version__}; "
                     f"{imported:.0f} MiB once they are imported",
        "started": f"{started:%Y-%m-%dT%H:%M:%SZ}", "wall": time.perf_counter() - start}
    made = as_training(full, lr, measured, provenance)
    made.row["resident"] = resident()
    add(out, made)


def add(out, made):
    """Adds a training to a file, in place of one of the same name, length and text.  Two that end together wait for each
    other."""
    def is_same(one):
        return all(one[name] == made[name] for name in ("row", "steps")) and one.setting("valid") == made.setting("valid")

    with store.changing(out):
        rows = [one for one in study.read_if_there(out) if not is_same(one)] + [made]
        compare.converge(rows)
        study.write(out, rows)


def main(words):
    parser = errors.Parser(prog="smollm.py", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("prepare")
    train = commands.add_parser("lora")
    train.add_argument("run")
    train.add_argument("--lr", type=float, required=True)
    train.add_argument("--out", required=True)
    options = parser.parse_args(words)
    if options.command == "prepare":
        prepare()
    else:
        train_lora(options.run, options.lr, options.out)


if __name__ == "__main__":
    errors.run(main)
