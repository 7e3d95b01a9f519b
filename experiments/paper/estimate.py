"""How long the trainings of a plan take: here, from a few measured steps of each network and the operations of BCD's,
and on a rented GPU, simulated by bcd plan."""
import dataclasses
import math

import numpy as np

import program
import store
from cases import OF_METHOD
from tables import CLOSED_FORM, SIMULATED, Column, Table, Tables
from trainings import ONLY_BCD, number_of

RENTED = {"rtx4090": "RTX 4090", "a100": "A100"}  # by the names of bcd plan
PROBE_STEPS = 3


@dataclasses.dataclass
class Probe:
    """A few steps of a training: what they took, and what the training consists of."""
    spec: str
    step_s: float
    steps_per_epoch: float  # of all of the data
    batch: int

    def updates(self, flags):
        """Of a training with these flags, as bcd train counts them: an epoch is a pass over the part of the data that a
        submodel uses, and the last update is a whole one."""
        if "epochs" not in flags:
            return number_of(flags, "steps", 0)
        used = max(1, round(number_of(flags, "fraction", 1.0) * self.steps_per_epoch * self.batch))
        return max(1, math.ceil(number_of(flags, "epochs", 0.0) * used / self.batch - 1e-9))


def format_time(seconds):
    """A time of which seconds do not matter once it has minutes, as in 2 h 05 min."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60:02d} min"


def network_of(flags):
    """What decides how long a step takes, and how many there are in an epoch."""
    return tuple(flags.get(name) for name in ("model", "init", "data", "limit", "context", "batch", "accumulate",
                                              "recompute", "precision", "device"))


def probe(flags):
    """Trains a few steps, of which the first is not timed.  Refuses what bcd train refuses."""
    short = {name: value for name, value in flags.items() if name not in ("steps", "epochs", "switch-every")}
    with program.trained(**short | {"steps": PROBE_STEPS, "eval-samples": 1}) as file:
        seconds = file["curve/seconds"][:]
        return Probe(store.attribute(file["model"], "spec"), float(seconds[-1] - seconds[0]) / (len(seconds) - 1),
                     store.attribute(file["data"], "steps_per_epoch"), store.attribute(file["settings"], "batch"))


def operations_share(row, known):
    """What a step of a row computes, as a fraction of a full update."""
    if row.submodels == 1:
        return 1.0
    flags = row.flags
    return program.operations_share(known.spec, row.submodels, flags.get("partition", ""),
                                    flags.get("always-active", ""), number_of(flags, "correct-above", 0.0))


def rented(row, known, gpu, price):
    """Simulates a step: its seconds, NaN if the training does not fit, and the dollars of a second (NaN: not known)."""
    flags = row.flags
    recompute, is_bcd = bool(flags.get("recompute")), row.submodels > 1
    table = program.ask_once("plan", *program.flags_of(
        model=known.spec, gpu=gpu, per_node=1, batch=known.batch, optimizer=flags["optimizer"],
        micro_batches=flags.get("accumulate", 1), method="bcd" if is_bcd else "full",
        precision=flags.get("precision", "fp32"), recompute=recompute, no_recompute=not recompute,
        submodels=row.submodels if is_bcd else None, momentum=flags.get("momentum"), price=price or None))["plan"]
    method = program.way(row.submodels)
    return table.value(method, "step") / 1e3, table.value(method, "dollars") / table.value(method, "gpu_hours") / 3600


def estimate(plan, rows, price):
    """Prints what each of the rows takes, and together; returns the Tables of NAME-PRESET-estimate.h5."""
    table = Table("estimate", "What the trainings would take on a rented GPU", "training", [
        Column("steps", "updates", "", 0, CLOSED_FORM)] + [
        Column(f"{gpu}_{unit}", name, unit_name, 2, SIMULATED)
        for gpu, name in RENTED.items() for unit, unit_name in (("hours", "h"), ("dollars", "$"))])
    probes, here = {}, 0.0
    print("timing a few steps of each network; BCD's time is estimated by operations", flush=True)
    for row in rows:
        network = network_of(row.flags)
        if network not in probes:
            probes[network] = probe(full_update(row.flags))
        known = probes[network]
        steps = known.updates(row.flags)
        values = [float(steps)]
        for gpu in RENTED:
            step_s, rate = rented(row, known, gpu, price)
            values += [steps * step_s / 3600, steps * step_s * rate]
        seconds = steps * known.step_s * operations_share(row, known)
        here += seconds
        table.row(row.name, *values)
        print(f"  {row.name:<52} {steps:>9} steps {format_time(seconds):>14}", flush=True)
    columns = [[cell.value for cell in table.column(column.name)] for column in table.columns[1:]]
    table.row("together", math.nan, *(math.fsum(value for value in column if value > 0) for column in columns))
    if any(cell.is_empty for row in table.rows for cell in row[1:]):
        table.note("A training without a time does not fit the GPU's memory, and is not counted together.")
    print(f"together about {format_time(here)} on this machine, evaluations not counted"
          + ("" if plan.asked.yes else "; start it with --yes"))
    for gpu, name in RENTED.items():
        hours, dollars = (table.value("together", f"{gpu}_{unit}") for unit in ("hours", "dollars"))
        too_large = sum(math.isnan(cell.value) for cell in table.column(f"{gpu}_hours"))
        text = f"on one {name}, simulated: {hours:.3g} hours"
        if dollars > 0:
            text += f", {dollars:.2f} dollars at {dollars / hours:.2f} an hour"
        print(text + (f"; trainings that do not fit its memory, not counted: {too_large}" if too_large else ""))
    return Tables([table], program.provenance() | {"seed": np.uint64(plan.asked.flags.get("seed", 1))})


def full_update(flags):
    """The flags without those of BCD."""
    bcd = {*OF_METHOD, *ONLY_BCD} - {"lr"}
    return {name: value for name, value in flags.items() if name not in bcd} | {"submodels": 1, "always-active": "none"}
