"""What the sources of the documents say of fine-tuning: what each method of choose.py reached, as text."""
import math
import statistics

import choose
import compare
import record
import registered
import tables
from written import mean, p_value, with_interval


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
            "difference": with_interval(d.value, d.low, d.high, 3) if d else "", "answer": one.answer,
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
    return with_interval(found.value, found.low, found.high, 3, ""), p_value(found.p)


def each_of(losses):
    return " ".join(f"{loss:.3f}" for loss in losses)
