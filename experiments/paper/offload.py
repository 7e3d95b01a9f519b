"""Offload is paid per step, not per token: the published step of G-1.6B with more micro-batches."""
import published
import steps
from published import FULL, Step
from tables import SIMULATED, Column, Table


def table():
    found = Table("offload", "Offload is paid per step, not per token: G-1.6B", "tokens a step", [
        Column("offload", "offload", "ms/1k tok.", 1, SIMULATED), Column("resident", "resident", "ms/1k tok.", 1, SIMULATED),
        Column("times", "offload", "x", 2, SIMULATED)])
    offload = published.step(3, "G-1.6B", 1)
    resident = Step(0, offload.gpu, offload.model, offload.gpus, FULL, 1)
    for doublings in range(10):
        with_offload, without = (steps.milliseconds(step, steps.CALIBRATED, 2**doublings) for step in (offload, resident))
        found.row(f"{2**doublings}k", with_offload, without, with_offload / without)
    found.note(
        "One RTX 4090, calibrated as in Table 4, micro-batches of 1 x 1024 tokens.  \"resident\": the same full update with "
        "all state on the card, which would not fit there.  Table 3 has the first row only.")
    return found
