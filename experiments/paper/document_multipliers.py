"""What the sources of the documents say of how many times the updates BCD takes, as text."""
import math
import statistics

import numpy as np

import compare
import curves
import record
import registered
from document_record import mean, span

# ---- the same loss ------------------------------------------------------------------------------

def of_pairs(rule):
    """A function of a network and a method: the mean of its multipliers by a rule."""
    def found(network, method):
        return mean(record.multipliers(network, method, rule))
    return found


same_loss = of_pairs(curves.plateau_multiplier)
same_training_loss = of_pairs(record.same_training_loss)
own_plateau = of_pairs(curves.own_multiplier)  # by early stopping


def same_loss_means(one_seed=False, every_pair=False):
    """The lowest and the highest of the mean multipliers to the same validation loss, of BCD-1/3 in all long trainings
    from scratch on all data that can be compared: those of several seeds, or those of one.  Of pairs of equal seed, or
    of each training of BCD with each full update."""
    trained = [what for what in [*all_thirds(), ("resnet8-plain", "BCD-1/3")]
               if (len(record.pairs(*what)) == 1) == one_seed]
    return span(means_of(curves.plateau_multiplier, trained, every_pair))


def all_thirds(optimizer=""):
    """The pairs of a network and BCD-1/3 that train on all data, by an optimizer of which the name begins so."""
    return [what for what in record.ALL_DATA
            if what[1].startswith("BCD-1/3") and record.find(*what).first["optimizer"].startswith(optimizer)]


def means_of(rule, trained, every_pair=False):
    """The mean multipliers by a rule of these pairs of a network and a method, of those that have one."""
    found = [record.multipliers(*what, rule, every_pair) for what in trained]
    return [compare.mean(values)[0] for values in found if np.isfinite(values).any()]


# ---- own plateaus -------------------------------------------------------------------------------

def mean_own_plateau(*trained):
    """The mean of the mean multipliers of these pairs of a network and a method, by default of BCD-1/3 on all data."""
    return f"{statistics.fmean(means_of(curves.own_multiplier, trained or all_thirds())):.2f}"


def own_plateau_means(*trained):
    """The lowest and the highest of them."""
    return span(means_of(curves.own_multiplier, trained or all_thirds()))


def near_its_best(network, method):
    """The updates of BCD over those of the full update, each to within 0.2 points of its best, the rule of protocol.md;
    "–" of trainings that began before it, and of a cosine."""
    found = record.find(network, method)
    if not registered.has_plateau(found):
        return "–"
    return f"{registered.multiplier_to_its_best(found, record.find(network, 'full')):.2f}"


def plateaus():
    """Of the trainings of converged.h5: how many came to a plateau, and how many there are."""
    found = [each["plateau_steps"] for each in record.trainings("converged.h5")]
    return sum(map(math.isfinite, found)), len(found)
