"""The memory of Tables 9 to 11: GPT-2 of 0.15B parameters, and ResNet-14."""
import math

import published
from table08 import plan
from tables import CLOSED_FORM, DEVIATION, MIB, NONE, PUBLISHED, RECOMPUTED, Column, Table


def table():
    title = "Tables 9 to 11: parameters, gradients and state of GPT-2 0.15B and ResNet-14"
    found = Table("tables9to11", title, "table: row", [
        Column("published", "published", "MiB", 2, PUBLISHED), Column("recomputed", "from its W", "MiB", 2, RECOMPUTED),
        Column("recomputed_deviation", "off", "", 2, NONE, DEVIATION),
        Column("closed_form", "our model", "MiB", 2, CLOSED_FORM),
        Column("closed_form_deviation", "off", "", 2, NONE, DEVIATION), Column("plan", "planned", "MiB", 2, CLOSED_FORM)])
    for row in (row for number in (9, 10, 11) for row in published.trainings(number)):
        k = 3 if row.optimizer == "adam" else 2  # gradients and vectors of state
        recomputed = row.full.mib / (1 + k) * (1 + k / row.submodels) if row.full else math.nan
        planned = plan(row.model, row.optimizer, row.submodels)
        ours = planned["equal_parts"] / MIB
        found.row(f"{row.table}: {row.row}", row.mib, recomputed, recomputed / row.mib - 1, ours, ours / row.mib - 1,
                  planned["trained"] / MIB)
    found.note("\"from its W\": W (1 + (1 + k)/M) with the W that the table's own full update implies, k = 2 for Adam, 1 for "
               "SGD with momentum.")
    found.note("No usual configuration of GPT-2 has the W of the 0.15B one; 16 layers of width 768 stand in for it.  "
               "\"planned\": with the largest balanced submodel.")
    return found
