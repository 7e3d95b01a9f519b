"""How far the simulator is off: over the published cells that it was not calibrated with."""
import math
import statistics

from tables import NONE, PERCENT, SIMULATED, Column, Table

SETS = [("Table 4 and section 4.4.2", "table4", ""), ("of these LLaMA alone", "table4", "L-"), ("Table 3", "table3", ""),
        ("Tables 15 and 16", "tables15and16", "")]


def table(of):
    """of: the tables of these names."""
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
