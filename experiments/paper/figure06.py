"""Figure 6: a step of BCD against UFP, of three GPT models, and of three LLaMA models; from Tables 15 and 16."""
import re

import published
import steps
from tables import PUBLISHED, RECOMPUTED, SIMULATED, Column, Table


def figure(number, name, title):
    models = [row["model"] for row in published.cells()[f"table{number}"]]
    columns = [Column("flops", "FLOP model", "ms", 0, RECOMPUTED)]
    for model in models:
        data = re.sub("[-.]", "_", model)
        columns += [Column(data, model, "ms", 0, PUBLISHED), Column(f"{data}_simulated", f"{model} sim.", "ms", 0, SIMULATED)]
    table = Table(name, title, "UFP", columns, figure="lines", axis="ms per iteration")
    for submodels in (3, 4, 5):
        times = [cell for model in models for cell in steps.pair(published.step(number, model, submodels))]
        table.row(f"1/{submodels}", steps.scaled_ms(models[-1], submodels), *times)
    table.note(f"\"FLOP model\": the published time of {models[-1]} at 1/3, scaled by operations alone.")
    return table


def figures():
    return [figure(15, "figure6", "Figure 6: a step against UFP, GPT"),
            figure(16, "figure6_llama", "Figure 6: a step against UFP, LLaMA")]
