"""Which method has the lowest loss at one memory: group 7 of protocol.md, at equal tokens and at equal seconds."""
import math

import compare
import curves
import registered
from measures import mean_cell
from tables import FREE, MEASURED, NONE, TEXT, Column, Table

FILE, SPEED = "equal-memory", "equal-memory-speed"  # the experiments, and their files of results
TOKENS, SECONDS = "equal tokens", "equal seconds"


def methods(cases, experiment):
    return [method for method in registered.methods(cases) if registered.group_of(method.first) == experiment]


def kind(method):
    """What a method has in common with the training that was timed: all but the rate and the length."""
    first = method.first
    return first["model"], first["optimizer"], first["submodels"], first.setting("always-active")


def name(method):
    """Its label, which says what is always active."""
    always = method.first.setting("always-active")
    return method.label + (f" always-active {always}" if always and "always-active" not in method.label else "")


def budgets(cases):
    """(name, updates of each method) of equal tokens, in batches of one size, and of equal seconds: those that the
    fastest method's updates take.  The latter only where each method was timed, all of them on one computer; nothing of
    a single method."""
    made, timed = methods(cases, FILE), methods(cases, SPEED)
    if len(made) < 2:
        return
    fewest = min(method.first["steps"] for method in made)
    yield TOKENS, [fewest] * len(made)
    times = {kind(method): curves.seconds_per_update(method.first) for method in timed}
    if all(times.get(kind(method), math.nan) > 0 for method in made) and all(
            method.first.times_comparable(timed[0].first) for method in timed):
        least = min(times[kind(method)] for method in made)
        # The ratio is first, so that the fastest has all of its updates whatever is rounded.
        yield SECONDS, [math.floor(fewest * (least / times[kind(method)])) for method in made]


def loss_after(training, updates):
    """The mean of the last evaluations up to an update; NaN of fewer, or where it diverged."""
    return curves.mean_loss(training, updates)[0] if training.is_finished else math.nan


def table(cases):
    """The table of the methods of group 7 by rising loss."""
    made = methods(cases, FILE)
    found = Table("lowest", "Which has the lowest loss at this memory?", "training", [
        Column("seeds", "seeds", "", 0), Column("memory", "MiB", "peak", 1, MEASURED), Column("updates", "updates", "", FREE, NONE),
        Column("loss", "loss", "", 4, MEASURED), Column("above", "above the lowest", "", 4, MEASURED),
        Column("low", "above the lowest", "95 %, from", 4, MEASURED), Column("high", "above the lowest", "95 %, to", 4, MEASURED),
        Column("answer", "the lowest?", kind=TEXT)])
    names = []
    for budget, updates in budgets(cases):
        names.append(budget)
        rows = [(method, count, [loss_after(training, count) for training in method.trainings])
                for method, count in zip(made, updates)]
        rows.sort(key=lambda row: nan_last(compare.mean_of_all(row[2])[0]))
        lowest, second = rows[0][2], rows[1][2]
        for place, (method, count, losses) in enumerate(rows):
            above = compare.welch(losses, lowest)
            memory = compare.mean([training.peak for training in method.trainings])[0]
            found.row(f"{name(method)}, {budget}", float(len(losses)), memory, float(count), mean_cell(losses),
                      *((above.value, above.low, above.high) if place else (None, None, None)),
                      "" if place else "yes" if compare.welch(second, lowest).low > 0 else "undecided")
    found.note(registered.RULES + ": the mean of the last five evaluations up to so many updates; differences from the lowest "
               "with their 95 % intervals by Welch's t-test.  \"yes\": that of the next one lies above zero.  Equal seconds: "
               f"those of the fastest method's updates, by the times of {SPEED}.h5.  Empty: a seed diverged, or has fewer "
               "evaluations.")
    if SECONDS not in names:
        found.note(f"Not at equal seconds: these take the times of all methods on one computer, {SPEED}.h5.")
    return found


def nan_last(loss):
    return math.inf if math.isnan(loss) else loss
