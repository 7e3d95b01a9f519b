"""Steps measured here, by `bcd trace`: each submodel against the full update, and pipelines of threads against their
simulation from block times."""
import math
import os
import statistics
import time

import networks
import program
import steps
from estimate import format_time
from networks import Network
from tables import CLOSED_FORM, DEVIATION, MEASURED, NONE, SIMULATED, Cell, Column, Table

THIRDS = 3
SMOKE = [Network("gpt:layers=10,width=32,heads=2,context=32", "text", "adam", 8)]
LAPTOP = [Network("gpt:layers=10,width=96,heads=4,context=64", "text", "adam", 16),
          Network("resnet20", "synthetic", "sgd", 128)]


def is_smoke(options):
    return options.preset == "smoke"


def trace(options, network, threads, **flags):
    few = 3 if is_smoke(options) else None
    flags = networks.flags(options, network, threads=threads, steps=few, **flags)
    return program.ask("trace", *program.flags_of(**flags))


# ---- submodels on one stage -----------------------------------------------------------------------


def share(k, ms, cached_ms, full_ms):
    return [ms, ms / full_ms, steps.operations_ratio(k, THIRDS), cached_ms, cached_ms / full_ms,
            steps.operations_ratio(k, THIRDS, cached=True)]


def shares(options, network, number):
    """Returns the table, the blocks of the smallest submodel, and the provenance."""
    title = f"A step here, of each submodel: {network.model[:80]}, batch {network.batch}"
    table = Table(f"measured{number}", title, "update", [
        Column("step", "step", "ms", 2, MEASURED), Column("share", "of full", "", 3, MEASURED),
        Column("theory", "theory", "", 3, CLOSED_FORM), Column("cached", "cached", "ms", 2, MEASURED),
        Column("cached_share", "of full", "", 3, MEASURED), Column("cached_theory", "theory", "", 3, CLOSED_FORM)])
    answer = trace(options, network, 1, submodels=THIRDS)
    plain, cached = answer["steps"], trace(options, network, 1, submodels=THIRDS, cache="1G")["steps"]
    full_ms = plain.value("full update", "whole")
    table.row("full", full_ms)
    for k in range(1, THIRDS + 1):
        label = f"submodel {k}"
        table.row(f"1/3 {label}", *share(k, plain.value(label, "whole"), cached.value(label, "whole"), full_ms))
    mean = "mean, most memory"
    table.row("1/3 mean", *share(0, plain.value(mean, "whole"), cached.value(mean, "whole"), full_ms))
    table.note(
        "One thread; submodels balanced by parameters.  \"cached\": the outputs of the prefix come from the cache.  The "
        "theory assumes equal submodels without embedding, head and optimizer; convolutions of lower blocks cost more per "
        "parameter.")
    blocks = [sum(cell.value == "active" for cell in answer[f"submodel_{k}"].column("part")) for k in range(1, THIRDS + 1)]
    return table, min(blocks), answer.provenance


# ---- pipelines ------------------------------------------------------------------------------------


def placements(submodels, fewest):
    """The placements and ranks to measure.  Virtual stages need a block of each submodel for each rank."""
    ranks = [ranks for ranks in (1, 2) if ranks <= len(os.sched_getaffinity(0))]
    virtual = [each for each in ranks if each > 1 and submodels > 1 and fewest >= each]
    return [("plain", each) for each in ranks] + [("virtual", each) for each in virtual]


def pipelines(options, network, number, fewest):
    """fewest: the blocks of the smallest submodel."""
    table = Table(
        f"pipeline{number}", f"Pipelines of threads, measured and simulated: {network.model[:70]}, batch {network.batch}",
        "step", [Column("ranks", "ranks", "", 0, NONE), Column("micro_batches", "micro-b.", "", 0, NONE),
                 Column("measured", "measured", "ms", 2, MEASURED), Column("simulated", "simulated", "ms", 2, SIMULATED),
                 Column("deviation", "off", "", 1, NONE, DEVIATION)])
    for submodels in (1, THIRDS):
        for micro_batches in (1, 4) if is_smoke(options) else (1, 2, 4, 8):
            for placement, ranks in placements(submodels, fewest):
                found = trace(options, network, ranks, submodels=submodels, accumulate=micro_batches,
                              pipeline=f"local:{ranks}", placement=placement)["pipeline"]
                measured, simulated = (found.column(name)[-1].value for name in ("measured", "simulated"))
                table.row(f"{'BCD-1/3' if submodels > 1 else 'full'} {placement}", ranks, micro_batches, measured, simulated,
                          simulated / measured - 1)
    table.note(
        "Simulated from the block times of one stage on one thread, with as large micro-batches; 1F1B; a rank per thread.  "
        "Messages between threads take no time in the simulation.")
    return table


# ---- repeats --------------------------------------------------------------------------------------


def median(cells):
    """The median of a cell's values, and if they were measured their standard deviation; an empty cell stays so."""
    values = [cell.value for cell in cells]
    if math.isnan(values[0]):
        return cells[0]
    return Cell(statistics.median(values), cells[0].source,
                statistics.stdev(values) if cells[0].source == MEASURED else math.nan)


def combine(tables):
    """The first of the tables with the medians of all, which measure the same."""
    found = tables[0]
    found.rows = [[median(cells) for cells in zip(*rows)] for rows in zip(*(table.rows for table in tables))]
    found.note(
        f"Each number is the median of {len(tables)} measurements, with their standard deviation.  The whole table is "
        "measured before it is repeated; a measurement is the fastest of a few steps.")
    last = found.columns[-1]
    if last.kind == DEVIATION:
        off = statistics.fmean(abs(cell.value) for cell in found.column(last.name))
        found.note(f"Mean absolute deviation {100 * off:.1f} %.")
    return found


def measure(options):
    """Returns the tables of all networks, and the provenance of what was measured.  All tables of a network are measured
    in each repeat, so that a disturbance of the machine affects one repeat, and both sides of a comparison in it."""
    found, provenance = [], None
    repeats = 2 if is_smoke(options) else 5
    for number, network in enumerate(networks.chosen(options, SMOKE if is_smoke(options) else LAPTOP), 1):
        start, measured = time.monotonic(), []
        for repeat in range(1, repeats + 1):
            stage, fewest, provenance = shares(options, network, number)
            measured.append((stage, pipelines(options, network, number, fewest)))
            left = (time.monotonic() - start) / repeat * (repeats - repeat)
            if not options.quiet:
                print(f"{network.model}: {repeat} of {repeats} repeats, about {format_time(left)} left", flush=True)
        found += [combine(tables) for tables in zip(*measured)]
    return found, provenance
