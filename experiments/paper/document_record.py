"""What the sources of the documents say of the record: its trainings by network and method, as text."""
import dataclasses
import math
import statistics
import types

import numpy as np

import compare
import curves
import record
import registered
import tables
import trainings


# ---- numbers as text ----------------------------------------------------------------------------

class Text(str):
    """Text whose parts have names, so that a source need not take it apart; a part that is not there it cannot name."""

    def __new__(cls, text, **parts):
        made = super().__new__(cls, text)
        vars(made).update(parts)
        return made


def mean(values, decimals=2, sign=""):
    """The mean over seeds and their standard deviation: "84.29 ± 0.44".  NaN has no place in it, which is said:
    "1.43 ± 0.36 (2 of 3)", or of two of three starred: "1.43 ± 0.36*"; of nothing: "–".  value: the mean alone; number:
    not as text."""
    number, spread, known = compare.mean(values)
    if not known:
        return Text("–", starred="–")
    value = f"{number:{sign}.{decimals}f}"
    text = value + (f" ± {spread:.{decimals}f}" if known > 1 else "")
    if known == len(values):
        return Text(text, value=value, number=number, starred=text)
    stars = {"starred": f"{text}*"} if (known, len(values)) == (2, 3) else {}
    return Text(f"{text} ({known} of {len(values)})", value=value, number=number, **stars)


def refuse_unknown(*values):
    """NaN would be the word "nan" in a sentence."""
    if any(map(math.isnan, values)):
        raise ValueError(f"no text of {values}")


def span(values, decimals=2, sign=""):
    """The lowest and the highest value: "0.63 to 0.74"; none may be missing."""
    refuse_unknown(*values)
    low, high = (tables.format_number(value, decimals, sign) for value in (min(values), max(values)))
    return Text(f"{low} to {high}", low=low, high=high)


def bounds(difference, decimals=2, sign="+"):
    """Of the interval of a compare.Difference.  One that rounds to zero keeps its sign, which says on which side the
    interval ends."""
    refuse_unknown(difference.low, difference.high)
    low, high = (f"{bound:{sign}.{decimals}f}" for bound in (difference.low, difference.high))
    return Text(f"{low} to {high}", low=low, high=high)


def with_interval(difference, decimals=2, sign="+"):
    """A compare.Difference and its interval: "+1.10 (+0.51 to +1.70)"."""
    value, between = f"{difference.value:{sign}.{decimals}f}", bounds(difference, decimals, sign)
    return Text(f"{value} ({between})", value=value, low=between.low, high=between.high)


def p_value(p):
    refuse_unknown(p)
    if p < 0.0005:
        return "< 0.001"
    return f"{p:.3f}" if p < 0.0995 else f"{p:.2f}"


def with_interval_and_p(difference):
    return f"{with_interval(difference)}, p {p_value(difference.p)}"


def listed(values):
    return ", ".join(f"{value:.2f}" for value in values)


# ---- settings -----------------------------------------------------------------------------------

def name(network):
    return record.NETWORKS[network][0]


def title(network, method):
    """The same, where its trainings by phases of an epoch are told apart."""
    if network == "half-longest" and method in list(record.LONGEST_THIRDS)[1:]:
        return f"ResNet-8x8, longest, {record.LONGEST_THIRDS[method]}"
    return "ResNet-8x8, phases of an epoch" if (network, method) == ("half", "BCD-1/3 every 1e") else name(network)


def part(method):
    """Which part of the network trains at a time: "1/3"."""
    return method.split(" ")[0].removeprefix("BCD-")


def parameters(network):
    return record.find(network, "full").first["parameters"]


def seeds(network, method="full"):
    return len(record.find(network, method).trainings)


def epochs(network, method="full"):
    return f"{record.find(network, method).first['epochs']:.0f}"


def rate(network, method="full"):
    return f"{record.find(network, method).first['lr']:g}"


def phases(network, method):
    return record.find(network, method).first.settings["switch-every"]


def fraction(network, method):
    return f"{record.find(network, method).first.settings['fraction']:g}"


def updates(network, method="full"):
    return record.find(network, method).first["steps"]


def phase_updates(network, method):
    """The lengths of all finished phases: their mean, and their median."""
    switches = [each.switches["step"].astype(int) for each in record.find(network, method).trainings]
    lengths = np.concatenate([np.diff(steps) for steps in switches])
    return f"{lengths.mean():.0f}", f"{np.median(lengths):.0f}"


def trained(file):
    return len(record.trainings(file))


def planned(experiment):
    """How many trainings `bcd experiment NAME` has."""
    asked = types.SimpleNamespace(preset="laptop", models=None, optimizers=None, seeds=None, flags={})
    return len(trainings.Plan(experiment, asked).rows)


# ---- scores -------------------------------------------------------------------------------------

def score(network, method="full", part=1.0):
    return mean(record.scores(network, method, part))


def equal_part(network, method):
    """The part of BCD's training after which it had as many updates as the full update; all of it where it never did."""
    bcd, full = record.pairs(network, method)[0]
    return min(1.0, full["steps"] / bcd["steps"])


def equal_operations(network, method):
    """The part of BCD's training after which it took as many operations, counted from shapes, as the full update."""
    bcd, full = record.pairs(network, method)[0]
    return curves.updates_within(bcd, curves.OPERATIONS, curves.total_cost(full, curves.OPERATIONS)) / bcd["steps"]


def at_equal_updates(network, method):
    """The score of BCD after as many updates as the full update had; "–" under a cosine that is longer."""
    if not curves.comparable(*record.pairs(network, method)[0]):
        return "–"
    return score(network, method, equal_part(network, method))


def rounded(network, method, decimals, equal=False):
    """The mean score, with its unit; `equal`: after as many updates as the full update had."""
    scores = record.scores(network, method, equal_part(network, method) if equal else 1.0)
    return f"{statistics.fmean(scores):.{decimals}f}" + (" %" if record.find(network, method).first.is_images else "")


def of_seeds(value, decimals=2, sign=""):
    """A function of a network and a method: the mean of a value of its trainings."""
    def found(network, method="full"):
        return mean([value(training) for training in record.find(network, method).trainings], decimals, sign)
    return found


gain_after = of_seeds(record.gain, sign="+")  # after its plateau
at_plateau = of_seeds(lambda each: each["plateau_score"])  # where early stopping ends it; "–" where it ends none
final_loss = of_seeds(lambda each: curves.mean_loss(each)[0] if each.is_finished else math.nan, 3)
at_its_best = of_seeds(registered.at_its_best)
last_gain = of_seeds(registered.last_gain, sign="+")  # of the last fifth of the evaluations
epochs_to_its_best = of_seeds(lambda each: curves.epochs_at(each, registered.updates_to_its_best(each)), 0)
lowest_loss = of_seeds(lambda each: curves.trailing(each.evaluation["loss"], curves.MEAN).min() if each.is_finished
                       else math.nan, 3)
training_loss = of_seeds(lambda each: each["train_loss"], 4)  # of the last fortieth of the updates


def late_spread(network, method="full"):
    """The standard deviations of the scores of the last twenty evaluations: the lowest and the highest of the seeds."""
    return span([statistics.stdev(curves.scores(each)[-20:]) for each in record.find(network, method).trainings], 1)


def best(network, method="full"):
    """The highest mean of five evaluations: (score, epoch)."""
    each, = record.find(network, method).trainings
    means = curves.trailing(curves.scores(each), curves.MEAN)
    at = int(np.argmax(means))
    epoch = curves.epochs_at(each, float(each.evaluation["step"][at + curves.MEAN - 1]))
    return f"{means[at]:.2f}", f"{epoch:.0f}"


# ---- BCD and the full update --------------------------------------------------------------------

def gap(network, method, part=1.0, full=None):
    return mean(record.gaps(network, method, part, full), sign="+")


def gap_percent(network, method, part, ratio):
    """The gaps of the seeds after a part of BCD's training, in per cent of the score of the full update after as many
    epochs over a ratio: their span, "0.6 to 2.7"."""
    return span([100 * (record.score_at(bcd, part) / record.score_at(full, part / ratio) - 1)
                 for bcd, full in record.pairs(network, method)], 1)


def ahead_at_equal_updates(network, method):
    """By how much BCD is ahead of the full update's end after as many updates, with its interval, and p."""
    return with_interval_and_p(record.compared(network, method, part=equal_part(network, method)))


def ahead_at_equal_operations(network, method):
    """The same after as many operations."""
    return with_interval_and_p(record.compared(network, method, part=equal_operations(network, method)))


def ends_earlier(network, method, epochs, share=1.0):
    """Had the full update ended 0, 1, ... epochs earlier, and BCD after the same part of that share of its training: at how
    many of these ends BCD is ahead, by how much, on the mean, and at how many p is below 5 %: alone, and times the number
    of registered comparisons."""
    all_epochs = record.find(network, "full").first["epochs"]
    planned = registered.planned(registered.group_of(record.find(network, method).first))
    parts = [1 - earlier / all_epochs for earlier in range(epochs)]
    found = [record.compared(network, method, part=share * part, other_part=part) for part in parts]
    return {"ahead": sum(each.value > 0 for each in found), "by": span([each.value for each in found], 1),
            "mean": f"{statistics.fmean(each.value for each in found):+.2f}",
            "alone": sum(each.p < compare.CHANCE for each in found),
            "decided": sum(planned * each.p < compare.CHANCE for each in found)}


def ahead_by_last(network, method, counts):
    """By how much BCD ends ahead in the mean of its last evaluations, for so many of them: the lowest and the highest;
    of p, times the number of registered comparisons; and at how many that is below 5 %."""
    planned = registered.planned(registered.group_of(record.find(network, method).first))
    found = [compare.welch(*([float(curves.scores(each)[-count:].mean()) for each in record.find(network, which).trainings]
                             for which in (method, "full"))) for count in counts]
    ps = [min(1.0, planned * each.p) for each in found]
    return {"by": span([each.value for each in found]), "p": f"{p_value(min(ps))} to {p_value(max(ps))}",
            "decided": sum(p < compare.CHANCE for p in ps), "counts": len(ps)}


def full_updates_apart(network, other, evaluations=curves.MEAN):
    """By how much the full update of a network is ahead of that of another one after as many updates as that had, in
    the mean of so many evaluations, with its interval."""
    return with_interval(compare.welch(*(
        [curves.mean_score_at(each, updates(other), evaluations) for each in record.find(which, "full").trainings]
        for which in (network, other))))


def brought(network, other, method):
    """What a network's training, by the full update or BCD-1/3, has more than another's, in the mean of the seeds."""
    return f"{record.ends_apart(network, method, other, method if method == 'full' else record.thirds_of(other)):+.1f}"


def ahead_of_other(network, method, other, other_method):
    """By how much a method of one network ends ahead of one of another, with its interval."""
    return with_interval(compare.welch(record.scores(network, method), record.scores(other, other_method)))


def better_by(network, method):
    """By how much BCD ends better, in points or perplexity, with its interval where there are three seeds."""
    found = record.compared(network, method)
    if not record.find(network, method).first.is_images:
        found = dataclasses.replace(found, value=-found.value, low=-found.high, high=-found.low)
    three = found.seeds >= compare.TESTED
    return with_interval(found) if three else f"{found.value:+.2f}"


def difference(network, method, other):
    """Of two methods of BCD: the difference of their scores, and its interval."""
    return with_interval(record.compared(network, method, other))


def interval(network, method):
    return bounds(record.compared(network, method))


def p(network, method):
    return p_value(record.compared(network, method).p)


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


def ahead(network, method):
    """With how many seeds BCD ends at a better score than the full update."""
    return record.behind(network, method).count(False)


def behind(network, method):
    """With how many it ends at a worse one."""
    return record.behind(network, method).count(True)


def pairs_behind(images=None):
    """Of all pairs of seeds in the first trainings, or of those of images or of text: how many end behind, how many there
    are, and are of less data."""
    every = [what for what in record.THREE_SEEDS + record.FEWER_SEEDS
             if images in (None, record.find(*what).trainings[0].is_images)]
    ends = [end for what in every for end in record.behind(*what)]
    return sum(ends), len(ends), sum(len(record.pairs(*what)) for what in every if what not in record.ALL_DATA)


def gains(*what, part=None):
    """For pairs of a network and a method: what each gains, in the mean of its seeds, after a part of its training, or
    after its plateau; the lowest and the highest of those that have one."""
    found = []
    for network, method in what:
        gained = compare.mean([record.gain(each, part) for each in record.find(network, method).trainings])[0]
        if math.isfinite(gained):  # not of a cosine
            found.append(gained)
    return span(found, 1, "+")


def remedy(method):
    """p of the difference of BCD-1/3 with a change from plain BCD, with a cosine, corrected for the changes tried."""
    tried = [each.name for each in record.case("half10-changed").methods if not each.is_plain]
    ps = compare.holm([record.compared("half10-changed", each, "BCD-1/3").p for each in tried])
    return p_value(dict(zip(tried, ps))[method])


def pairing():
    """The correlations of the scores of BCD and of the full update over seeds: the lowest, the highest and the mean."""
    found = record.correlations()
    return f"{span(found)}, with a mean of {statistics.fmean(found):.2f}"


def training_losses_above():
    """Of all pairs of seeds on all data that finished: in how many BCD ends at a higher training loss; and their number."""
    ends = [bcd["train_loss"] > full["train_loss"] for what in record.ALL_DATA for bcd, full in record.pairs(*what)
            if bcd.is_finished and full.is_finished]
    return sum(ends), len(ends)


def spreads(network, *methods):
    """The standard deviations of the scores of each method over its seeds."""
    return [statistics.stdev(record.scores(network, method)) for method in methods]


def found_by_three(network, method, level):
    """The difference at the end that three seeds of each find in four of five cases, by the spreads measured here."""
    return f"{record.found_in_four_of_five(spreads(network, method, 'full'), 3, level):.1f}"


def seeds_to_decide(network, method, other, points=None):
    """The seeds of each with which a difference of so many points, or of those measured here, would be found, by the
    spreads measured here."""
    points = points or record.compared(network, method, other).value
    return record.seeds_for(points, math.sqrt(statistics.fmean(each**2 for each in spreads(network, method, other))))
