"""Figure 3, pre-inference: the outputs of the frozen prefix are computed once in a phase and kept.  The figure has no
numbers.  Here a cycle of long phases is trained without --cache and with it, and pre-inference by all ranks is
simulated, and measured on the ranks that this machine has."""
import math
import os
from dataclasses import dataclass

import program
import store
import study
import timing_measured
import trainings
from cases import differs
from errors import Refused
from networks import Network
from tables import MEASURED, MIB, SIMULATED, Cell, Column, Table

THIRDS = 3


@dataclass(frozen=True)
class LongPhase:
    network: Network
    samples: int
    phase_epochs: int


SMOKE = [LongPhase(Network("gpt:layers=4,width=16,heads=2,context=16", "text", "adam", 8), 64, 2)]
LAPTOP = [LongPhase(Network("gpt:layers=10,width=96,heads=4,context=64", "text", "adam", 16), 1600, 4),
          LongPhase(Network("resnet20", "synthetic", "sgd", 128), 3840, 4)]


def cycle(options, phase, **kept):
    """A study.Training of a cycle, evaluated on the whole split."""
    network = phase.network
    flags = {"model": network.model, "data": network.data, "optimizer": network.optimizer, "batch": network.batch,
             "lr": trainings.RATES[network.optimizer], **trainings.PINNED, "submodels": THIRDS,
             "limit": phase.samples, "threads": 1, "epochs": THIRDS * phase.phase_epochs,
             "switch-every": f"{phase.phase_epochs}e", "eval-samples": 0}
    asked = {name: options.flags[name] for name in ("device", "precision") if name in options.flags}
    with program.trained(**flags, **asked, **kept) as file:
        return study.read_run(file.filename)


def table(options):
    phases = SMOKE if options.preset == "smoke" else LAPTOP
    found = Table("figure3", "Figure 3: the frozen prefix, computed or kept", "outputs of the prefix", [
        Column("seconds", "a cycle", "s", 1, MEASURED), Column("share", "of computed", "", 3, MEASURED),
        Column("peak", "peak memory", "MiB", 1, MEASURED), Column("loss", "valid. loss", "", 6, MEASURED)])
    for phase in phases:
        computed, kept = cycle(options, phase), cycle(options, phase, cache="1G")
        if computed["valid_loss"] != kept["valid_loss"] or differs(computed, kept):
            raise Refused(f"{phase.network.model}: the losses with --cache differ from those without")
        for made, how in ((computed, "computed"), (kept, "kept")):
            found.row(f"{phase.network.model} {how}", made["seconds"], made["seconds"] / computed["seconds"],
                      made["peak_total"] / MIB, made["valid_loss"])
    found.note(
        f"BCD-1/3, a cycle of three phases of {phases[0].phase_epochs} epochs, one thread, without evaluations.  The first "
        "epoch of a phase computes the outputs that the others reuse.  The losses have the same bits.")
    return found


# ---- pre-inference by all ranks -----------------------------------------------------------------

# In which placements, and what the ranks above and below the active blocks do there.
PLACEMENTS = {"virtual": "each rank holds a part of the prefix", "plain": "the prefix is on ranks that otherwise wait"}


def simulated():
    """Pre-inference by more and more ranks in each placement, as `bcd plan` simulates it."""
    found = None
    for placement, what in PLACEMENTS.items():
        plan = program.ask_once("plan", *program.flags_of(model="G-1.6B", gpu="rtx4090", pipeline=8, placement=placement,
                                                          submodels=THIRDS, cache=True, equal_work=True))
        answer = plan["inference"]
        found = found or Table("inference", "Figure 3: pre-inference of a million sequences, BCD-1/3 of G-1.6B on 8 RTX 4090",
                               "placement: ranks that infer", answer.columns, notes=list(answer.notes))
        for label, cells in zip(answer.labels, answer.rows):
            found.row(f"{placement}: {label}", *cells)
        found.note(f"{placement}: {what}.")
    return found


@dataclass(frozen=True)
class Inferred:
    """Samples that are inferred before each phase of a cycle, in updates of `batch` samples in `parts`."""
    model: str
    samples: int
    batch: int
    parts: int
    repeats: int


INFERRED_SMOKE = Inferred("gpt:layers=6,width=32,heads=2,context=16", 32, 8, 4, 2)
INFERRED = Inferred("gpt:layers=6,width=256,heads=4,context=128", 128, 8, 4, 5)
RANKS = 1, 2, 4


def seconds_here(what, ranks, processes):
    """Trains a cycle, in which ranks infer before each phase; returns the seconds of all pre-inferences."""
    with program.trained(ranks if processes else 0, model=what.model, data="text", limit=what.samples, batch=what.batch,
                         accumulate=what.parts, submodels=THIRDS, switch_every="1e", epochs=THIRDS, cache="1G",
                         pre_infer=True, threads=1, placement="plain",
                         pipeline="mpi" if processes else f"local:{ranks}", eval_every=10**6) as file:
        return store.attribute(file["curve"], "inference_seconds")


def seconds_simulated(what, ranks):
    """What `bcd plan` says of the same on processors of this machine; NaN where it has fewer."""
    if ranks > len(os.sched_getaffinity(0)):
        return math.nan
    found = program.ask("plan", *program.flags_of(
        model=what.model, gpu="cpu", per_node=ranks, pipeline=ranks, placement="plain", submodels=THIRDS, batch=what.batch,
        micro_batches=what.parts, method="bcd", cache=True))["inference"]
    phase = sum(found.value(str(ranks), part) for part in ("compute", "gather")) * what.samples / 1e6
    return THIRDS * (phase + found.value(str(ranks), "parameters"))


def measured(options):
    """Pre-inference by the ranks of this machine, as threads and as processes, and its simulation; all take turns."""
    what = INFERRED_SMOKE if options.preset == "smoke" else INFERRED
    table = Table("inference_measured", f"Figure 3: pre-inference here, BCD-1/3 of {what.model}", "ranks that infer", [
        Column("threads", "threads", "s", 3, MEASURED), Column("mpi", "MPI", "s", 3, MEASURED),
        Column("simulated", "simulated", "s", 3, SIMULATED)])
    turns = []
    for _ in range(what.repeats):
        turns.append({ranks: (seconds_here(what, ranks, False),
                              seconds_here(what, ranks, True) if program.has_processes() else math.nan,
                              seconds_simulated(what, ranks)) for ranks in RANKS})
    for ranks in RANKS:
        found = [[Cell(value, source) for value, source in zip(turn[ranks], (MEASURED, MEASURED, SIMULATED))]
                 for turn in turns]
        table.row(str(ranks), *(timing_measured.median(cells) for cells in zip(*found)))
    table.note(f"{what.samples} samples before each of the two phases of a cycle that have a prefix, one thread a rank; "
               f"{len(os.sched_getaffinity(0))} processors.  Medians of {what.repeats} turns.  Simulated by bcd plan "
               "--gpu cpu, whose rates are measured in each turn, where there is a processor for each rank.")
    return table


def inference(options):
    """`bcd experiment inference`."""
    return [simulated(), measured(options)], {}
