"""Table 1: the two cards, next to the data sheets that the simulator uses; section 4.4.1 and appendix A.4: rented
GPUs, and what G-10B saves at their prices."""
import math

import published
from program import ask_once
from tables import FREE, GIVEN, PERCENT, PUBLISHED, RECOMPUTED, TEXT, Cell, Column, Table

# The columns of `bcd info --out`, table gpus, for the features of Table 1.
SHEET = {"memory": "memory", "memory bandwidth": "bandwidth", "FP32": "fp32", "tensor cores, FP16": "bf16",
         "price": "price"}


def cards():
    gpus = ask_once("info")["gpus"]
    table = Table("table1", "Table 1: the two cards", "feature", [
        Column("unit", "unit", "", 0, kind=TEXT),
        Column("rtx4090_published", "RTX 4090", "Table 1", FREE, PUBLISHED),
        Column("rtx4090", "RTX 4090", "data sheet", FREE, GIVEN),
        Column("a100_published", "A100", "Table 1", FREE, PUBLISHED),
        Column("a100", gpus.value("a100", "name"), "data sheet", FREE, GIVEN)])
    for row in published.cells()["table1"]:
        values = []
        for gpu in ("rtx4090", "a100"):
            known = SHEET.get(row["feature"])
            cell = row[gpu]
            values += [None if isinstance(cell, str) else cell, gpus.value(gpu, known) if known else None]
        table.row(row["feature"], row["unit"], *values)
    table.note(
        "Data sheet: the values that the simulator uses (bcd info), tensor cores for dense bf16 with float sums; prices "
        "from section 4.4.1.  Table 1 has 40 and 80 GB for the A100, the bandwidth of the one with 40 GB, and the RTX "
        "4090's FP16 rate with FP16 sums.")
    return table


# ---- rents ----------------------------------------------------------------------------------------


def saved_at(gpu, ratio, multiplier):
    """The fraction saved for G-10B, the model whose savings the abstract quotes, when the other GPU costs `ratio` times
    as much as an RTX 4090."""
    row, = (r for r in published.reductions() if (r.what, r.gpu, r.model) == (published.HOURS, gpu, "G-10B"))
    return 1 - multiplier * row.ratio / ratio


def prices(multiplier, given=None):
    """multiplier: the one behind the published tables.  given: prices by GPU, of --price; the other GPUs have those of
    section 4.4.1."""
    table = Table("prices", "Section 4.4.1 and appendix A.4: rents, and what they make of G-10B", "from", [
        Column("rtx4090", "RTX 4090", "$/h", 2, PUBLISHED),
        Column("a100", "A100", "$/h", 2, PUBLISHED),
        Column("a800", "A800", "$/h", 2, PUBLISHED),
        Column("ratio_a100", "A100", "/ RTX 4090", 2, RECOMPUTED),
        Column("ratio_a800", "A800", "/ RTX 4090", 2, RECOMPUTED),
        Column("saved_a100", "saved", "vs A100", 1, RECOMPUTED, PERCENT),
        Column("saved_a800", "saved", "vs A800", 1, RECOMPUTED, PERCENT)])
    offers = [(offer["from"], offer, {}) for offer in published.cells()["prices"]]
    if given:
        offers.append(("--price", published.section_prices() | given, given))
    for who, offer, own in offers:
        price = [offer.get(gpu, math.nan) for gpu in published.GPUS]
        ratio = [other / price[0] for other in price[1:]]
        table.row(who, *(Cell(value, GIVEN if gpu in own else PUBLISHED) for gpu, value in zip(published.GPUS, price)),
                  *ratio, *(saved_at(gpu, r, multiplier) for gpu, r in zip(published.GPUS[1:], ratio)))
    table.note(f"saved: by G-10B with BCD-1/3 on RTX 4090 and the tables' multiplier {multiplier:.3f}, against the cost "
               "of a full update on the other GPU.")
    return table
