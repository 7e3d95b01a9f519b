"""Curves of trainings: smoothed losses, the loss that two trainings reached, a training's own convergence, scores
and costs along a curve.

A training is a study.Training.  Its curve may stand for several updates in each row, whose loss is their mean; what
is computed here counts updates, not rows."""
import math

import numpy as np

NAN = math.nan

# ---- rules --------------------------------------------------------------------------------------

MEAN = 5  # evaluations in a mean, which trails: it belongs to its last evaluation
# The rule of early stopping.  The first mean is the best so far; a later one replaces it when it is better by more
# than POINTS points of accuracy (images) or NATS (text).  A training has converged at the best that none replaces
# within IMAGE_EPOCHS or TOKEN_EPOCHS, to the nearest evaluation: these fall on whole updates, the tenth of ten epochs
# up to an update after their end.  The paper states no rule.
POINTS, IMAGE_EPOCHS = 0.5, 10
ROUNDING = 1e-9  # nats or points: equal means may differ by their roundings
NATS, TOKEN_EPOCHS = 0.01, 1
PLATEAU_RULE = (
    f"the best mean of {MEAN} evaluations, once none within the next {IMAGE_EPOCHS} epochs (images) or {TOKEN_EPOCHS} "
    "epoch (text), to the nearest evaluation, is a new best; a new best is one that is better by more than "
    f"{POINTS} points of accuracy, or {NATS} nats")
RULE = (
    "A BCD training is compared only with the full update of the same network, data, optimizer, batch, device, "
    "precision and seed: one for all its seeds, with the same learning rate if there is one of as many seeds. "
    "Trainings with a cosine are compared only if they are equally long. Both training losses are smoothed by a trailing "
    "mean over a fortieth of the updates of the shorter training, at least ten updates. The level is the higher of the "
    "two lowest smoothed losses, which both reached. A training reaches it at the first step whose smoothed loss is at "
    "or below the level. The B-F multiplier is the steps of BCD to the level over those of the full update. The same is "
    "done with the validation losses, interpolated linearly between evaluations. All of it depends on how long the two "
    f"were trained; the paper states no rule. A training by itself has converged at {PLATEAU_RULE}.")


# ---- smoothed losses ----------------------------------------------------------------------------

def updates(training):
    steps = training.curve["step"]
    return int(steps[-1]) if len(steps) else 0


def window_of(a, b):
    """The updates of the window for comparing two trainings: a fortieth of the shorter one, at least ten, or all when
    there are fewer."""
    shorter = min(updates(a), updates(b))
    return max(1, min(shorter, max(10, shorter // 40)))


def smoothed(training, window):
    """The trailing mean of the training loss over a window of updates, and over all before there are as many: steps,
    means."""
    steps = training.curve["step"].astype(float)
    total = np.concatenate([[0], np.cumsum(training.curve["loss"] * np.diff(steps, prepend=0))])
    begins = np.maximum(steps - window, 0)
    return steps, (total[1:] - np.interp(begins, np.concatenate([[0], steps]), total)) / (steps - begins)


def smooth_training(training, window):
    """The same without what is before the first whole window, because a low loss of one batch is no convergence."""
    steps, means = smoothed(training, window)
    return steps[steps >= window], means[steps >= window]


def trailing(values, count):
    """The means of `count` values, each belonging to its last; none for fewer."""
    if len(values) < count:
        return np.empty(0)
    return np.lib.stride_tricks.sliding_window_view(np.asarray(values, float), count).mean(axis=1)


def smooth_validation(training, count):
    """The trailing mean of `count` validation losses: steps, means."""
    means = trailing(training.evaluation["loss"], count)
    return training.evaluation["step"][count - 1:].astype(float), means


# ---- the same loss ------------------------------------------------------------------------------

def first_at(points, level, interpolated):
    """The updates until the loss is at or below the level; NaN: never."""
    steps, losses = points
    at = np.flatnonzero(losses <= level + ROUNDING)
    if not len(at):
        return NAN
    now = at[0]
    if not interpolated or now == 0 or not math.isfinite(losses[now - 1]):
        return float(steps[now])
    weight = min(1.0, (losses[now - 1] - level) / (losses[now - 1] - losses[now]))
    return float(steps[now - 1] + weight * (steps[now] - steps[now - 1]))


def lowest(points):
    losses = points[1]
    return float(np.nanmin(losses)) if np.isfinite(losses).any() else NAN


def to_same_loss(own, full, interpolated):
    """Compares two smoothed curves at the higher of their two lowest losses: level, steps of the first until it, and
    these over the steps of the second."""
    low, full_low = lowest(own), lowest(full)
    level = NAN if math.isnan(low) or math.isnan(full_low) else max(low, full_low)
    steps, full_steps = first_at(own, level, interpolated), first_at(full, level, interpolated)
    return level, steps, steps / full_steps if full_steps else NAN


def training_multiplier(training, full):
    """level, steps, multiplier by the smoothed training loss."""
    window = window_of(training, full)
    return to_same_loss(smooth_training(training, window), smooth_training(full, window), False)


def validation_multiplier(training, full, count=1):
    """The same by means of `count` validation losses, each over the whole split; NaN where one of the two has no such
    mean, or begins at that loss or below: it reached it at an unknown update."""
    own, other = smooth_validation(training, count), smooth_validation(full, count)
    level, steps, multiplier = to_same_loss(own, other, True)
    known = not math.isnan(level) and min(own[1][0], other[1][0]) > level
    return (level, steps, multiplier) if known else (level, NAN, NAN)


def plateau_multiplier(training, full):
    """The multiplier by means of MEAN evaluations, because the lowest of many single ones is the luckiest."""
    return validation_multiplier(training, full, MEAN)[2]


# ---- a training by itself -----------------------------------------------------------------------

def end_train_loss(training):
    """The smoothed training loss at the end."""
    if not updates(training):
        return NAN
    return float(smooth_training(training, window_of(training, training))[1][-1])


def epochs_at(training, steps):
    return steps * training["epochs"] / training["steps"] if training["steps"] else NAN


def plateau_index(values, epochs, amount, patience):
    """The number of the last evaluation of the best mean, by the rule above; None when there is none, or the training
    ended too early to know.  values: less is better."""
    means = dict(enumerate(trailing(values, MEAN), MEAN - 1))
    best, end = MEAN - 1, len(values)

    def beyond(now):
        """How much later than `patience` an evaluation comes, in epochs, and half of the way to it from the last one."""
        return epochs[now] - epochs[best] - patience, (epochs[now] - epochs[now - 1]) / 2

    for now in range(MEAN, end):
        late, half = beyond(now)
        # The next value counts even if it comes later than `patience`.
        if late > half and now > best + 1:
            return best
        if means[now] < means[best] - amount - ROUNDING:
            best = now
    # If the training ended within `patience`, nothing is known of what would have followed.
    if end <= best + 1:
        return None
    late, half = beyond(end - 1)
    return best if late > -half else None


def plateau(training):
    """The number of the evaluation at which a training has converged by the rule, or None."""
    epochs = [epochs_at(training, float(step)) for step in training.evaluation["step"]]
    if training.is_images:
        return plateau_index(100 - 100 * training.evaluation["accuracy"], epochs, POINTS, IMAGE_EPOCHS)
    return plateau_index(training.evaluation["loss"], epochs, NATS, TOKEN_EPOCHS)


def own_multiplier(training, full):
    """The epochs of a training to its plateau over those of the full update to its own; NaN with a cosine, where the
    schedule says when that comes."""
    return training["plateau_epochs"] / full["plateau_epochs"] if may_be_cut(training) else NAN


def scores(training):
    """The score of each evaluation: accuracy in per cent, or perplexity."""
    return 100 * training.evaluation["accuracy"] if training.is_images else training.evaluation["perplexity"]


def mean_of_last(training, values, until=math.inf):
    """The mean of the last MEAN evaluations up to an update, of these values of them, and their standard deviation; NaN
    for fewer."""
    last = values[training.evaluation["step"] <= until][-MEAN:]
    return (float(last.mean()), float(last.std(ddof=1))) if len(last) == MEAN else (NAN, NAN)


def mean_score(training, until=math.inf):
    return mean_of_last(training, scores(training), until)


def mean_loss(training, until=math.inf):
    return mean_of_last(training, training.evaluation["loss"], until)


def mean_score_at(training, steps, count=MEAN):
    """The mean of so many evaluations after so many updates, interpolated between such means; NaN before the first."""
    means = trailing(scores(training), count)
    if not len(means):
        return NAN
    return float(np.interp(steps, training.evaluation["step"][count - 1:], means, left=NAN))


# ---- along a curve ------------------------------------------------------------------------------

UPDATES, SECONDS, OPERATIONS = "updates", "seconds", "operations"


def costs(training, axis):
    """What has been spent after each row of the curve; None when unknown."""
    if axis == UPDATES:
        return training.curve["step"].astype(float)
    return training.curve["seconds"] if axis == SECONDS else training.operations


def total_cost(training, axis):
    spent = costs(training, axis)
    return float(spent[-1]) if spent is not None and len(spent) else NAN


def cost_after(training, steps, axis):
    """What the first `steps` updates cost; NaN when unknown."""
    spent = costs(training, axis)
    if math.isnan(steps) or spent is None:
        return NAN
    at = int(np.searchsorted(training.curve["step"], steps))
    return float(spent[at]) if at < len(spent) else NAN


def seconds_per_update(training):
    """Without the first row, whose updates touch all memory for the first time; NaN where there is no other."""
    step, seconds = training.curve["step"], training.curve["seconds"]
    if len(step) < 2:
        return NAN
    return float(seconds[-1] - seconds[0]) / float(step[-1] - step[0])


def updates_within(training, axis, budget):
    """The updates that cost at most `budget`."""
    rows = int(np.searchsorted(costs(training, axis), budget, side="right"))
    return float(training.curve["step"][rows - 1]) if rows else 0.0


def may_be_cut(training):
    """True when a training has reached at each update what a training of that length would have: its learning rate
    does not depend on its length, as with a cosine."""
    return training.setting("schedule") != "cosine"


def comparable(training, full):
    """True when two trainings can be compared before the end of both: neither diverged, and both may be cut, unless
    they are equally long."""
    return not (training.has_diverged or full.has_diverged) and (
        may_be_cut(training) or training["steps"] == full["steps"])
