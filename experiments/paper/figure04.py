"""Figure 4: training time by method, from Tables 3 and 4."""
import published
import steps
from tables import PUBLISHED, RECOMPUTED, SIMULATED, Column, Table


def figure(multiplier):
    table = Table("figure4", "Figure 4: training time by method", "model", [
        Column("offload", "offload", "ms", 0, PUBLISHED), Column("offload_simulated", "offload, sim.", "ms", 0, SIMULATED),
        Column("distributed", "distributed", "ms", 0, PUBLISHED),
        Column("distributed_simulated", "distrib., sim.", "ms", 0, SIMULATED),
        Column("bcd", "BCD x B-F", "ms", 0, RECOMPUTED), Column("bcd_simulated", "BCD x B-F, sim.", "ms", 0, SIMULATED)],
        figure="bars", axis=f"ms a step, BCD x {multiplier:.3g}")
    for full, bcd in published.pairs(4):
        if full != published.step(4, full.model, 1):
            continue
        offload = published.step(3, full.model, 1)
        table.row(full.model, *(steps.pair(offload) if offload else [None, None]), *steps.pair(full),
                  *steps.pair(bcd, multiplier))
    table.note(
        "Pairs of published times (Tables 3 and 4) and simulated ones, calibrated as in Table 4.  BCD runs on half of the "
        f"GPUs; its steps times the B-F multiplier {multiplier:.3g} (--multiplier), so that the bars compare whole trainings.")
    return table
