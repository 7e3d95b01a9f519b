#!/usr/bin/env python3
"""Group 3 of protocol.md: the text that it trains on, and LoRA by the peft library as a baseline from outside.

    smollm.py prepare              makes train.tokens, choose.tokens and score.tokens in $BCD_DATA/smollm
    smollm.py lora RUN --lr F --out FILE.h5
                                   trains by LoRA as the full update in the directory RUN was trained: the same
                                   model, tokens, order, batch, schedule and evaluations (needs torch and peft)
"""
import argparse
import math
import os
import pathlib
import resource
import subprocess
import tempfile
import time

import h5py
import numpy as np

import errors
import program
import tables
import trainings
from errors import Refused

PARTS = {"train": (0.0, 0.8), "choose": (0.8, 0.9), "score": (0.9, 1.0)}  # of the text
RANK = 16


# ---- the text ---------------------------------------------------------------------------------------------------


def prepare():
    data = trainings.data_dir()
    text = (data / "tinyshakespeare.txt").read_bytes()
    folder = data / "smollm"
    folder.mkdir(exist_ok=True)
    for name, (begin, end) in PARTS.items():
        part = folder / f"{name}.txt"
        part.write_bytes(text[int(begin * len(text)):int(end * len(text))])
        subprocess.run([program.find(), "tokenize", str(part), "--tokenizer", str(data / "smollm2"), "--out",
                        str(folder / f"{name}.tokens")], check=True)


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
        words = {name: settings[name] for name in ("data", "valid", "context", "batch", "steps", "seed")}
        subprocess.run([program.find(), "train", "--model", "gpt:layers=1,width=8,heads=1,context=128", "--eval-samples", "1",
                        "--quiet", "--log-samples", log, "--out", os.path.join(folder, "run"), *program.flags_of(**words)],
                       check=True)
        return [[int(word) for word in line.split()[1:]] for line in open(log, encoding="ascii")]


# ---- LoRA -------------------------------------------------------------------------------------------------------


def rate(settings, step):
    """The learning rate as a fraction of the highest: a warm-up, then a cosine (ref/optimizers)."""
    warmup, steps, final = settings["warmup"], settings["steps"], settings["final-lr"]
    if step < warmup:
        return (step + 1) / warmup
    wave = 0.5 * (1 + math.cos(math.pi * (step - warmup) / (steps - warmup)))
    return final + (1 - final) * wave


def lora(run, lr, out):
    import peft
    import torch
    import transformers

    with h5py.File(pathlib.Path(run) / "run.h5") as file:
        settings = {name: value.decode() if isinstance(value, bytes) else value.item() if hasattr(value, "item") else value
                    for name, value in file["settings"].attrs.items()}
    torch.set_num_threads(settings["threads"] or 1)
    torch.manual_seed(settings["seed"])
    model = transformers.AutoModelForCausalLM.from_pretrained(settings["init"], dtype=torch.float32)
    parameters = sum(p.numel() for p in model.parameters())
    model = peft.get_peft_model(model, peft.LoraConfig(r=RANK, lora_alpha=2 * RANK, target_modules="all-linear",
                                                       lora_dropout=0.0))
    active = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(active, lr=lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=settings["weight-decay"])
    train, valid = read_tokens(settings["data"]), read_tokens(settings["valid"])
    context, evaluations, spent = settings["context"], [], 0.0

    def loss_of(tokens, samples):
        pairs = [sample(tokens, index, context) for index in samples]
        inputs, targets = (torch.tensor(np.stack(part)) for part in zip(*pairs))
        logits = model(input_ids=inputs).logits
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())

    def evaluate():
        with torch.no_grad():
            count = min((len(valid) - 1) // context, settings["eval-samples"] or len(valid))
            return float(np.mean([float(loss_of(valid, [i])) for i in range(count)]))

    for step, samples in enumerate(order(settings)):
        start = time.perf_counter()
        for group in optimizer.param_groups:
            group["lr"] = lr * rate(settings, step)
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(train, samples)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(active, settings["clip"])
        optimizer.step()
        spent += time.perf_counter() - start
        if (step + 1) % settings["eval-every"] == 0 or step + 1 == settings["steps"]:
            evaluations.append((step + 1, float(loss.detach()), evaluate(), spent))
            print(f"update {step + 1} of {settings['steps']}: loss {evaluations[-1][1]:.4f}, on the other text "
                  f"{evaluations[-1][2]:.4f}, {spent:.0f} s", flush=True)
    curve = tables.Table("curve", f"LoRA of rank {RANK} by peft {peft.__version__}, rate {lr:g}", "update", [
        tables.Column(name, name.replace("_", " "), unit, 4, tables.MEASURED)
        for name, unit in (("training_loss", ""), ("validation_loss", ""), ("seconds", "s"))])
    for step, *values in evaluations:
        curve.row(str(step), *values)
    total = tables.Table("total", "What it trains and takes", "of", [tables.Column("value", "value", "", 0, tables.MEASURED)])
    total.row("parameters", float(parameters))
    total.row("active parameters", float(sum(p.numel() for p in active)))
    total.row("resident bytes at most", 1024.0 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    total.row("seed", float(settings["seed"]))
    tables.Tables([curve, total], program.provenance()).write(out, {"lr": lr, "init": settings["init"]})


def main(words):
    parser = argparse.ArgumentParser(prog="smollm.py", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
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
        lora(options.run, options.lr, options.out)


if __name__ == "__main__":
    errors.run(main)
