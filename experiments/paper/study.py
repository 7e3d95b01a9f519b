"""Trainings, from run.h5 and from files of many ("bcd study" in experiments/results/README.md), and to such files.

    trainings = read(["runs/full/run.h5", "validity.h5"])
    write("validity.h5", trainings)                         compare.converge(trainings) fills what is computed

A Training has the columns of /table by name, training["steps"], and setting("lr"), provenance["cpu"], and curves:
training.curve["loss"], .evaluation["accuracy"], .switches["reason"]: arrays, by the names in the file."""
import functools
import math
import os
import re

import numpy as np

import curves
import program
import store
from errors import Refused
from schema import ADDED_FLAGS, COLUMNS, NEEDED, OPTIONAL, PARTS, PROVENANCE, REAL, ROLES, TEXT, TEXT_FLAGS
from tables import MIB

FORMAT, VERSION = "bcd study", 2
RUN_FORMAT, RUN_VERSION = "bcd run", 1
OURS = "full", "BCD", "offload"  # methods of bcd train
FINISHED, DIVERGED = ENDED = "finished", "diverged"  # the status of a run that does not go on
# Columns that older files lack, with what these have there: no training that had diverged was kept.
ADDED_COLUMNS = {"status": FINISHED, "experiment": ""}
TRAINED = "parameters", "gradients", "state"  # roles: what the paper counts as memory
SEVERAL = " then "  # between the computers, or the commits, of a training that went on elsewhere


class Training:
    """A training; see the head of this file.  file: the study that it was read from, "" of a run."""

    file = ""

    def __init__(self, row, settings, provenance, spec, curve, evaluation, switches):
        self.row, self.settings, self.provenance, self.spec = row, settings, provenance, spec
        self.curve, self.evaluation, self.switches = curve, evaluation, switches

    def __getitem__(self, column):
        return self.row[column]

    def setting(self, flag):
        """The value of a flag of bcd train."""
        if flag in self.settings:
            return self.settings[flag]
        return ADDED_FLAGS[flag]

    @property
    def is_finished(self):
        """False of a training that diverged, or that goes on."""
        return self["status"] == FINISHED

    @property
    def has_diverged(self):
        return self["status"] == DIVERGED

    @property
    def is_images(self):
        return self["input"] == "images"

    @property
    def is_full(self):
        """A full update that is not offloaded, of all parameters."""
        return self["method"] == "full"

    @property
    def is_offload(self):
        return self["method"] == "offload"

    @property
    def is_bcd3(self):
        """BCD in three submodels on all of the data from random weights, as in Table 2."""
        return self["submodels"] == 3 and self.setting("fraction") >= 1 and not self.setting("init")

    @property
    def peak(self):
        """MiB of all roles."""
        return self["peak_total"] / MIB

    @property
    def trained_memory(self):
        """Peak MiB of parameters, gradients and optimizer state."""
        return sum(self[f"peak_{role}"] for role in TRAINED) / MIB

    @property
    def computer(self):
        return self.provenance.get("accelerator") or self.provenance["cpu"]

    @property
    def ranks(self):
        """Over which it ran, (--pipeline, --replicas, the number of ranks), or None; older trainings lack these flags, or
        have empty ones, and their number of ranks is 0."""
        pipeline = self.settings.get("pipeline") or "none"
        return None if pipeline == "none" else (pipeline, self.settings["replicas"], self.provenance.get("ranks", 0))

    @property
    def clock(self):
        """What seconds depend on beside what is computed."""
        return self.computer, self["threads"], self.ranks

    def times_comparable(self, other):
        return self.clock == other.clock and SEVERAL not in self.computer

    @functools.cached_property
    def operations(self):
        """Floating point operations done after each row of the curve; None of what another program trained, and when the
        settings do not make the submodels of the curve."""
        if self["method"] not in OURS:
            return None
        program.find()  # a missing program is refused: it says nothing of the settings
        try:
            each = program.operations(self.spec, self["submodels"], self.setting("partition"), self.setting("always-active"),
                                      float(self.setting("correct-above")))
        except Refused:
            return None
        submodel = self.curve["submodel"]
        if len(each) != self["submodels"] or not ((submodel >= 0) & (submodel < len(each))).all():
            return None
        return np.cumsum(np.array(each)[submodel] * self["batch"] * np.diff(self.curve["step"].astype(float), prepend=0))

    def thinned(self, updates):
        """The same training with a shorter curve: a row becomes the mean loss over `updates` updates, or fewer at the
        end of a phase, with what else the last of them has.  No row spans two phases."""
        submodel = self.curve["submodel"]
        rows = np.arange(len(submodel))
        phase = np.flatnonzero(np.diff(submodel, prepend=submodel[:1] - 1))  # where each begins
        begin = phase[np.searchsorted(phase, rows, side="right") - 1]
        starts = np.flatnonzero((rows - begin) % updates == 0)
        ends = np.append(starts[1:], len(rows))[:len(starts)]
        curve = {name: values[ends - 1] for name, values in self.curve.items()}
        if len(rows):
            curve["loss"] = np.add.reduceat(self.curve["loss"], starts) / (ends - starts)
        return Training(self.row, self.settings, self.provenance, self.spec, curve, self.evaluation, self.switches)


# ---- a run --------------------------------------------------------------------------------------

def read_run(path):
    """The training of a run.h5, named after its directory."""
    with store.reading(path) as file:
        check_version(file, path, RUN_FORMAT, RUN_VERSION)
        settings, provenance = store.attributes(file["settings"]), of_all_sessions(file)
        model, data = store.attributes(file["model"]), store.attributes(file["data"])
        parts = [curves_of(file[group], columns) for _, group, columns in PARTS]
        memory = store.columns(file["memory"], ("role", "peak"), {"role"})
        peaks = dict(zip(memory["role"], memory["peak"].astype(float)))
        status = store.attribute(file, "status")
        training = Training(run_row(path, status, settings, provenance, model, data, parts), settings, provenance,
                            model["spec"], *parts)
        training.row.update({f"peak_{role}": float(peaks.get(role, math.nan)) for role in ROLES})
        training.row["resident"] = float(store.attribute(file["memory"], "resident", 0)) or math.nan
    check(training, path)
    try:
        training.row["closed_form"] = closed_form(training.spec, training["submodels"], settings, training["precision"])
    except Refused as refused:  # what the program does not know is in the file; it was not typed
        raise Refused(f"{path}: {refused}") from refused
    return training


def of_all_sessions(file):
    """The provenance of a run, with the computers and the commits of all its sessions; a computer has its threads and
    ranks beside it where these differ."""
    provenance = store.attributes(file["provenance"])
    if "sessions" not in file:
        return provenance
    sessions = store.columns(file["sessions"], [name for name in ("computer", "commit", "threads", "ranks")
                                                if name in file["sessions"]], {"computer", "commit"})
    computers = sessions["computer"]
    for column in ("threads", "ranks"):
        counts = sessions[column].tolist() if column in sessions else []
        if len(set(counts)) > 1:
            computers = [f"{computer}, {count} {column if count != 1 else column[:-1]}"
                         for computer, count in zip(computers, counts)]
        if column == "ranks" and any(counts[-1:]):
            provenance["ranks"] = counts[-1]
    computer = "accelerator" if provenance.get("accelerator") else "cpu"
    for name, found in ((computer, computers), ("commit", sessions["commit"])):
        if len(set(found)) > 1:
            provenance[name] = SEVERAL.join(dict.fromkeys(found))
    return provenance


def run_row(path, status, settings, provenance, model, data, parts):
    """The columns of a run, those that are computed still empty.  One that diverged has nothing at its end."""
    curve, evaluation, _ = parts
    submodels, is_tokens = model["submodels"], "vocabulary=" in model["spec"]
    offload = settings.get("method") == "offload"
    row = {name: math.nan if kind == REAL else "" if kind == TEXT else 0 for name, kind, _, _ in COLUMNS}
    row.update({name: provenance[name] for name in ("device", "cpu", "precision", "commit", "started", "threads", "wall")})
    row.update({"row": directory_name(path), "status": status, "model": settings["model"],
                "input": "tokens" if is_tokens else "images", "data": data["name"], "optimizer": settings["optimizer"],
                "method": "BCD" if submodels > 1 else "offload" if offload else "full", "submodels": submodels,
                "imbalance": model["imbalance"], "order": settings["order"], "switching": settings["switch-every"],
                "parameters": model["parameters"], "batch": settings["batch"], "lr": settings["lr"],
                "weight_decay": settings["weight-decay"], "fraction": settings["fraction"], "seed": settings["seed"],
                "checksum": f"{data['checksum']:016x}"})
    done = int(curve["step"][-1]) if len(curve["step"]) else 0
    row["steps"] = settings["steps"] if status == DIVERGED else done
    row["epochs"] = row["steps"] / data["steps_per_epoch"]
    if done:
        targets = int(re.search(r"context=(\d+)", model["spec"])[1]) if is_tokens else 1
        seconds = float(curve["seconds"][-1])
        row["seconds"] = seconds
        row["rate"] = int(curve["samples"][-1]) * targets / seconds if seconds else math.nan
    if len(evaluation["step"]) and status != DIVERGED:
        row.update({"valid_loss": float(evaluation["loss"][-1]), "accuracy": float(evaluation["accuracy"][-1]),
                    "perplexity": float(evaluation["perplexity"][-1])})
    return row


def closed_form(spec, submodels, settings, precision):
    """Bytes of parameters, gradients and optimizer state in equal submodels, as the program counts them."""
    optimizer, always_active = settings["optimizer"], settings.get("always-active") if submodels > 1 else None
    return program.memory(optimizer, submodels, model=spec, precision=precision, always_active=always_active or None,
                          momentum=settings["momentum"] if optimizer == "sgd" else None)["equal_parts"]


def directory_name(path):
    """"runs/a/run.h5" -> "a"; what of it is no UTF-8 could not be written."""
    return store.text(os.fsencode(os.path.basename(os.path.dirname(path)) or path))


def curves_of(group, columns):
    """The columns of a curve; texts as an array of objects, to be indexed alike."""
    found = store.columns(group, columns, {name for name, (kind, _) in columns.items() if kind == TEXT})
    return {name: np.array(values, dtype=object) if isinstance(values, list) else values for name, values in found.items()}


def check_version(file, path, kind, version):
    if store.attribute(file, "format", "") != kind:
        raise Refused(f"{path}: neither a study (validity.h5) nor a run (run.h5)")
    found = store.attribute(file, "version")
    if found != version:
        raise Refused(f"{path}: version {found}; this program reads version {version}; remove the file, and the same "
                      "bcd experiment writes it from its trainings in rows/")


# ---- a study ------------------------------------------------------------------------------------

def read_study(path):
    """The trainings of a file of many."""
    with store.reading(path) as file:
        check_version(file, path, FORMAT, VERSION)
        table = read_table(file["table"])
        rows = len(table["row"])
        texts = {name for name, kind in PROVENANCE.items() if kind == TEXT}
        settings, provenance = ([dict(zip(columns, row)) for row in zip(*columns.values())] if rows else [] for columns in
                                (read_columns(file, "settings"), read_columns(file, "provenance", texts)))
        specs = store.column(file["curves"], "spec") if rows else []
        parts = [read_part(file, group, columns, rows) for group, _, columns in PARTS]
    if not len(settings) == len(provenance) == len(specs) == rows:
        raise Refused(f"{path}: /settings, /provenance and /table have different numbers of rows")
    trainings = [Training(dict(zip(table, row)), *rest) for row, *rest in
                 zip(zip(*table.values()), settings, provenance, specs, *parts)]
    for training in trainings:
        check(training, path)
        training.file = str(path)
    return trainings


def read_table(group):
    found = store.columns(group, [name for name, _, _, _ in COLUMNS if name in group or name not in ADDED_COLUMNS],
                          {name for name, kind, _, _ in COLUMNS if kind == TEXT})
    return {name: [value] * len(found["row"]) for name, value in ADDED_COLUMNS.items()} | {
        name: plain(values) for name, values in found.items()}


def read_columns(file, group, texts=None):
    found = store.columns(file[group], file[group], texts) if group in file else {}
    return {name: plain(values) for name, values in found.items()}


def plain(values):
    """Of numpy's numbers, Python's."""
    return values if isinstance(values, list) else values.tolist()


def read_part(file, group, kinds, rows):
    """The curves of all trainings are in one data set for each column, one after the other."""
    columns = curves_of(file[group], kinds)
    counts = store.column(file["curves"], f"{group}_rows", texts=False) if rows else np.zeros(0, np.uint64)
    ends = np.cumsum(counts.astype(np.int64))
    length = len(columns["step"])
    if (ends[-1] if rows else 0) != length:
        raise ValueError(f"/curves: {ends[-1] if rows else 0} rows, and {group} has {length}")
    return [{name: values[end - int(count):end] for name, values in columns.items()} for end, count in zip(ends, counts)]


def write(path, trainings):
    """Writes a study, or leaves the old file as it was, also where the new one could not be read."""
    for training in trainings:
        check(training, path)
    with store.writing(path, FORMAT, VERSION) as file:
        store.set_attributes(file, {"convergence": curves.RULE})
        scale = write_table(file.create_group("table"), trainings)
        links = file.create_group("curves")
        for group, name, columns in PARTS:
            write_part(file.create_group(group), links, scale, [getattr(t, name) for t in trainings], group, columns)
        store.write(links, "spec", [t.spec for t in trainings], scale=scale)
        if trainings:
            write_settings(file.create_group("settings"), scale, trainings)
            write_provenance(file.create_group("provenance"), scale, trainings)


def write_table(group, trainings):
    scale = None
    for name, kind, unit, what in COLUMNS:
        values = [t[name] for t in trainings]
        data = store.write(group, name, values if kind == TEXT else np.array(values, dtype=kind), unit, scale)
        store.set_attributes(data, {"what": what})
        scale = scale or data
    return scale


def write_part(group, links, scale, parts, name, columns):
    counts = np.array([len(part["step"]) for part in parts], dtype=np.uint64)
    store.write(links, f"{name}_first", np.cumsum(counts, dtype=np.uint64) - counts, scale=scale)
    store.write(links, f"{name}_rows", counts, scale=scale)
    own = None
    for column, (kind, unit) in columns.items():
        values = np.concatenate([part[column] for part in parts]) if parts else np.zeros(0)
        data = store.write(group, column, values.tolist() if kind == TEXT else values.astype(kind), unit, own)
        own = own or data


def write_settings(group, scale, trainings):
    for flag in sorted({flag for t in trainings for flag in t.settings}):
        known = next(t.settings[flag] for t in trainings if flag in t.settings)
        missing = ADDED_FLAGS.get(flag, type(known)())  # of an older training: it did without
        values = [t.settings.get(flag, missing) for t in trainings]
        if isinstance(known, str):
            store.write(group, flag, values, scale=scale)
        else:
            store.write(group, flag, np.array(values, np.float64 if isinstance(known, float) else np.uint64),
                        scale=scale)


def write_provenance(group, scale, trainings):
    for name, kind in PROVENANCE.items():
        values = [t.provenance.get(name, "" if kind == TEXT else 0) if name in OPTIONAL else t.provenance[name]
                  for t in trainings]
        if kind == TEXT:
            store.write(group, name, values, scale=scale)
        else:
            store.write(group, name, np.array(values, kind), "s" if name == "wall" else "", scale)


# ---- both ---------------------------------------------------------------------------------------

def check(training, path):
    """Refuses what can be no training: losses must be finite (a training whose loss is not stops), updates in order."""
    def refuse(what):
        raise Refused(f"{path}: {training['row']}: damaged: {what}")

    if training["submodels"] < 1:
        refuse(f"it has {training['submodels']} submodels")
    if training["steps"] < 0 or training["batch"] < 1:
        refuse(f"it has {training['steps']} updates of {training['batch']} samples")
    check_settings(training.settings, path)
    steps, seconds, loss = (training.curve[name] for name in ("step", "seconds", "loss"))
    wrong = np.flatnonzero(~np.isfinite(loss))
    if len(wrong):
        refuse(f"the loss of update {steps[wrong[0]]} is {loss[wrong[0]]:g}")
    before = np.concatenate([[0], steps[:-1].astype(float)])
    later = np.concatenate([[0], seconds[:-1]]) if len(seconds) else seconds
    wrong = np.flatnonzero(~((steps.astype(float) > before[:len(steps)]) & (seconds >= later)))
    if len(wrong):
        refuse(f"row {wrong[0] + 1} of its curve is before row {wrong[0]}")
    wrong = np.flatnonzero(np.diff(training.evaluation["step"].astype(float)) < 0)
    if len(wrong):
        refuse(f"evaluation {wrong[0] + 2} is before evaluation {wrong[0] + 1}")


def check_settings(settings, path):
    for flag in NEEDED:
        if flag not in settings:
            raise Refused(f"{path}: /settings has no {flag}; the file is damaged")
    for flag, value in settings.items():
        if isinstance(value, str) != (flag in TEXT_FLAGS):
            kind = "text" if flag in TEXT_FLAGS else "number"
            raise Refused(f"{path}: /settings has {value!r} as {flag}, which is no {kind}; the file is damaged")


def read(paths):
    """The trainings of run.h5 files and of studies."""
    return [training for path in paths
            for training in ([read_run(path)] if store.format_of(path) == RUN_FORMAT else read_study(path))]


def read_if_there(path):
    """The trainings of a file; none where there is no such file."""
    return read([path]) if os.path.exists(path) else []


def unfinished(trainings):
    """A line about trainings that are not at their end, or ""."""
    names = [f"{training['row']} ({training['status']})" for training in trainings if not training.is_finished]
    return "not at its end: " + ", ".join(names) if names else ""
