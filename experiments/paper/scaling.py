"""How far BCD is behind the full update by the length of a training, and by the width of the network: groups 4 and 8 of
protocol.md.  Both compare trainings with a cosine by their losses at the end."""
import math
import re

import numpy as np
from scipy import stats

import compare
import curves
import registered
from cases import alike_key, settings_key
from measures import mean_cell
from tables import MEASURED, NONE, TEXT, Column, Table


def loss_at_the_end(training):
    return training["valid_loss"] if training.is_finished else math.nan


# ---- length: how many times the updates, without the end of one schedule ------------------------

def updates_to(loss, trainings):
    """The length at which full updates end at this loss, interpolated in the logarithm of the length; NaN where the loss
    is not between those of the shortest and of the longest, or one of them diverged."""
    points = sorted((training["steps"], loss_at_the_end(training)) for training in trainings)
    if not points:
        return math.nan
    lengths, losses = (np.array(column, float) for column in zip(*points))
    if not losses[0] > loss or np.isnan(losses).any():
        return math.nan
    return math.exp(curves.first_at((np.log(lengths), losses), loss, True))


def full_lengths(method):
    """The full updates of all lengths at the rate of the one that a method is compared with, from its file where the
    method is in that, too."""
    full = method.case.full_update(method)
    return [training for other in method.case.methods if full is not None and other.first.is_full
            and other.first.setting("lr") == full.first.setting("lr")
            and (other.first.file == full.first.file or full.first.file != method.first.file)
            for training in other.trainings]


def lengths(cases):
    """The table of multipliers by length: of BCD where there are full updates of two lengths or more."""
    table = Table("lengths", "How many times the updates, each with a cosine of its own length", "training", [
        Column("seeds", "seeds", "", 0), Column("tried", "updates", "full, lengths", kind=TEXT),
        Column("updates", "updates", "BCD", 0, NONE), Column("loss", "loss", "at the end", 4, MEASURED),
        Column("same", "updates", "full, same loss", 0, MEASURED), Column("multiplier", "B-F", "", 2, MEASURED)])
    for method in registered.methods(cases):
        full = full_lengths(method)
        tried = sorted({training["steps"] for training in full})
        if method.first["submodels"] == 1 or curves.may_be_cut(method.first) or len(tried) < 2:
            continue
        same = [updates_to(loss_at_the_end(one), [other for other in full if other["seed"] == one["seed"]])
                for one in method.trainings]
        ratios = [one["steps"] / updates for one, updates in zip(method.trainings, same)]
        table.row(method.label, float(len(same)), " ".join(map(str, tried)), float(method.first["steps"]),
                  mean_cell(map(loss_at_the_end, method.trainings)), mean_cell(same), mean_cell(ratios))
    table.note(registered.RULES + ": the updates with which the full update of the same seed ends at BCD's loss, interpolated "
               "in their logarithm between its lengths; B-F: those of BCD over them.  Empty: the loss of a seed lies "
               "outside, or it diverged.")
    return table


# ---- width: does the gap shrink -----------------------------------------------------------------

def width_of(training):
    """The width that a specification names, or None."""
    found = re.search(r"width=(\d+)", training["model"])
    return int(found[1]) if found else None


def apart_from_width(method):
    """What trainings have in common that differ in the width, and in the rate that suits it."""
    first = method.first
    settings = [pair for pair in settings_key(first, of_method=True) if pair[0] != "lr"]
    return (re.sub(r"(width|heads)=\d+", "", first["model"]), alike_key(first), first["submodels"], first["steps"],
            tuple(settings))


def by_width(cases):
    """Of BCD: the methods that differ in the width, by rising width; of three widths or more, one of each: rates are still
    to be chosen where there are several."""
    found = {}
    for method in registered.methods(cases):
        if method.first["submodels"] > 1 and not curves.may_be_cut(method.first) and width_of(method.first):
            found.setdefault(apart_from_width(method), []).append(method)
    for group in found.values():
        if len({width_of(method.first) for method in group}) == len(group) > 2:
            yield sorted(group, key=lambda method: width_of(method.first))


def gaps(method):
    """ln of BCD's loss over that of the full update of the same seed, of each seed that has one."""
    return [math.log(loss_at_the_end(training) / loss_at_the_end(full)) for training, full in method.case.pairs(method)
            if full is not None]


def widths(cases):
    """The table of slopes of the gap over the width."""
    table = Table("widths", "Does the gap shrink with the width?", "training", [
        Column("widths", "widths", kind=TEXT), Column("points", "points", "", 0), Column("first", "gap", "narrowest", 4, MEASURED),
        Column("last", "gap", "widest", 4, MEASURED), Column("slope", "slope", "", 4, MEASURED),
        Column("low", "slope", "95 %, from", 4, MEASURED), Column("high", "slope", "95 %, to", 4, MEASURED),
        Column("answer", "the gap", kind=TEXT)])
    for group in by_width(cases):
        found = [(width_of(method.first), gaps(method)) for method in group]
        found = [(width, some) for width, some in found if some]
        points = np.array([(math.log(width), gap) for width, some in found for gap in some])
        if len(found) < 3:
            continue
        line = stats.linregress(*points.T)
        half = float(stats.t.ppf(1 - compare.CHANCE / 2, len(points) - 2)) * line.stderr
        low, high = line.slope - half, line.slope + half
        label = registered.grid_name(group[0]).replace(f"x{width_of(group[0].first)} ", " ", 1)
        narrowest, widest = (compare.mean_of_all(found[place][1])[0] for place in (0, -1))
        table.row(label, " ".join(str(width) for width, _ in found), float(len(points)), narrowest, widest, line.slope, low, high,
                  "shrinks" if high < 0 else "grows" if low > 0 else "may not be extrapolated")
    table.note(registered.RULES + ": the gap is ln of BCD's loss over that of the full update of the same seed, at the end; "
               "the slope is that of a line through all seeds, over ln of the width, with its 95 % interval by Student's t.  "
               "\"may not be extrapolated\": the interval includes zero, or a seed diverged.")
    return table
