"""Tables 15 and 16: a step of BCD against UFP, the unfrozen part."""
import math

import published
import steps
from tables import DEVIATION, NONE, RECOMPUTED, SIMULATED, Column, Table


def table():
    found = Table("tables15and16", "Tables 15 and 16: a step of BCD against UFP, the unfrozen part", "model, UFP", [
        *steps.columns(1), Column("cached", "cached", "ms", 1, SIMULATED), steps.filled_column(1),
        Column("flops", "FLOP model", "ms", 1, RECOMPUTED), Column("flops_deviation", "off", "", 1, NONE, DEVIATION)])
    for step in published.steps():
        if step.table in (15, 16):
            flops = steps.scaled_ms(step.model, step.submodels) if step.submodels > 3 else math.nan
            found.row(f"{step.model} 1/{step.submodels}", *steps.cells(step),
                      steps.milliseconds(steps.cached(step), steps.CALIBRATED), steps.filled_ms(step), flops,
                      flops / step.ms - 1)
    found.note(
        "Means over the submodels; settings as in Table 4.  \"cached\": with the outputs of the frozen prefix kept "
        "(pre-inference).  \"FLOP model\": the published time at 1/3, times (3/2 + 3/(2M)) / 2.")
    return found
