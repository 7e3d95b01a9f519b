"""Costs and GPU hours: Tables 1, 5 to 7 and 12 to 14, the rents of section 4.4.1, and numbers in the paper's text,
recomputed from its own tables."""
import math
import statistics
from dataclasses import dataclass, field

import program
import published
from program import ask_once
from published import COST, gpus_of
from tables import CLOSED_FORM, FREE, GIB, GIVEN, PERCENT, PUBLISHED, RECOMPUTED, TEXT, Cell, Column, Table


# ---- Table 1: the two cards, next to the data sheets that the simulator uses --------------------

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


# ---- section 4.4.1 and appendix A.4: rented GPUs, and what G-10B saves at their prices ----------

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


# ---- Tables 5 to 7 (cost) and 12 to 14 (GPU hours): what BCD-1/3 on RTX 4090 saves --------------

TOLERANCE = 0.015  # a cell that is farther off follows from none of the multipliers


@dataclass
class Multipliers:
    """The B-F multipliers that a saving is computed with, by name; `ours` (of --multiplier) may be missing."""
    published: dict = field(default_factory=lambda: {
        "tables": published.table_multiplier(),  # the one behind the published tables, recomputed
        "average": published.cells()["text"]["multiplier_average"],  # printed as the average
        "language": published.mean_multiplier("adam", False),  # mean over the language models, recomputed
        "worst": published.cells()["text"]["multiplier_worst"]})  # printed as the worst
    ours: float = math.nan
    is_measured: bool = False  # `ours`: from files of results, or a number that was given

    def items(self):
        yield from self.published.items()
        if not math.isnan(self.ours):
            yield "ours", self.ours


def columns(multipliers):
    """The published saving, the multiplier whose saving is nearest to it, how far that is off, and the saving with each
    multiplier."""
    ours = RECOMPUTED if multipliers.is_measured else GIVEN
    return [Column("published", "published", "", 1, PUBLISHED, PERCENT), Column("nearest", "nearest", "", 0, kind=TEXT),
            Column("off", "off", "points", 1)] + [
        Column(f"multiplier_{name}", f"{value:.4g}", name, 1, ours if name == "ours" else RECOMPUTED, PERCENT)
        for name, value in multipliers.items()]


def cells(printed, multipliers, saving):
    """Their cells; saving(multiplier) is what follows from the paper's own numbers."""
    with_each = {name: saving(multiplier) for name, multiplier in multipliers.items()}
    nearest = min(multipliers.published, key=lambda name: abs(with_each[name] - printed))
    off = with_each[nearest] - printed
    head = f"{multipliers.published[nearest]:.4g}" if abs(off) <= TOLERANCE else "none"
    return [printed, Cell(head), 100 * off, *with_each.values()]


def reduction(what, gpu, multipliers):
    number = published.REDUCTIONS[what][gpu]
    name = ask_once("info")["gpus"].value(gpu, "name")
    table = Table(f"table{number}", f"Table {number}: {what} saved by BCD-1/3 on RTX 4090 against a full update on {name}",
                  "model", [
                      Column("full", "full", "N/G", 0, PUBLISHED, TEXT), Column("bcd", "BCD", "N/G", 0, PUBLISHED, TEXT),
                      Column("implied", "implied", "B-F", 3, RECOMPUTED), *columns(multipliers)])
    for row in published.reductions():
        if (row.what, row.gpu) != (what, gpu):
            continue
        for label, printed in (("worst", row.worst), ("avg.", row.average)):
            table.row(f"{row.model} {label}", row.full, row.bcd, (1 - printed) / row.ratio,
                      *cells(printed, multipliers, lambda multiplier, row=row: 1 - multiplier * row.ratio))
    price, rents = (" x price", " and the prices of section 4.4.1") if what == COST else ("", "")
    table.note(
        f"Saved: 1 - multiplier x (step x GPUs{price} of BCD) / (the same of the full update), from the published "
        f"times{rents}.  nearest: the multiplier whose cell is nearest, none if all are more than 1.5 points off; "
        "implied: the one that would give the published cell.")
    return table


def all_reductions(multipliers):
    return [reduction(what, gpu, multipliers) for what in published.REDUCTIONS for gpu in published.GPUS]


# ---- numbers in the text ------------------------------------------------------------------------

def mean_ratio(table):
    """The mean over the rows of Table 3 or 4 of a BCD step's time over the other's."""
    return statistics.fmean(bcd.ms / other.ms for other, bcd in published.pairs(table))


def mean_speedup(table):
    """The mean of the inverses."""
    return statistics.fmean(other.ms / bcd.ms for other, bcd in published.pairs(table))


def time_over_distributed(multiplier):
    """The time of BCD on half the GPUs over that of distributed training, the mean of Table 4."""
    return multiplier * mean_ratio(4)


def saved(gpu, multiplier):
    """The cost saved, by model."""
    return [1 - multiplier * row.ratio for row in published.reductions() if (row.what, row.gpu) == (COST, gpu)]


def printed_mean(gpu):
    """The mean over the models of the printed average cells, in per cent."""
    return 100 * statistics.fmean(row.average for row in published.reductions() if (row.what, row.gpu) == (COST, gpu))


def percentages():
    """The claims: label, published fraction, and what a multiplier makes of it."""
    text = published.cells()["text"]
    return [
        # section 4.3.3
        ("time saved over OffLoad (average)", text["saved_over_offload"], lambda m: 1 - m * mean_ratio(3)),
        ("faster than OffLoad (worst)", text["faster_than_offload"], lambda m: mean_speedup(3) / m - 1),
        ("slower than distributed (worst)", text["slower_than_distributed"], lambda m: 1 - mean_speedup(4) / m),
        # abstract; "averagely" makes them means of the models
        ("cost saved on RTX 4090, more than", text["saved_rtx4090"], lambda m: min(saved("rtx4090", m))),
        ("cost saved over A100, more than", text["saved_a100"], lambda m: min(saved("a100", m))),
        ("cost saved on RTX 4090, mean of four", text["saved_rtx4090"],
         lambda m: statistics.fmean(saved("rtx4090", m))),
        ("cost saved over A100, mean of four", text["saved_a100"], lambda m: statistics.fmean(saved("a100", m)))]


def claims(multipliers):
    table = Table("claims", "Per cents in the text, from the paper's own tables", "claim", columns(multipliers))
    for label, printed, recomputed in percentages():
        table.row(label, *cells(printed, multipliers, recomputed))
    table.note(
        "The 42.0 % against OffLoad is said of the average multiplier, and is what the worst one gives.  The abstract's "
        f"53.6 and 74.9 %, \"averagely more than\", are the least of four models; the printed average cells have the "
        f"means {printed_mean('rtx4090'):.1f} and {printed_mean('a100'):.1f} %.")
    return table


def speedups():
    """The ratios of times in Table 4."""
    table = Table("speedup", "Table 4: a step of BCD-1/3 on half the GPUs, and the multiplier at which it costs as much",
                  "model", [
                      Column("full", "full", "N/G", 0, PUBLISHED, TEXT), Column("full_ms", "full", "ms", 0, PUBLISHED),
                      Column("bcd", "BCD-1/3", "N/G", 0, PUBLISHED, TEXT), Column("bcd_ms", "BCD-1/3", "ms", 0, PUBLISHED),
                      Column("speedup", "speed-up", "of a step", 2, RECOMPUTED),
                      Column("break_even", "even at", "multipl.", 2, RECOMPUTED)])
    for full, bcd in published.pairs(4):
        speedup = full.ms / bcd.ms
        table.row(full.model, full.gpus, full.ms, bcd.gpus, bcd.ms, speedup,
                  speedup * (gpus_of(full.gpus) / gpus_of(bcd.gpus)))
    all_speedups = [cell.value for cell in table.column("speedup")]
    table.note(
        f"Section 4.3.2 says 1.52 to 1.76 times, mean 1.41; the table spans {min(all_speedups):.2f} to "
        f"{max(all_speedups):.2f}, mean {mean_speedup(4):.2f}.  \"even at\": with this B-F multiplier BCD takes as many "
        "GPU hours as the full update.")
    return table


# Networks of our trainings of which the operations of BCD-1/3 are counted.
COUNTED = {"ResNet-8": "resnet8", "ResNet-8x8": "resnet:depth=8,width=8",
           "GPT 4x128": "gpt:layers=4,width=128,heads=4,context=64,vocabulary=2048"}


def sentences():
    """Other sentences of the paper: what is printed, and what its own numbers, or counts of ours, say."""
    text, version2 = published.cells()["text"], published.cells()["version2"]
    table = Table("sentences", "Other sentences, and what the paper's own numbers say of them", "sentence", [
        Column("section", "section", "", 0, kind=TEXT), Column("published", "published", "", FREE, PUBLISHED),
        Column("recomputed", "recomputed", "", 3, RECOMPUTED), Column("meaning", "what was recomputed", "", 0, kind=TEXT)])
    largest, difference = published.largest_loss_difference()
    table.row("losses differ by less than", "4.2.2", text["loss_difference"], difference,
              f"largest of Table 2: {largest.row}, {largest.optimizer.capitalize()}")
    table.row("24 GB can train, 1e9 parameters", "3.1", text["largest_on_24gb"] / 1e9, 24 * GIB / 4 / 1e9,
              "that 24 GB hold in fp32, and nothing else")
    table.row("BCD-1/3 takes less of the memory than", "1", text["memory_share"], (1 + 4 / 3) / (2 + text["state"]),
              "of 2 W and 3 W of state; with 2 W of state 0.5")
    worst, language = text["multiplier_worst"], published.mean_multiplier("adam", False)
    table.row("slower than distributed, at worst", "4.3.3", text["slower_than_distributed"], time_over_distributed(worst),
              f"times as long with the multiplier {worst}: 48.9 % is of speed")
    table.row("the same of language models", "", None, time_over_distributed(language),
              f"times as long with the multiplier {language:.3f}: 42.0 % of speed")
    cost = statistics.fmean(bcd.ms * gpus_of(bcd.gpus) / (full.ms * gpus_of(full.gpus)) for full, bcd in published.pairs(4))
    for label, share in (("cost of a 7B model on A100/A800", version2["cost_a100"]),
                         ("cost of a 7B model on RTX 4090", version2["cost_rtx4090"])):
        table.row(label, "version 2", share, share / cost,
                  "extrapolation: its multiplier at Table 4's costs")
    for name, spec in COUNTED.items():
        table.row(f"operations of BCD-1/3 of {name}", "", None, Cell(program.operations_share(spec, 3), CLOSED_FORM),
                  "of the full update's; 0.667 for equal parts")
    return table
