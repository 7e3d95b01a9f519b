"""What the sources of the documents call: numbers of the record and cells of tables, as text."""
import io
import math
import statistics
import subprocess
import tomllib

import numpy as np

import published
import record
import tables
from errors import Refused

TABLES = ("cost.h5", "memory.h5", "timing.h5", "savings.h5")
CHANGES = record.RESULTS.parent / "paper" / "changes.toml"


# ---- numbers ------------------------------------------------------------------------------------

def mean(values, decimals=2, sign=""):
    """The mean over seeds and their standard deviation: "84.29 ± 0.44".  NaN has no place in it; of nothing: "–"."""
    values = [value for value in values if not math.isnan(value)]
    if not values:
        return "–"
    text = f"{statistics.fmean(values):{sign}.{decimals}f}"
    return text if len(values) == 1 else f"{text} ± {statistics.stdev(values):.{decimals}f}"


def span(values, decimals=2, sign=""):
    """The lowest and the highest value: "0.63 to 0.74"."""
    return f"{min(values):{sign}.{decimals}f} to {max(values):{sign}.{decimals}f}"


def name(network):
    return record.NETWORKS[network][0]


def parameters(network):
    each = next(iter(record.seeds(network, "full").values()))
    return each.parameters


def seeds(network, method="full"):
    return len(record.seeds(network, method))


def epochs(network, method="full"):
    return f"{next(iter(record.seeds(network, method).values())).epochs:.0f}"


def score(network, method="full", part=1.0):
    return mean(record.scores(network, method, part))


def at_equal_updates(network, method):
    """The score of BCD after as many updates as the full update had; "–" under a cosine that is longer."""
    bcd, full = record.pairs(network, method)[0]
    if bcd.settings["schedule"] == "cosine" and bcd.steps != full.steps:
        return "–"
    return score(network, method, min(1.0, full.steps / bcd.steps))


def rounded(network, method, decimals, equal=False):
    """The mean score, with its unit; `equal`: after as many updates as the full update had."""
    bcd, full = record.pairs(network, method)[0]
    mean_score = statistics.fmean(record.scores(network, method, min(1.0, full.steps / bcd.steps) if equal else 1.0))
    return f"{mean_score:.{decimals}f}" + (" %" if bcd.images else "")


def gap(network, method, part=1.0, full_part=None, full=None):
    return mean(record.gaps(network, method, part, full_part, full), sign="+")


def gap_percent(network, method, part, ratio):
    """The gaps of the seeds in per cent of the full update's score, which had a ratio of the epochs that BCD had at that
    part of its own: their span, "+0.6 to +2.7"."""
    return span([100 * (bcd.score_at(part) / full.score_at(part / ratio) - 1)
                 for bcd, full in record.pairs(network, method)], 1)


def compared(network, method):
    return record.welch(record.scores(network, method), record.scores(network, "full"))


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


def same_loss(network, method):
    return mean(record.multipliers(network, method, record.same_loss))


def same_training_loss(network, method):
    return mean(record.multipliers(network, method, record.same_training_loss))


def own_plateau(network, method):
    return mean(record.multipliers(network, method, record.own_plateau))


def mean_own_plateau(*what):
    """The mean over networks of their mean multipliers."""
    means = [np.nanmean(record.multipliers(*each, record.own_plateau)) for each in what]
    return f"{statistics.fmean(means):.2f}"


def gains(*what, part=None):
    """For pairs of a network and a method: what each gains, in the mean of its seeds, after a part of its training, or
    after its plateau; the lowest and the highest."""
    found = []
    for network, method in what:
        values = [record.gain_after_plateau(each) if part is None else each.score_at() - each.score_at(part)
                  for each in record.seeds(network, method).values()]
        found.append(float(np.nanmean(values)))
    return span(found, 1, "+")


def gain_after(network, method):
    """What it gains after its plateau, ± between seeds."""
    return mean([record.gain_after_plateau(each) for each in record.seeds(network, method).values()], sign="+")


def best(network, method="full"):
    """The highest mean of five evaluations: (score, epoch)."""
    each, = record.seeds(network, method).values()
    means = each.mean(each.score)
    at = int(np.argmax(means))
    return f"{means[at]:.2f}", f"{each.epoch(at + record.MEAN - 1):.0f}"


def lowest_loss(network, method="full"):
    each, = record.seeds(network, method).values()
    return f"{each.mean(each.loss).min():.3f}"


def final_loss(network, method="full"):
    """The mean validation loss of the last five evaluations."""
    return mean([each.loss[-record.MEAN:].mean() for each in record.seeds(network, method).values()], 3)


def phase_updates(network, method):
    """The lengths of all finished phases: their mean, and their median."""
    lengths = np.concatenate([np.diff(each.phases) for each in record.seeds(network, method).values()])
    return f"{lengths.mean():.0f}", f"{np.median(lengths):.0f}"


def difference(network, method, other):
    """Of two methods of BCD: the difference of their scores, and its interval."""
    found = record.welch(record.scores(network, method), record.scores(network, other))
    return f"{found.difference:+.2f} ({found.low:+.2f} to {found.high:+.2f})"


def training_loss(network, method="full"):
    """The mean training loss of the last fortieth of the updates."""
    return mean([float(record.smoothed(each, each.steps // 40)[1][-1])
                 for each in record.seeds(network, method).values()], 4)


def updates(network, method="full"):
    return next(iter(record.seeds(network, method).values())).steps


def at_plateau(network, method="full"):
    """The score where early stopping ends the training; "–" where it ends none."""
    found = [(each, record.plateau(each)) for each in record.seeds(network, method).values()]
    return mean([each.score[end - record.MEAN + 1:end + 1].mean() for each, end in found if end is not None])


def plateaus():
    """Of the trainings of converged.h5: how many came to a plateau, and how many there are."""
    found = [record.plateau(each) for each in record.trainings("converged.h5")]
    return sum(end is not None for end in found), len(found)


def planned():
    """How many trainings `bcd experiment converged` has."""
    return len(tables.of(record.RESULTS / "converged-laptop-estimate.h5")["estimate"].labels) - 1


def pairing():
    return f"{record.pairing():.2f}"


def listed(values):
    return ", ".join(f"{value:.2f}" for value in values)


def pairs_behind():
    """Of all pairs of seeds in the long trainings: how many end behind, and how many there are."""
    ends = [end for what in record.THREE_SEEDS + record.FEWER_SEEDS for end in record.behind(*what)]
    return sum(ends), len(ends)


def remedy(change):
    """Of a change to BCD-1/3 with a cosine: its difference from plain BCD, and p, corrected for the changes tried."""
    ps = {each: record.welch(record.scores("half10-cosine", "bcd3 " + each), record.scores("half10-cosine", "bcd3")).p
          for each in record.REMEDIES_TRIED}
    return dict(zip(ps, map(p_value, record.holm(list(ps.values())))))[change]


def seeds_to_decide(network, method, other, points):
    """The seeds of each with which a difference of so many points would be found, by the spreads measured here."""
    spreads = [statistics.stdev(record.scores(network, each)) for each in (method, other)]
    return record.seeds_for(points, math.sqrt(sum(spread**2 for spread in spreads) / 2))


# ---- published trainings ------------------------------------------------------------------------

# Ours next to the published trainings: by the label of a row, networks and methods.
OURS = {
    "ResNet8 SGD, full": [(network, "full") for network in ("resnet8", "half10", "half10-cosine", "half")],
    "ResNet8 SGD, 1/3": [(network, "bcd3") for network in ("resnet8", "half10", "half10-cosine", "half")],
    "ResNet8 Adam, full": [("half10-adam", "full")], "ResNet8 Adam, 1/3": [("half10-adam", "bcd3")],
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
         "1 1/3": [("half10", "bcd3 every 2e"), ("half", "bcd3 every 1e")], "1 1": [("half10", "full"), ("half", "full")]}}


def published_rows(table, images=None):
    """The trainings of Table 2, 9, 10 or 11, with their cells as text; `images`: of image models, or of the others."""
    rows = []
    for row in published.trainings(table):
        if images in (None, row.is_images):
            score = f"{row.score:.1f} p" if row.is_images else f"{row.score:.2f} r" if row.is_ten_perplexity else f"{row.score} p"
            kind = {"sgd": "SGD", "adam": "Adam"}[row.optimizer]
            label = f"{row.row} {kind}, {'full' if row.submodels == 1 else '1/3'}" if table == 2 else row.row
            rows.append({"label": label, "trained": f"{row.duration:.0f} p", "score": score, "loss": f"{row.loss:.4f} p",
                         "multiplier": "" if math.isnan(row.multiplier) else f"{row.multiplier:.2f} r",
                         "memory": f"{row.mib:.2f} p"})
    return rows


def largest_loss_difference():
    """Of Table 2: the BCD row whose printed loss differs most from its full update's, and by how much."""
    found = [(abs(row.loss - row.full.loss), row.row) for row in published.trainings(2) if row.submodels > 1]
    return max(found)[1], max(found)[0]


# ---- steps in pipelines -------------------------------------------------------------------------

def pipeline_ratios(table):
    """A measured step of the full update on two ranks over one of BCD-1/3 on one, for each number of micro-batches."""
    found = tables.of(record.RESULTS / "timing.h5")[table]
    steps = {(label, ranks.value, micro.value): cell.value for label, ranks, micro, cell in zip(
        found.labels, found.column("ranks"), found.column("micro_batches"), found.column("measured"))}
    counts = sorted({micro for _, _, micro in steps})
    return [steps["full plain", 2, micro] / steps["BCD-1/3 plain", 1, micro] for micro in counts]


def filled_ratios():
    """The simulated speed of BCD-1/3 on half the GPUs over that of the full update, in filled pipelines, for each pair
    of published Table 4."""
    file = tables.of(record.RESULTS / "timing.h5")["table4"]
    steps, ratios = zip(file.labels, file.column("filled")), []
    for label, cell in steps:
        if label.endswith(" full"):
            full = cell.value
        elif label.endswith(" BCD-1/3") and not math.isnan(cell.value):
            ratios.append(full / cell.value)
    return ratios


def time_over_distributed(multiplier):
    """The time of BCD on half the GPUs over that of distributed training, by the published steps: the mean of Table 4."""
    speedups = tables.of(record.RESULTS / "cost.h5")["speedup"].column("speedup")
    return multiplier * statistics.fmean(1 / cell.value for cell in speedups)


# ---- changes ------------------------------------------------------------------------------------

def changes():
    with open(CHANGES, "rb") as file:
        return tomllib.load(file)["change"]


# ---- tables of files ----------------------------------------------------------------------------

class Reports:
    """Tables of files as Markdown, cells of them, and hours.  A note of a table is printed once in a document."""

    def __init__(self, program):
        self.program, self.printed, self.texts = program, set(), {}

    def markdown(self, files, table):
        """What `bcd report` prints of a table."""
        if (files, table) not in self.texts:
            if files in TABLES or files.endswith("-estimate.h5"):
                out = io.StringIO()
                tables.print_markdown(out, tables.of(record.RESULTS / files)[table])
                text = out.getvalue()
            else:
                paths = [record.RESULTS / file for file in files.split(",")]
                command = [self.program, "report", "--markdown", "--table", table, *paths]
                done = subprocess.run(command, capture_output=True, text=True)
                if done.returncode:
                    raise Refused(f"{files}: {done.stderr.strip()}")
                text = done.stdout
            self.texts[files, table] = text
        return self.texts[files, table]

    def rows(self, files, table):
        """Its head and rows, with the marks of sources."""
        lines = [line for line in self.markdown(files, table).splitlines() if line.startswith("|")]
        cells = [[part.strip() for part in line[1:-1].split("|")] for line in lines]
        return cells[0], cells[2:]

    def table(self, files, table, without=(), rows=None, title=True):
        """A table, without the columns whose heads contain one of the words, of all rows or of those whose labels
        contain one of the words."""
        text = self.markdown(files, table)
        head, body = self.rows(files, table)
        kept = [c for c, word in enumerate(head) if not any(part in word for part in without)]
        body = [row for row in body if rows is None or any(part in row[0] for part in rows)]
        lines = [line for line in text.rstrip("\n").split("\n") if not line.startswith("|")]
        notes = [line for line in lines if line.startswith("- ") and line not in self.printed]
        self.printed.update(notes)
        out = [lines[0], ""] if title else []
        out.append("| " + " | ".join(head[c] for c in kept) + " |")
        out.append("|---" + "|---:" * (len(kept) - 1) + "|")
        out += ["| " + " | ".join(row[c] for c in kept) + " |" for row in body]
        legend = [line for line in lines if line[:2] in ("m ", "s ", "c ", "r ", "p ", "g ")]
        for part in (legend, notes):
            if part:
                out += ["", *part]
        return "\n".join(out)

    def cell(self, file, table, row, column, decimals=None):
        """A cell, by the label of its row and the name of its column in the file."""
        found = tables.of(record.RESULTS / file)[table]
        return found.text(row, column) if decimals is None else f"{found.value(row, column):.{decimals}f}"

    def value(self, file, table, row, column):
        return tables.of(record.RESULTS / file)[table].value(row, column)

    def study(self, files, table, row, column):
        """A cell of a table of trainings, by the label of its row and the head of its column."""
        head, body = self.rows(files, table)
        for cells in body:
            if cells[0] == row:
                text = cells[head.index(column)]
                return text[:-2] if text[-2:-1] == " " and text[-1] in "mscrpg" else text
        raise Refused(f"{files}: {table} has no row {row!r}")

    def operations(self):
        """An update of BCD-1/3 over a full one, counted from shapes: the least and the most of the long trainings."""
        head, body = self.rows("converged.h5", "per_update")
        return span([float(row[head.index("operations (/ full)")].split()[0]) for row in body if "1/3" in row[0]])

    def hours(self, file):
        """Of training, evaluations left out: the table has the mean seconds of each row's seeds."""
        _, body = self.rows(file, "trainings")
        seconds = sum(int(row[1]) * float(row[9].split()[0]) for row in body)
        return f"{seconds / 3600:.2g}"

    def functions(self):
        return {function.__name__: function for function in (self.table, self.cell, self.value, self.study, self.operations, self.hours)}


NUMBERS = [parameters, span, name, seeds, epochs, score, at_equal_updates, rounded, gap, gap_percent, interval, p, corrected, significant,
           verdict, same_loss, same_training_loss, own_plateau, mean_own_plateau, gains, gain_after, best, lowest_loss, final_loss,
           phase_updates, difference, seeds_to_decide, pairs_behind, remedy, training_loss, updates, at_plateau,
           plateaus, planned, pairing, listed, published_rows, largest_loss_difference, pipeline_ratios, filled_ratios,
           time_over_distributed]


def functions(program):
    """All of them, by name, for one document."""
    return {**{function.__name__: function for function in NUMBERS + [changes]}, **Reports(program).functions(),
            "three_seeds": record.THREE_SEEDS, "fewer_seeds": record.FEWER_SEEDS, "ours": OURS, "ours_less": OURS_LESS}
