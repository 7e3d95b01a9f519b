"""What the sources of the documents call: numbers of the record and cells of tables, as text."""
import functools
import io
import math
import statistics
import tomllib
import types

import numpy as np

import choose
import compare
import curves
import published
import record
import registered
import report
import tables
import tables02_09_11
import trainings
# The sources call these.
from choose import before_tuning, lora_libraries, needs, timed_on, tuned_rates
from claims import time_over_distributed
from published import largest_loss_difference, perplexity_over_full, with_lower_loss

CHANGES = record.RESULTS.parent / "paper" / "changes.toml"


# ---- numbers ------------------------------------------------------------------------------------

def mean(values, decimals=2, sign=""):
    """The mean over seeds and their standard deviation: "84.29 ± 0.44".  NaN has no place in it, which is said:
    "1.43 ± 0.36 (2 of 3)"; of nothing: "–"."""
    value, spread, known = compare.mean(values)
    if not known:
        return "–"
    text = f"{value:{sign}.{decimals}f}" + (f" ± {spread:.{decimals}f}" if known > 1 else "")
    return text if known == len(values) else f"{text} ({known} of {len(values)})"


def span(values, decimals=2, sign=""):
    """The lowest and the highest value: "0.63 to 0.74"; none may be missing."""
    if any(map(math.isnan, values)):
        raise ValueError(f"no span of {values}")
    return " to ".join(tables.format_number(value, decimals, sign) for value in (min(values), max(values)))


def name(network):
    return record.NETWORKS[network][0]


def parameters(network):
    return record.first(network, "full")["parameters"]


def seeds(network, method="full"):
    return len(record.seeds(network, method))


def epochs(network, method="full"):
    return f"{record.first(network, method)['epochs']:.0f}"


def rate(network, method="full"):
    return f"{record.first(network, method)['lr']:g}"


def phases(network, method):
    return record.first(network, method).settings["switch-every"]


def fraction(network, method):
    return f"{record.first(network, method).settings['fraction']:g}"


def score(network, method="full", part=1.0):
    return mean(record.scores(network, method, part))


def at_equal_updates(network, method):
    """The score of BCD after as many updates as the full update had; "–" under a cosine that is longer."""
    bcd, full = record.pairs(network, method)[0]
    if not curves.comparable(bcd, full):
        return "–"
    return score(network, method, min(1.0, full["steps"] / bcd["steps"]))


def ahead_at_equal_updates(network, method):
    """By how much BCD is ahead of the full update's end after as many updates, with its interval, and p."""
    bcd, full = record.pairs(network, method)[0]
    found = compare.welch(record.scores(network, method, full["steps"] / bcd["steps"]), record.scores(network, "full"))
    return f"{found.value:+.2f} ({found.low:+.2f} to {found.high:+.2f}), p {p_value(found.p)}"


def rounded(network, method, decimals, equal=False):
    """The mean score, with its unit; `equal`: after as many updates as the full update had."""
    bcd, full = record.pairs(network, method)[0]
    part = min(1.0, full["steps"] / bcd["steps"]) if equal else 1.0
    return f"{statistics.fmean(record.scores(network, method, part)):.{decimals}f}" + (" %" if bcd.is_images else "")


def gap(network, method, part=1.0, full=None):
    return mean(record.gaps(network, method, part, full), sign="+")


def gap_percent(network, method, part, ratio):
    """The gaps of the seeds after a part of BCD's training, in per cent of the score of the full update after as many
    epochs over a ratio: their span, "0.6 to 2.7"."""
    return span([100 * (record.score_at(bcd, part) / record.score_at(full, part / ratio) - 1)
                 for bcd, full in record.pairs(network, method)], 1)


def compared(network, method):
    return compare.welch(record.scores(network, method), record.scores(network, "full"))


def interval(network, method):
    found = compared(network, method)
    return f"{found.low:+.2f} to {found.high:+.2f}"


def p_value(p):
    if p < 0.0005:
        return "< 0.001"
    return f"{p:.3f}" if p < 0.0995 else f"{p:.2f}"


def p(network, method):
    return p_value(compared(network, method).p)


def corrected(network, method, paired=False):
    return p_value(record.decided(paired)[network, method])


def significant(paired=False):
    """How many of the comparisons with three seeds are significant at 5 %, corrected for their number."""
    return sum(value < 0.05 for value in record.decided(paired).values())


def verdict(network, method):
    """What the ends say of BCD: behind or ahead where the test decides, else the direction and why it does not."""
    ends = record.behind(network, method)
    side = "behind" if sum(ends) * 2 > len(ends) else "ahead"
    if len(ends) == 1:
        return side + ", one seed"
    if len(ends) == 2:
        return f"{side}, both seeds" if len(set(ends)) == 1 else "undecided"
    return side if record.decided()[network, method] < 0.05 else "undecided"


def of_seeds(value, decimals=2, sign=""):
    """A function of a network and a method: the mean of a value of its trainings."""
    def found(network, method="full"):
        return mean([value(training) for training in record.seeds(network, method).values()], decimals, sign)
    return found


def of_pairs(rule):
    """A function of the same: the mean of its multipliers by a rule."""
    def found(network, method):
        return mean(record.multipliers(network, method, rule))
    return found


same_loss = of_pairs(curves.plateau_multiplier)
same_training_loss = of_pairs(record.same_training_loss)
own_plateau = of_pairs(curves.own_multiplier)
gain_after = of_seeds(record.gain, sign="+")  # after its plateau
at_plateau = of_seeds(lambda each: each["plateau_score"])  # where early stopping ends it; "–" where it ends none
final_loss = of_seeds(lambda each: each.evaluation["loss"][-curves.MEAN:].mean() if each.is_finished else math.nan, 3)
at_its_best = of_seeds(registered.at_its_best)
epochs_to_its_best = of_seeds(lambda each: curves.epochs_at(each, registered.updates_to_its_best(each)), 0)
lowest_loss = of_seeds(lambda each: curves.trailing(each.evaluation["loss"], curves.MEAN).min() if each.is_finished
                       else math.nan, 3)
training_loss = of_seeds(lambda each: each["train_loss"], 4)  # of the last fortieth of the updates


def late_spread(network, method="full"):
    """The standard deviations of the scores of the last twenty evaluations: the lowest and the highest of the seeds."""
    return span([statistics.stdev(curves.scores(each)[-20:]) for each in record.seeds(network, method).values()], 1)


def mean_own_plateau(*what):
    """The mean of the mean multipliers of these pairs of a network and a method, by default of all that have one and
    train on all data."""
    found = [record.multipliers(*each, curves.own_multiplier) for each in what or record.ALL_DATA]
    return f"{statistics.fmean(np.nanmean(values) for values in found if np.isfinite(values).any()):.2f}"


def thirds_with_adam():
    """The pairs of BCD-1/3 with Adam that train on all data."""
    return [what for what in record.ALL_DATA
            if what[1].startswith("bcd3") and record.first(*what)["optimizer"].startswith("adam")]


def training_losses_above():
    """Of all pairs of seeds on all data that finished: in how many BCD ends at a higher training loss; and their number."""
    ends = [bcd["train_loss"] > full["train_loss"] for what in record.ALL_DATA for bcd, full in record.pairs(*what)
            if bcd.is_finished and full.is_finished]
    return sum(ends), len(ends)


def gains(*what, part=None):
    """For pairs of a network and a method: what each gains, in the mean of its seeds, after a part of its training, or
    after its plateau; the lowest and the highest of those that have one."""
    found = []
    for network, method in what:
        gained = compare.mean([record.gain(each, part) for each in record.seeds(network, method).values()])[0]
        if math.isfinite(gained):  # not of a cosine
            found.append(gained)
    return span(found, 1, "+")


def best(network, method="full"):
    """The highest mean of five evaluations: (score, epoch)."""
    each, = record.seeds(network, method).values()
    means = curves.trailing(curves.scores(each), curves.MEAN)
    at = int(np.argmax(means))
    epoch = curves.epochs_at(each, float(each.evaluation["step"][at + curves.MEAN - 1]))
    return f"{means[at]:.2f}", f"{epoch:.0f}"


def phase_updates(network, method):
    """The lengths of all finished phases: their mean, and their median."""
    switches = [each.switches["step"].astype(int) for each in record.seeds(network, method).values()]
    lengths = np.concatenate([np.diff(steps) for steps in switches])
    return f"{lengths.mean():.0f}", f"{np.median(lengths):.0f}"


def difference(network, method, other):
    """Of two methods of BCD: the difference of their scores, and its interval."""
    found = compare.welch(record.scores(network, method), record.scores(network, other))
    return f"{found.value:+.2f} ({found.low:+.2f} to {found.high:+.2f})"


def updates(network, method="full"):
    return record.first(network, method)["steps"]


def plateaus():
    """Of the trainings of converged.h5: how many came to a plateau, and how many there are."""
    found = [each["plateau_steps"] for each in record.trainings("converged.h5")]
    return sum(map(math.isfinite, found)), len(found)


def trained(file):
    return len(record.trainings(file))


def planned(experiment):
    """How many trainings `bcd experiment NAME` has."""
    asked = types.SimpleNamespace(preset="laptop", models=None, optimizers=None, seeds=None, flags={})
    return len(trainings.Plan(experiment, asked).rows)


def added_rates():
    """What was added to the rates of group 3: method, rate and loss, by rising rate."""
    names = {"sgd": "full, SGD without momentum", "adamw": choose.FULL}
    found = [("BCD-1/3" if one["submodels"] == 3 else names[one["optimizer"]], one["lr"], registered.at_the_end(one))
             for one in record.trainings("smollm-added-rates.h5")]
    return sorted(found, key=lambda each: (each[0] != names["sgd"], each[0] == "BCD-1/3", each[1]))


def while_choosing_rates():
    """Group 3's trainings of one seed on the text that chose the rates, with what was added to them later: the lowest
    loss of each of three methods at the best of its rates."""
    made = [one for name in ("smollm-rates.h5", "smollm-added-rates.h5") for one in record.trainings(name)]

    def lowest(optimizer, momentum, submodels):
        return min(registered.at_the_end(one) for one in made if (one["optimizer"], one.setting("momentum")) ==
                   (optimizer, momentum) and one["submodels"] == submodels and one.setting("order") == "cyclic")
    return {name: f"{lowest(*what):.3f}" for name, what in
            {"full": ("adamw", 0, 1), "plain": ("sgd", 0, 1), "thirds": ("adamw", 0, 3)}.items()}


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
            "difference": f"{d.value:+.3f} ({d.low:+.3f} to {d.high:+.3f})" if d else "", "answer": one.answer,
            "p": p_value(one.p) if d else "", "seconds": "–" if math.isnan(time) else f"{time:.2f}",
            "operations": "–" if math.isnan(one.operations) else f"{one.operations / full.operations:.2f}",
            "trained": f"{one.trained:.0f}", "updates": one.updates, "rate": f"{one.trainings[0]['lr']:g}".replace("e-0", "e-"),
            "equal_parts": f"{one.equal_parts:.0f}",
            **{column: mean([one.mean(column, 1 / tables.MIB)], 0) for column in ("peak_total", "resident")}})
    return rows


def by_method():
    """The same by the names of the methods."""
    return {row["name"]: row for row in fine_tuned()}


def tuned_difference(name, other):
    """By how much lower one method of fine-tuning ended than another, with its interval; and p, of this test alone."""
    losses = {one.method.name: one.losses for one in choose.tuned(choose.trainings(choose.FILE))}
    found = compare.welch(losses[other], losses[name])
    return f"{found.value:.3f} ({found.low:.3f} to {found.high:.3f})", p_value(found.p)


def each_of(losses):
    return " ".join(f"{loss:.3f}" for loss in losses)


def pairing():
    """The correlations of the scores of BCD and of the full update over seeds: the lowest, the highest and the mean."""
    found = record.correlations()
    return f"{span(found)}, with a mean of {statistics.fmean(found):.2f}"


def listed(values):
    return ", ".join(f"{value:.2f}" for value in values)


def pairs_behind():
    """Of all pairs of seeds in the long trainings: how many end behind, how many there are, and are of less data."""
    every = record.THREE_SEEDS + record.FEWER_SEEDS
    ends = [end for what in every for end in record.behind(*what)]
    return sum(ends), len(ends), sum(len(record.pairs(*what)) for what in every if " x0." in what[1])


def ahead(network, method):
    """With how many seeds BCD ends at a better score than the full update."""
    return record.behind(network, method).count(False)


def behind(network, method):
    """With how many it ends at a worse one."""
    return record.behind(network, method).count(True)


def remedy(change):
    """Of a change to BCD-1/3 with a cosine: its difference from plain BCD, and p, corrected for the changes tried."""
    ps = {each: compare.welch(record.scores("half10-cosine", "bcd3 " + each), record.scores("half10-cosine", "bcd3")).p
          for each in record.REMEDIES_TRIED}
    return dict(zip(ps, map(p_value, compare.holm(list(ps.values())))))[change]


def found_by_three(network, method, level):
    """The difference at the end that three seeds of each find in four of five cases, by the spreads measured here."""
    spreads = [statistics.stdev(record.scores(network, each)) for each in (method, "full")]
    return f"{record.found_in_four_of_five(spreads, 3, level):.1f}"


def seeds_to_decide(network, method, other, points):
    """The seeds of each with which a difference of so many points would be found, by the spreads measured here."""
    spreads = [statistics.stdev(record.scores(network, each)) for each in (method, other)]
    return record.seeds_for(points, math.sqrt(sum(spread**2 for spread in spreads) / 2))


# ---- published trainings ------------------------------------------------------------------------

IMAGES_WITH_SGD = "resnet8", "half10", "half10-cosine", "half", "half-longest", "half-plain"
# Ours next to the published trainings: by the label of a row, networks and methods.
OURS = {
    "ResNet8 SGD, full": [(network, "full") for network in IMAGES_WITH_SGD],
    "ResNet8 SGD, 1/3": [(network, "bcd3") for network in IMAGES_WITH_SGD],
    "ResNet8 Adam, full": [(network, "full") for network in ("half10-adam", "half-plain-adam")],
    "ResNet8 Adam, 1/3": [(network, "bcd3") for network in ("half10-adam", "half-plain-adam")],
    "ResNet14 SGD, full": [("resnet14", "full")], "ResNet14 SGD, 1/3": [("resnet14", "bcd3")],
    "ResNet20 SGD, full": [("resnet20", "full")], "ResNet20 SGD, 1/3": [("resnet20", "bcd3")],
    "GPT2-wiki Adam, full": [("gpt", "full"), ("gpt-cosine", "full")],
    "GPT2-wiki Adam, 1/3": [("gpt", "bcd3"), ("gpt-cosine", "bcd3")],
    "1 Adam": [("gpt", "full")], "1/2 Adam": [("gpt", "bcd2")], "1/3 Adam": [("gpt", "bcd3")],
    "1/4 Adam": [("gpt", "bcd4")]}


# The same in Tables 9 and 10.
OURS_LESS = {
    9: {"0.9 1/3 Adam": [("gpt", "bcd3 x0.9")], "1 1/3 Adam": [("gpt", "bcd3")], "1 1 Adam": [("gpt", "full")]},
    10: {"0.9 1/3": [("half10", "bcd3 x0.9 every 2e"), ("half", "bcd3 x0.9 every 1e")],
         "1 1/3": [("half10", "bcd3 every 2e"), ("half", "bcd3 every 1e")],
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


def filled_ratios():
    """The simulated speed of BCD-1/3 on half the GPUs over that of the full update, in filled pipelines, for each pair
    of published Table 4."""
    file = made_of("timing.h5")["table4"]
    steps, ratios = zip(file.labels, file.column("filled")), []
    for label, cell in steps:
        if label.endswith(" full"):
            full = cell.value
        elif label.endswith(" BCD-1/3") and not math.isnan(cell.value):
            ratios.append(full / cell.value)
    return ratios


# ---- changes ------------------------------------------------------------------------------------

def changes():
    with open(CHANGES, "rb") as file:
        return tomllib.load(file)["change"]


# ---- tables of files ----------------------------------------------------------------------------

@functools.cache
def made_of(files):
    """What `bcd report` makes of files of results, with commas between them."""
    return report.tables_of([str(record.RESULTS / name) for name in files.split(",")])


def cell(files, table, row, column):
    """A cell as it is printed, without its mark, by the label of its row and the name of its column."""
    return made_of(files)[table].text(row, column)


def value(files, table, row, column):
    return made_of(files)[table].value(row, column)


def operations():
    """An update of BCD-1/3 over a full one, counted from shapes: the least and the most of the long trainings."""
    table = made_of("converged.h5")["per_update"]
    return span([cell.value for label, cell in zip(table.labels, table.column("operations")) if "1/3" in label])


def answered(file, label):
    """A row of the answers of a group of the second protocol, as text by columns."""
    table = made_of(file)["answers"]
    value = functools.partial(table.value, label)
    return {"difference": f"{value('difference'):+.2f} ({value('low'):+.2f} to {value('high'):+.2f})",
            "p": p_value(value("p")), "answer": value("answer")}


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
        tables.print_markdown(out, shown)
        return out.getvalue() if title else out.getvalue().split("\n", 2)[2]


def functions():
    """All of them, by name, for one document."""
    return globals() | {"table": Printed().table, "three_seeds": record.THREE_SEEDS, "ours": OURS,
                        "ours_less": OURS_LESS,
                        "all_data_images": [what for what in record.THREE_SEEDS + record.SECOND_TRAININGS
                                            if what in record.ALL_DATA],
                        "less_data_images": [what for what in record.THREE_SEEDS if what not in record.ALL_DATA]}
