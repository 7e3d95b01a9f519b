"""`bcd experiment timing`: steps, published, simulated, and measured here."""
import math
import time

import cost
import deviations
import figure03
import figure04
import figure06
import offload
import published
import results
import run as trainer
import submodels
import table03_04
import tables15_16
import timing_measured


def simulated(multiplier):
    """The tables of published steps and their simulation."""
    found = [table03_04.table4(), table03_04.table3(), tables15_16.table()]
    found.append(deviations.table({table.name: table for table in found}))
    return [*found, submodels.table(), figure04.figure(multiplier), *figure06.figures(), offload.table()]


def run(options):
    started = time.time()
    multiplier, _ = cost.multiplier(options.multiplier)
    found = simulated(published.cells()["text"]["multiplier_average"] if math.isnan(multiplier) else multiplier)
    cycle, status = figure03.table(options)
    if status:
        return status
    measured, provenance = timing_measured.measure(options, trainer.format_time)
    return results.finish(options, "timing", [*found, cycle, *measured], started, provenance)
