"""`bcd experiment timing`: steps, published, simulated, and measured here."""
import math
import statistics

import cost
import figure03
import published
import step_tables
import steps
import timing_measured
from published import BCD, CACHED, FULL, Step
from tables import CLOSED_FORM, NONE, PERCENT, SIMULATED, Column, Table

SETS = [("Table 4 and section 4.4.2", "table4", ""), ("of these LLaMA alone", "table4", "L-"), ("Table 3", "table3", ""),
        ("Tables 15 and 16", "tables15and16", "")]


def deviations(of):
    """How far the simulator is off, over the published cells that it was not calibrated with.  of: the tables of these
    names."""
    summary = Table("deviations", "How far the simulated steps are off", "published in", [
        Column("cells", "cells", "", 0, NONE), Column("roofline", "roofline", "", 1, SIMULATED, PERCENT),
        Column("calibrated", "calibrated", "", 1, SIMULATED, PERCENT)])
    for label, name, prefix in SETS:
        found = [(roofline.value, calibrated.value) for row, roofline, calibrated, ms in zip(
            of[name].labels, of[name].column("roofline_deviation"), of[name].column("calibrated_deviation"),
            of[name].column("calibrated")) if row.startswith(prefix) and ms.source == SIMULATED
            and not math.isnan(calibrated.value)]
        summary.row(label, len(found), *(statistics.fmean(map(abs, column)) for column in zip(*found)))
    summary.note("Means of absolute deviations over the cells that nothing was calibrated with.")
    return summary


def offload():
    """Offload is paid per step, not per token: the published step of G-1.6B with more micro-batches."""
    found = Table("offload", "Offload is paid per step, not per token: G-1.6B", "tokens a step", [
        Column("offload", "offload", "ms/1k tok.", 1, SIMULATED), Column("resident", "resident", "ms/1k tok.", 1, SIMULATED),
        Column("times", "offload", "x", 2, SIMULATED)])
    offloaded = published.step(3, "G-1.6B", 1)
    resident = Step(0, offloaded.gpu, offloaded.model, offloaded.gpus, FULL, 1)
    for doublings in range(10):
        with_offload, without = (steps.milliseconds(step, steps.CALIBRATED, 2**doublings) for step in (offloaded, resident))
        found.row(f"{2**doublings}k", with_offload, without, with_offload / without)
    found.note(
        "One RTX 4090, calibrated as in Table 4, micro-batches of 1 x 1024 tokens.  \"resident\": the same full update with "
        "all state on the card, which would not fit there.  Table 3 has the first row only.")
    return found


def of_submodels(model, count, method, filled):
    """The steps of all submodels and their mean, over the full update's."""
    gpus = f"1/{published.models()[model]['gpus']}"
    setting = {"setting": steps.CALIBRATED, "micro_batches": steps.FILLED if filled else 1, "filled": filled}
    full_ms = steps.plan(Step(0, "rtx4090", model, gpus, FULL, 1), **setting)["plan"].column("step")[0].value
    answer = steps.plan(Step(0, "rtx4090", model, gpus, method, count), **setting)
    each = [cell.value for cell in answer["submodels"].column("step")]
    return [ms / full_ms for ms in [*each, answer["plan"].column("step")[0].value]]


def submodels():
    """A step of each submodel over that of the full update on the same GPUs: in theory, and simulated."""
    found = Table("submodels", "A step of each submodel, of a full update on the same GPUs", "UFP", [
        Column("theory", "theory", "/ full", 3, CLOSED_FORM), Column("theory_cached", "cached", "/ full", 3, CLOSED_FORM),
        Column("one", "G-1.6B, 1 GPU", "/ full", 3, SIMULATED), Column("one_cached", "cached", "/ full", 3, SIMULATED),
        Column("many", "G-10B, filled", "/ full", 3, SIMULATED), Column("many_cached", "cached", "/ full", 3, SIMULATED)])
    for count in (3, 4, 5):
        shares = [of_submodels(model, count, method, filled)
                  for model, filled in (("G-1.6B", False), ("G-10B", True)) for method in (BCD, CACHED)]
        for k, row in enumerate(zip(*shares), 1):
            is_mean = k > count
            theory = [steps.operations_ratio(0 if is_mean else k, count, cached) for cached in (False, True)]
            found.row(f"1/{count} {'mean' if is_mean else f'submodel {k}'}", *theory, *row)
    found.note(
        "Submodels contiguous in depth, from the input side.  Theory: forward 1, input gradients 1, weight gradients 1, of "
        "equal parts; cached: a prefix that is kept and reused often.  The simulated ones add embedding, head, optimizer "
        "and transfers.")
    return found


def simulated(multiplier):
    """The tables of published steps and their simulation."""
    found = [step_tables.table4(), step_tables.table3(), step_tables.tables15and16()]
    found.append(deviations({table.name: table for table in found}))
    return [*found, submodels(), step_tables.figure4(multiplier), *step_tables.figures6(), offload()]


def make(options):
    multiplier, _ = cost.multiplier(options.multiplier)
    found = simulated(published.cells()["text"]["multiplier_average"] if math.isnan(multiplier) else multiplier)
    measured, provenance = timing_measured.measure(options)
    return [*found, figure03.table(options), *measured], provenance
