"""What the sources of the documents call: the functions of this module, document_record and document_multipliers, and
OTHERS."""
import collections
import functools
import io
import math
import statistics
import sys
import tomllib

import numpy as np

import choose
import compare
import cost_tables
import document_multipliers
import document_record
import printing
import published
import record
import registered
import report
import tables
import tables02_09_11
from document_record import mean, p_value, span, with_interval
from errors import Refused

OTHERS = (record.thirds_of, choose.before_tuning, choose.lora_alpha, choose.lora_libraries, choose.lora_needs,
          choose.masters, choose.needs, choose.timed_on, choose.tuned_rates, cost_tables.time_over_distributed,
          published.largest_loss_difference, published.perplexity_over_full, published.with_lower_loss)
CHANGES = record.RESULTS.parent / "paper" / "changes.toml"


# ---- published trainings ------------------------------------------------------------------------

IMAGES_WITH_SGD = "resnet8", "half10", "half10-cosine", "half", "half-longest", "half-longest-cosine", "half-plain"
# Ours next to the published trainings: by the label of a row, networks and methods.
OURS = {
    "ResNet8 SGD, full": [(network, "full") for network in IMAGES_WITH_SGD],
    "ResNet8 SGD, 1/3": [(network, record.thirds_of(network)) for network in IMAGES_WITH_SGD],
    "ResNet8 Adam, full": [(network, "full") for network in ("half10-adam", "half-plain-adam")],
    "ResNet8 Adam, 1/3": [(network, "BCD-1/3") for network in ("half10-adam", "half-plain-adam")],
    "ResNet14 SGD, full": [("resnet14", "full")], "ResNet14 SGD, 1/3": [("resnet14", "BCD-1/3")],
    "ResNet20 SGD, full": [("resnet20", "full")], "ResNet20 SGD, 1/3": [("resnet20", "BCD-1/3")],
    "GPT2-wiki Adam, full": [("gpt", "full"), ("gpt-cosine", "full")],
    "GPT2-wiki Adam, 1/3": [("gpt", "BCD-1/3"), ("gpt-cosine", "BCD-1/3")],
    "1 Adam": [("gpt", "full")], "1/2 Adam": [("gpt", "BCD-1/2")], "1/3 Adam": [("gpt", "BCD-1/3")],
    "1/4 Adam": [("gpt", "BCD-1/4")]}
# The same in Tables 9 and 10.
OURS_LESS = {
    9: {"0.9 1/3 Adam": [("gpt", "1/3 x.9")], "1 1/3 Adam": [("gpt", "BCD-1/3")], "1 1 Adam": [("gpt", "full")]},
    10: {"0.9 1/3": [("half10", "1/3 x.9"), ("half", "1/3 x.9")],
         "1 1/3": [("half10", "BCD-1/3 every 2e"), ("half", "BCD-1/3 every 1e")],
         "1 1": [("half10", "full"), ("half", "full")]}}


def published_rows(table, images=None):
    """The trainings of Table 2, 9, 10 or 11, with their cells as text; `images`: of image models, or of the others."""
    rows = []
    for row in published.trainings(table):
        if images in (None, row.is_images):
            score = f"{row.score:.1f} p" if row.is_images else f"{row.score} p"
            if row.is_ten_perplexity:
                score = f"{row.score:.2f} r"
            multiplier = "" if math.isnan(row.multiplier) else f"{row.multiplier:.2f} r"
            rows.append({"label": tables02_09_11.label(row), "trained": f"{row.duration:.0f} p",
                         "multiplier": multiplier, "score": score, "loss": f"{row.loss:.4f} p", "memory": f"{row.mib:.2f} p"})
    return rows


def ours_by_thirds(images):
    """Ours by BCD-1/3 below the trainings of Table 2: of image models, or of the others."""
    return [what for row in published.trainings(2) if row.submodels > 1 and row.is_images == images
            for what in OURS.get(tables02_09_11.label(row), [])]


def our_gaps():
    """The lowest and the highest gap of these on images, in points, means over seeds."""
    return span([statistics.fmean(record.gaps(*what)) for what in ours_by_thirds(True)], sign="+")


def our_gaps_of_text():
    """The same of the others, by seed, in per cent of the full update's perplexity."""
    return span([100 * (record.score_at(bcd) / record.score_at(full) - 1)
                 for what in ours_by_thirds(False) for bcd, full in record.pairs(*what)], 1)


def our_multipliers():
    """The lowest and the highest multiplier of all of them to the same training loss, means over seeds."""
    return span(document_multipliers.means_of(record.same_training_loss, ours_by_thirds(True) + ours_by_thirds(False)))


# ---- steps in pipelines -------------------------------------------------------------------------

def pipeline_ratios(table):
    """A measured step of the full update on two ranks over one of BCD-1/3 on one, for each number of micro-batches."""
    found = made_of("timing.h5")[table]
    steps = {(label, ranks.value, micro.value): cell.value for label, ranks, micro, cell in zip(
        found.labels, found.column("ranks"), found.column("micro_batches"), found.column("measured"))}
    counts = sorted({micro for _, _, micro in steps})
    return [steps["full plain", 2, micro] / steps["BCD-1/3 plain", 1, micro] for micro in counts]


def fit_of_a_cached_prefix():
    """Of Tables 15 and 16, simulated without and with a cached prefix: by how many per cent a step is off, the mean of
    all but the one that the simulation was calibrated by; and a step of BCD-1/4 and of BCD-1/5 over one of BCD-1/3, the
    means of the models, also as published."""
    table = made_of("timing.h5")["tables15and16"]
    steps = {name: np.array([cell.value for cell in table.column(column)]).reshape(-1, 3)
             for name, column in (("published", "published"), ("without", "calibrated"), ("cached", "cached"))}
    off = {name: 100 * np.abs(each / steps["published"] - 1).ravel()[1:].mean() for name, each in steps.items()}
    fall = {name: (each[:, 1:] / each[:, :1]).mean(axis=0) for name, each in steps.items()}
    return {name: {"off": f"{off[name]:.1f} %", "fall": " and ".join(f"{ratio:.2f}" for ratio in fall[name])}
            for name in steps}


def filled_pairs():
    """The pairs of published Table 4, each with the simulated speed of BCD-1/3 over that of the full update in filled
    pipelines; without that of L-8.0B, which is not in Table 8, so that nothing simulates it."""
    table = made_of("timing.h5")["table4"]
    steps = {(label, gpus.value): cell.value
             for label, gpus, cell in zip(table.labels, table.column("gpus"), table.column("filled"))}
    return [(full, bcd, steps[f"{full.model} full", full.gpus] / steps[f"{bcd.model} BCD-1/3", bcd.gpus])
            for full, bcd in published.pairs(4) if full.model in published.models()]


def filled_ratios():
    return [ratio for _, _, ratio in filled_pairs()]


def break_even_when_filled():
    """The multipliers at which half the GPUs cost as much as all, in these pipelines: the lowest and the highest."""
    return span([ratio * published.gpus_of(full.gpus) / published.gpus_of(bcd.gpus)
                 for full, bcd, ratio in filled_pairs()], 1)


def published_break_even():
    """The same by the steps of published Table 4."""
    return span([cell.value for cell in made_of("cost.h5")["speedup"].column("break_even")], 1)


def published_gaps(images):
    """The lowest and the highest gap of Table 2."""
    return span(published.gaps(images), 1, "+")


def published_multipliers(*images):
    """The lowest and the highest B-F of Table 2; `images`: of image models, or of the others."""
    return span([row.multiplier for row in published.trainings(2)
                 if row.submodels > 1 and row.is_images in (images or (True, False))])


def savings_explained():
    """Of the cells of Tables 5 to 7 and 12 to 14: how many follow from one of the paper's multipliers, and their number."""
    found = [cell.value for table in made_of("cost.h5") if "nearest" in [column.name for column in table.columns]
             and table.name.startswith("table") for cell in table.column("nearest")]
    return len(found) - found.count("none"), len(found)


# ---- fine-tuning: what each method of choose.py reached -----------------------------------------

def added_rates():
    """What was added to the rates of group 3: method, rate and loss, by rising rate."""
    names = {"sgd": "full, SGD without momentum", "adamw": choose.FULL}
    found = [("BCD-1/3" if one["submodels"] == 3 else names[one["optimizer"]], one["lr"], registered.at_the_end(one))
             for one in record.trainings("smollm-added-rates.h5")]
    return sorted(found, key=lambda each: (each[0] != names["sgd"], each[0] == "BCD-1/3", each[1]))


def while_choosing_rates():
    """Group 3's trainings of one seed on the text that chose the rates, with what was added to them later: the lowest
    loss of each of four methods at the best of its rates, and that of BCD-1/3 before any were added."""
    chosen, added, lora = (record.trainings(name) for name in
                           ("smollm-rates.h5", "smollm-added-rates.h5", "smollm-rates-lora.h5"))

    def lowest(made, optimizer, momentum, submodels):
        return min(registered.at_the_end(one) for one in made if (one["optimizer"], one.setting("momentum")) ==
                   (optimizer, momentum) and one["submodels"] == submodels and one.setting("order") == "cyclic")
    every = [*chosen, *added]
    return {name: f"{loss:.3f}" for name, loss in
            {"full": lowest(every, "adamw", 0, 1), "plain": lowest(every, "sgd", 0, 1),
             "thirds": lowest(every, "adamw", 0, 3), "thirds_of_the_table": lowest(chosen, "adamw", 0, 3),
             "lora": min(map(registered.at_the_end, lora))}.items()}


def fine_tuned():
    """Each method of fine-tuning as text, by columns.  gain: what its loss fell by over what that of the full update
    did; same_time: the loss of the full update after as many seconds, in the middle of its schedule."""
    found, speed = choose.tuned(choose.trainings(choose.FILE)), choose.seconds_per_update()
    full, rows = found[0], []
    before = statistics.fmean(full.after(0))
    for one in found:
        d, time = one.difference, speed.get(one.method.name, math.nan) / speed[choose.FULL]
        rows.append({
            "name": one.method.name, "loss": mean(one.losses, 3), "lowest": mean(one.lowest, 3),
            "losses": each_of(one.losses), "half_way": each_of(one.after(full.updates / 2)), "lowest_losses": each_of(one.lowest),
            "gain": f"{100 * (before - statistics.fmean(one.losses)) / (before - statistics.fmean(full.losses)):.0f} %",
            "same_time": f"{statistics.fmean(full.after(full.updates * time)):.3f}" if time < 0.95 else "",
            "difference": with_interval(d, 3) if d else "", "answer": one.answer,
            "p": p_value(one.p) if d else "", "seconds": "–" if math.isnan(time) else f"{time:.2f}",
            "operations": "–" if math.isnan(one.operations) else f"{one.operations / full.operations:.2f}",
            "equal_parts": f"{one.equal_parts:.0f}",
            "trained": f"{one.trained:.0f}", "updates": one.updates, "rate": f"{one.trainings[0]['lr']:g}".replace("e-0", "e-"),
            "times_the_updates": mean(one.times_the_updates(full)) if d else "",
            **{column: mean([one.mean(column, 1 / tables.MIB)], 0) for column in ("peak_total", "resident")}})
    return rows


def by_method():
    """The same by the names of the methods."""
    return {row["name"]: row for row in fine_tuned()}


def tuned_difference(name, other):
    """By how much lower one method of fine-tuning ended than another, with its interval; and p, of this test alone."""
    losses = {one.method.name: one.losses for one in choose.tuned(choose.trainings(choose.FILE))}
    found = compare.welch(losses[other], losses[name])
    return with_interval(found, 3, ""), p_value(found.p)


def each_of(losses):
    return " ".join(f"{loss:.3f}" for loss in losses)


# ---- changes ------------------------------------------------------------------------------------

def changes():
    with open(CHANGES, "rb") as file:
        return tomllib.load(file)["change"]


# ---- tables of files ----------------------------------------------------------------------------

@functools.cache
def made_of(files):
    """What `bcd report` makes of files of results, with commas between them."""
    return report.tables_of([str(record.RESULTS / name) for name in files.split(",")])


def made_with(network):
    """The same of the files of a network."""
    return made_of(",".join(record.NETWORKS[network][1]))


def cell(files, table, row, column):
    """A cell as it is printed, without its mark, by the label of its row and the name of its column."""
    return made_of(files)[table].text(row, column)


def cell_of(network, method, table, column):
    """A cell of the row of a method, in a table of its network's files."""
    return made_with(network)[table].text(record.find(network, method).label, column)


def value(files, table, row, column):
    return made_of(files)[table].value(row, column)


def brought_by_a_cosine():
    """What a cosine brings in points on images, to the full update and to BCD: in the grids of group 1, at the best rate of
    each schedule, with one seed on images that no score uses; in the longest trainings, at these rates and phases; and on
    10,000 images, where both schedules have the rate that was the best at a constant one."""
    table = made_of("rates.h5")["rates"]
    found = {"full": [], "bcd": []}
    for label in table.labels:
        constant = label.replace(" cosine", "")
        if constant != label:
            found["full" if label.endswith(" full") else "bcd"].append(
                table.value(label, "score") - table.value(constant, "score"))
    for method in found:
        for decays, constant in (("half10-cosine", "half10"), ("half-longest-cosine", "half-longest")):
            names = ["full" if method == "full" else record.thirds_of(network) for network in (decays, constant)]
            found[method].append(record.ends_apart(decays, names[0], constant, names[1]))
    return {method: span(points, 1, "+") for method, points in found.items()}


def brought_by_a_cosine_on_text():
    """What a cosine brings in perplexity, of the seeds that have both, at the same rates: to the full update, and to
    BCD-1/3."""
    found = {}
    for name, method in (("full", "full"), ("bcd", "BCD-1/3")):
        constant, decays = (record.find(network, method).by_seed for network in ("gpt", "gpt-cosine"))
        found[name] = statistics.fmean(record.score_at(constant[seed]) - record.score_at(decays[seed]) for seed in decays)
    return {name: f"{value:.2f}" for name, value in found.items()}


def next_to_best(files, row):
    """By how many points the rates next to the best one of a grid are behind it: the lowest and the highest."""
    table = made_of(files)["rates"]
    return span([table.value(row, "score") - table.value(row, column) for column in ("lower", "higher")], 1)


def operations():
    """An update of BCD-1/3 over a full one, counted from shapes: the least and the most of the long trainings."""
    table = made_of("converged.h5")["per_update"]
    return span([cell.value for label, cell in zip(table.labels, table.column("operations")) if "1/3" in label])


def answered(network, method, reading=""):
    """A row of the answers of a group of the second protocol, as text by columns."""
    table = made_with(network)["answers"]
    value = functools.partial(table.value, record.find(network, method).label + reading)
    found = compare.Difference(*map(value, ("difference", "low", "high", "p", "seeds")))
    return {"difference": with_interval(found), "p": p_value(found.p), "answer": value("answer")}


def ends_counted(*first):
    """Of the comparisons of the second protocol from scratch, and of these of the first trainings, all with three seeds:
    how many end ahead by more than chance, behind, and undecided."""
    found = collections.Counter(document_record.verdict(*what) for what in first)
    for network, method in record.SECOND_TRAININGS:
        answers, row = made_with(network)["answers"], record.find(network, method).label
        found["behind" if answers.value(row, "answer") == "no" else
              "ahead" if answers.value(row, "low") > 0 and answers.value(row, "p") < 0.05 else "undecided"] += 1
    return found


def comparisons(group):
    """How many of the comparisons that were registered for a group of the protocol are answered: "2 of 5"."""
    return f"{len(made_of(f'{group}.h5')['answers'].labels)} of {registered.planned(group)}"


def hours(file):
    """Of training, evaluations left out: the table has the mean seconds of each row's seeds."""
    table = made_of(file)["trainings"]
    seconds = sum(seeds.value * each.value for seeds, each in zip(table.column("seeds"), table.column("seconds")))
    return f"{seconds / 3600:.0f}" if seconds >= 36000 else f"{seconds / 3600:.2g}"


class Printed:
    """Tables as Markdown, in one document, which has a note of several tables once; but says at each table of perplexities
    that they are not comparable."""

    def __init__(self):
        self.notes = set()

    def table(self, files, name, without=(), without_notes=(), rows=None, title=True):
        """A table without some columns and the notes that begin with some words, of all rows or of those whose labels
        contain one of the words."""
        found = made_of(files)[name]
        kept = [c for c, column in enumerate(found.columns) if column.name not in without]
        some = [r for r, label in enumerate(found.labels) if rows is None or any(word in label for word in rows)]
        notes = [note for note in found.notes
                 if (note not in self.notes or note == tables02_09_11.VOCABULARY)
                 and not any(note.startswith(word) for word in without_notes)]
        self.notes.update(notes)
        shown = tables.Table(found.name, found.title, found.head, [found.columns[c] for c in kept], notes=notes,
                             labels=[found.labels[r] for r in some],
                             rows=[[found.rows[r][c] for c in kept] for r in some])
        out = io.StringIO()
        printing.print_markdown(out, shown)
        return out.getvalue() if title else out.getvalue().split("\n", 2)[2]


def functions():
    """What a source may name, for one document: the functions that are defined here, in document_record and in
    document_multipliers, those of OTHERS, and lists of what was trained.  Each name is of one thing."""
    found = [(name, value) for module in (sys.modules[__name__], document_record, document_multipliers)
             for name, value in vars(module).items() if callable(value) and value.__module__ == module.__name__]
    found += [(function.__name__, function) for function in OTHERS]
    found += {
        "table": Printed().table, "the_longest": record.LONGEST, "longest_bcd": record.LONGEST[1],
        "longest_thirds": record.LONGEST_THIRDS,
        "three_seeds": record.THREE_SEEDS, "constant": record.CONSTANT, "ours": OURS, "ours_less": OURS_LESS,
        "all_data_images": [what for what in record.THREE_SEEDS + record.SECOND_TRAININGS if what in record.ALL_DATA],
        "less_data_images": [what for what in record.THREE_SEEDS if what not in record.ALL_DATA]}.items()
    twice = [name for name, count in collections.Counter(name for name, _ in found).items() if count > 1]
    if twice:
        raise Refused(f"document.py: two things are called {twice[0]}")
    return dict(found)
