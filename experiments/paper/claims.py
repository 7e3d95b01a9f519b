"""Numbers in the paper's text, recomputed from its own tables."""
import statistics

import program
import published
import reductions
from published import COST, gpus_of
from tables import CLOSED_FORM, FREE, GIB, PUBLISHED, RECOMPUTED, TEXT, Cell, Column, Table


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
    table = Table("claims", "Per cents in the text, from the paper's own tables", "claim", reductions.columns(multipliers))
    for label, printed, recomputed in percentages():
        table.row(label, *reductions.cells(printed, multipliers, recomputed))
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
