"""Tables 5 to 7 (cost) and 12 to 14 (GPU hours): what BCD-1/3 on RTX 4090 saves."""
import published
import reductions
from program import ask_once
from published import COST
from tables import PUBLISHED, RECOMPUTED, TEXT, Column, Table


def reduction(what, gpu, multipliers):
    number = published.REDUCTIONS[what][gpu]
    name = ask_once("info")["gpus"].value(gpu, "name")
    table = Table(f"table{number}", f"Table {number}: {what} saved by BCD-1/3 on RTX 4090 against a full update on {name}",
                  "model", [
                      Column("full", "full", "N/G", 0, PUBLISHED, TEXT), Column("bcd", "BCD", "N/G", 0, PUBLISHED, TEXT),
                      Column("implied", "implied", "B-F", 3, RECOMPUTED), *reductions.columns(multipliers)])
    for row in published.reductions():
        if (row.what, row.gpu) != (what, gpu):
            continue
        for label, printed in (("worst", row.worst), ("avg.", row.average)):
            table.row(f"{row.model} {label}", row.full, row.bcd, (1 - printed) / row.ratio,
                      *reductions.cells(printed, multipliers, lambda multiplier, row=row: 1 - multiplier * row.ratio))
    price, prices = (" x price", " and the prices of section 4.4.1") if what == COST else ("", "")
    table.note(
        f"Saved: 1 - multiplier x (step x GPUs{price} of BCD) / (the same of the full update), from the published "
        f"times{prices}.  nearest: the multiplier whose cell is nearest, none if all are more than 1.5 points off; "
        "implied: the one that would give the published cell.")
    return table


def all_reductions(multipliers):
    return [reduction(what, gpu, multipliers) for what in published.REDUCTIONS for gpu in published.GPUS]
