"""Trainings with known curves: losses that fall like exp(-rate step), and four evaluations."""
import copy
import math
import shutil

import h5py
import numpy as np

import compare
import schema
import study
from cases import Cases

STEPS = 200
LATER = "2026-11-26T00:00:00Z"  # after the protocol was registered
MIB = 1024.0**2
GPT = "gpt:layers=2,width=64,heads=2,context=32"
SETTINGS = {
    "accumulate": 1, "always-active": "", "augment": 0, "auto-max": 10000, "auto-min": 100, "auto-tolerance": 0.01,
    "auto-window": 50, "batch": 32, "beta1": 0.0, "beta2": 0.0, "cache": 0, "clip": 0.0, "context": 0, "correct-above": 0.0,
    "data": "synthetic", "data-dir": "", "decay": "all", "device": "cpu", "device-cache": 0, "epochs": 4.0, "eps": 0.0,
    "eval-every": 50, "eval-samples": 0, "final-lr": 0.0, "fraction": 1.0, "frozen-norm": "running", "init": "",
    "keep-last": 0, "keep-state": 0, "limit": 0, "lr": 0.1, "method": "bcd", "model": "resnet8", "momentum": 0.9,
    "optimizer": "sgd", "order": "cyclic", "partition": "", "precision": "fp32", "recompute": 0, "save-every": 0,
    "schedule": "constant", "seed": 1, "step-every": 10000, "step-factor": 0.1, "steps": 0, "submodel-lr": "",
    "submodels": 1, "switch-every": "20", "switch-warmup": 0, "threads": 1, "valid": "", "warmup": 0, "weight-decay": 1e-5}
PROVENANCE = {"commit": "abc", "command": "bcd train --note \"<script>&\"", "compiler": "gcc", "flags": "-O2",
              "cpu": "a processor", "device": "cpu", "precision": "fp32", "started": "2026-01-01T00:00:00Z", "threads": 2,
              "ranks": 0, "seed": 1, "wall": 30.0}


def evaluations(steps, losses, accuracies=None):
    losses = np.array(losses, float)
    return {"step": np.array(steps, np.uint64), "loss": losses, "perplexity": np.exp(losses),
            "accuracy": np.array(losses if accuracies is None else accuracies, float), "seconds": np.zeros(len(losses))}


def curve(losses, submodels=1, seconds=None, steps=None):
    steps = np.arange(1, len(losses) + 1) if steps is None else np.array(steps)
    return {"step": steps.astype(np.uint64), "samples": (32 * steps).astype(np.uint64), "loss": np.array(losses, float),
            "lr": np.full(len(steps), 0.1), "submodel": ((steps - 1) // 20 % submodels).astype(np.int32),
            "seconds": steps / 10 if seconds is None else np.array(seconds, float)}


def training(model="resnet8", images=True, submodels=1, rate=0.02, seed=1, **columns):
    """Returns a training. `columns` are those of the study, or settings where a study has no such column."""
    peaks = dict.fromkeys(schema.ROLES, 0.0) | {"parameters": 3 * MIB, "gradients": 3 * MIB / submodels,
                                              "state": 3 * MIB / submodels, "activations": 5 * MIB,
                                              "total": 8 * MIB + 6 * MIB / submodels}
    row = {name: math.nan if kind == schema.REAL else "" if kind == schema.TEXT else 0 for name, kind, _, _ in schema.COLUMNS}
    total = 20.0 if submodels > 1 else 30.0
    row.update({
        "row": f"{'images' if images else 'text'}-{submodels}", "model": model, "input": "images" if images else "tokens",
        "data": "synthetic" if images else "text", "optimizer": "sgd", "method": "BCD" if submodels > 1 else "full",
        "submodels": submodels, "imbalance": 0.25 if submodels > 1 else 0.0, "order": "cyclic", "switching": "20",
        "parameters": 77850, "batch": 32, "lr": 0.1, "weight_decay": 1e-5, "fraction": 1.0, "steps": STEPS, "epochs": 4.0,
        "accuracy": 0.7251, "valid_loss": 0.71, "perplexity": math.exp(0.71), "closed_form": 3 * MIB * (1 + 2 / submodels),
        "seconds": total, "wall": total + 4, "rate": STEPS * 32 / total, "seed": seed, "threads": 2, "device": "cpu",
        "cpu": "a processor", "precision": "fp32", "checksum": "00ab", "commit": "abc", "started": "2026-01-01T00:00:00Z",
        "status": study.FINISHED, **{f"peak_{role}": size for role, size in peaks.items()}})
    settings = SETTINGS | {"model": model, "data": row["data"], "submodels": submodels, "seed": seed}
    for name, value in columns.items():
        flag = name.replace("_", "-")
        (row if name in row else settings)[name if name in row else flag] = value
        if name in row and flag in settings:
            settings[flag] = value
    steps = np.arange(1, STEPS + 1)
    switches = {"step": np.array([0, 20], np.uint64), "submodel": np.array([0, 1 % submodels], np.int32),
                "phase": np.array([0, 1], np.uint64), "reason": np.array(["start", "after 20 steps"], object),
                "earlier_loss": np.array([math.nan, 2.5]), "window_loss": np.array([math.nan, 2.25])}
    return study.Training(
        row, settings, dict(PROVENANCE), "resnet:depth=8,width=16,classes=10,size=32,fused=1",
        curve(3 * np.exp(-rate * steps), submodels, total * steps / STEPS),
        evaluations([50, 100, 150, 200], [1 - 0.07 * e for e in range(4)], [0.5 + 0.07 * e for e in range(4)]), switches)


def pairs():
    """Returns a full update and BCD-1/3 of a ResNet and of a GPT, all converged."""
    made = [training(rate=0.02), training(submodels=3, rate=0.01), training(GPT, False, 1, 0.005),
            training(GPT, False, 3, 0.008)]
    compare.converge(made)
    return made


def like(other, **columns):
    """Returns the same training with other columns of the study, or other settings."""
    made = copy.deepcopy(other)
    made.__dict__.pop("operations", None)  # these were counted for the other training
    for name, value in columns.items():
        flag = name.replace("_", "-")
        if name in made.row:
            made.row[name] = value
        if name not in made.row or flag in made.settings:
            made.settings[flag] = value
    return made


def case_of(trainings):
    return Cases(trainings).cases[0]


def same(a, b):
    """Whether two values are equal, where NaN equals NaN."""
    return a == b or (isinstance(a, float) and isinstance(b, float) and math.isnan(a) and math.isnan(b))


def unfinished(run, path):
    """Copies a run.h5, in a new directory, as that of a training that goes on.  Returns where it is."""
    path.parent.mkdir()
    shutil.copyfile(run, path)
    with h5py.File(path, "r+") as file:
        file.attrs["status"] = "running"
    return path
