"""Tables that the paper does not have: BCD over the full update of the same seed, to the same loss, per update, and in
memory; each training to its own convergence; all trainings; fine-tuning."""
import math

import numpy as np

import curves
import measures
import registered
import study
from curves import OPERATIONS, SECONDS
from measures import COUNT, DIFFERENCE, HIGH, LOW, MEAN, RATIO, SEEDS, VERDICT, Measure, MeasureTable
from tables import CLOSED_FORM, MIB, NONE


# ---- over the full update -----------------------------------------------------------------------

def to_level(axis):
    """What BCD took to reach the level of the pair over what the full update took."""
    def ratio(pair):
        training, full = pair
        if axis == SECONDS and not training.times_comparable(full):
            return math.nan
        steps = training["steps_to_converge"]
        full_steps = np.rint(steps / training["multiplier"])  # the quotient may be a little more than the whole number
        return measures.quotient(curves.cost_after(training, steps, axis), curves.cost_after(full, full_steps, axis))
    return ratio


SAME_LOSS = MeasureTable(
    "same_loss", "BCD over the full update, to the same loss", [
        SEEDS,
        Measure("updates", "updates", "training loss", 2, measures.multiplier),
        Measure("valid_updates", "updates", "valid. loss", 2, measures.valid_multiplier),
        Measure("operations", "operations", "training loss", 2, to_level(OPERATIONS)),
        Measure("seconds", "seconds", "training loss", 2, to_level(SECONDS)),
    ],
    ["Below 1, BCD needs less.  Means and spreads over seeds, each over the full update of the same seed.  Operations are "
     "counted from shapes, for the updates that were measured.",
     "The loss is the higher of the two lowest ones, which both reached.  Training losses are smoothed by a trailing mean "
     "over a fortieth of the updates of the shorter training, validation losses interpolated between evaluations (from "
     "the first one on).  All depends on how long both were trained; the paper states no rule.",
     measures.TIMES_NOTE],
    paired=True)

PER_UPDATE = MeasureTable(
    "per_update", "An update of BCD over a full update, and memory", [
        SEEDS,
        Measure("ms", "an update", "ms", 2, lambda pair: 1e3 * measures.per_update(pair.training, SECONDS)),
        Measure("time", "time", "/ full", 2, measures.time_ratio),
        Measure("operations", "operations", "/ full", 2, lambda pair: measures.per_update(pair.training, OPERATIONS), RATIO,
                CLOSED_FORM),
        Measure("trained", "P+G+S", "/ full", 2, measures.trained_memory, RATIO),
        Measure("peak", "peak memory", "/ full", 2, measures.peak, RATIO),
        Measure("closed_form", "equal parts", "P+G+S / full", 2, measures.closed_form, RATIO, CLOSED_FORM),
    ],
    ["Means over all updates of a training, whichever submodel was active, without evaluations.  P+G+S: peaks of "
     "parameters, gradients and optimizer state; equal parts: their closed form for submodels of equal size.  Peak "
     "memory: of all roles, activations included, by the program that trained."],
    paired=True)


# ---- to its own convergence ---------------------------------------------------------------------

def compares(pair):
    """True for BCD that can be compared with its full update before the end of both."""
    return pair.full is not None and pair.training["submodels"] > 1 and curves.comparable(*pair)


def at_equal_updates(pair):
    if not compares(pair):
        return math.nan
    return curves.mean_score_at(pair.training, min(pair.training["steps"], pair.full["steps"]))


def own_multiplier(pair):
    return curves.own_multiplier(*pair) if compares(pair) else math.nan


def to_same_loss(pair):
    return curves.plateau_multiplier(*pair) if compares(pair) else math.nan


def end_scores(pair):
    training, full = pair
    if full is None or training["submodels"] == 1:
        return math.nan, math.nan
    return registered.end_score(training), registered.end_score(full)


def unregistered_ends(pair):
    """Those of a training whose group has no comparisons of its own that were registered (registered.answers)."""
    return end_scores(pair) if registered.planned(registered.group_of(pair.training)) is None else (math.nan, math.nan)


def end_of_full(pair):
    bcd, full = end_scores(pair)
    return full if math.isfinite(bcd) else math.nan


def has_means(method):
    """True in cases with enough evaluations for the rule."""
    return any(len(other.first.evaluation["step"]) >= 2 * curves.MEAN for other in method.case.methods)


CONVERGED = MeasureTable(
    "converged", "Each training to its own convergence", [
        SEEDS,
        Measure("epochs", "trained", "epochs", 0, measures.column("epochs"), MEAN, NONE),
        Measure("converged", "converged", "seeds", 0, measures.column("plateau_epochs"), COUNT),
        Measure("own_epochs", "after", "epochs", 1, measures.column("plateau_epochs")),
        Measure("score", "score", "there", 2, measures.column("plateau_score")),
        Measure("spread", "of five", "spread", 2, measures.column("plateau_spread"), MEAN),
        Measure("end", "score", "at the end", 2, lambda pair: registered.end_score(pair.training)),
        Measure("end_full", "full update", "at the end", 2, end_of_full, MEAN),
        Measure("at_equal", "score", "at equal upd.", 2, at_equal_updates),
        Measure("own_multiplier", "B-F", "own", 2, own_multiplier),
        Measure("same_loss", "B-F", "same loss", 2, to_same_loss),
        Measure("end_difference", "BCD - full", "at the end", 2, end_scores, DIFFERENCE),
        Measure("end_low", "BCD - full", "95 %, from", 2, end_scores, LOW),
        Measure("end_high", "BCD - full", "95 %, to", 2, end_scores, HIGH),
        Measure("end_verdict", "at the end", "verdict", 0, unregistered_ends, VERDICT, NONE),
    ],
    [f"Converged: by a rule of early stopping, at {curves.PLATEAU_RULE}.  \"converged\" counts the seeds that did.  Scores "
     "are such means, on the validation split: per cent, or perplexity; at the end of a cosine that was registered the last one "
     "alone.",
     "B-F own: epochs until BCD converged over those until the full update did; same loss: updates to the "
     f"same validation loss, of trailing means of {curves.MEAN} evaluations.  At equal updates: at the end of the "
     "shorter of the two.",
     "An epoch is a pass over the data, or over the part that is used, whichever submodel is active.  Trainings with a "
     "cosine are compared as a whole only, because their rate depends on how long they are.",
     "Full update, and BCD - full: of scores at the end, means over pairs of the same seed, the spread of a pair, and "
     "the 95 % interval of the mean by Welch's t-test.  " + measures.TEST_NOTE + "  Groups of the protocol have none here: "
     "their answers are corrected for the comparisons that were registered."],
    selects=has_means)


# ---- each method by itself ----------------------------------------------------------------------

def switches(pair):
    """The first row of the switches is the start."""
    return len(pair.training.switches["step"]) - 1 if measures.is_bcd(pair) else math.nan


TRAININGS = MeasureTable(
    "trainings", "The trainings", [
        SEEDS,
        Measure("switches", "switches", "", 0, switches, MEAN),
        Measure("multiplier", "B-F", "training", 2, measures.multiplier),
        Measure("valid_multiplier", "B-F", "validation", 2, measures.valid_multiplier),
        Measure("score", "score", "% or perpl.", 2, measures.score),
        Measure("train_loss", "training loss", "", 3, measures.column("train_loss")),
        Measure("valid_loss", "valid. loss", "", 3, measures.column("valid_loss")),
        Measure("updates", "updates", "", 0, measures.column("steps"), MEAN),
        Measure("seconds", "time", "s", 1, measures.column("seconds")),
        Measure("peak", "peak memory", "MiB", 1, measures.peak, MEAN),
    ],
    ["Means and spreads over seeds.  Scores (accuracy in %, or perplexity, on the validation split) and losses at the end "
     "of the training.  Time: without evaluations; other work may have run at the same time.  All that is needed to repeat a "
     "training is in its file.",
     "\"every K\": phases of K updates, with an e of K epochs; \"auto\": until the loss stops falling.  Optimizer state "
     "starts from zero in each phase unless it is kept."])


def is_mixed(method):
    """True when the seeds of a method come from different programs or machines."""
    first = method.first
    return study.SEVERAL in first.provenance["commit"] or any(
        t.provenance["commit"] != first.provenance["commit"] or not t.times_comparable(first) for t in method.trainings)


def trainings(cases):
    """The table of all trainings."""
    table = TRAININGS.make(cases)
    mixed = next((method for method in cases.methods if is_mixed(method)), None)
    if mixed:
        table.note("Means are over trainings of different commits, processors, or numbers of threads or ranks: of "
                   f"{mixed.label}, for example.")
    if cases.left_out:
        table.note(f"Left out: {cases.left_out} with the settings and seed of another training here, but other losses; of "
                   "these the one read first counts.")
    return table


# ---- fine-tuning, next to what the second version of the paper says about it --------------------

def loss_before(pair):
    """All seeds and methods start from the same weights."""
    evaluation = pair.training.evaluation
    return float(evaluation["loss"][0]) if len(evaluation["step"]) and evaluation["step"][0] == 0 else math.nan


def at_its_lowest(pair):
    losses = pair.training.evaluation["loss"]
    return float(losses.min()) if len(losses) else math.nan


FINETUNE = MeasureTable(
    "finetune", "Fine-tuning by full update and by BCD", [
        SEEDS,
        Measure("validation_loss", "valid. loss", "", 4, measures.column("valid_loss")),
        Measure("perplexity", "perplexity", "", 2, measures.column("perplexity")),
        Measure("lowest", "valid. loss", "lowest", 4, at_its_lowest),
        Measure("before", "valid. loss", "before", 4, loss_before, MEAN),
        Measure("updates", "updates", "", 0, measures.column("steps"), MEAN, NONE),
        Measure("seconds", "training", "s", 1, measures.column("seconds")),
        Measure("trained_memory", "P+G+S", "MiB", 2, measures.trained_memory, MEAN),
        Measure("closed_form", "equal parts", "P+G+S, MiB", 2, measures.closed_form, MEAN, CLOSED_FORM),
        Measure("memory", "memory", "MiB", 2, measures.peak, MEAN),
        Measure("resident", "resident", "MiB", 0, measures.column("resident", 1 / MIB), MEAN),
    ],
    ["All trainings of a network start from the same weights.  Means and spreads over seeds.  Memory: the peak of all "
     "roles; P+G+S: parameters, gradients, optimizer state.",
     "Equal parts: P+G+S of submodels of equal size; of LoRA with its adapters, whose gradients and state alone there are.  "
     "Resident: of the process, by the operating system, mapped files and tokens included.  Training: on a machine on which "
     "other work may have run at the same time.",
     "Published, in the abstract of the second version of the paper (arXiv 2506.12037v2): BCD reduces \"the training cost "
     "of a 7B model to 33% on A100/A800 and only 2.6% on RTX 4090\", and is in most cases at least as accurate as the full "
     "update and other ways to fine-tune.  The accuracies are in tables that we do not have."],
    selects=lambda method: bool(method.first.setting("init")))
