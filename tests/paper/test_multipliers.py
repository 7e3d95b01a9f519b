"""How many times the updates BCD takes, by each rule of the documents, and at which multiplier it costs as much."""
import math
import statistics

import numpy as np
import pytest

import choose
import curves
import document
import document_multipliers
import document_record
import published
import record


# ---- the same loss ------------------------------------------------------------------------------

@pytest.mark.parametrize("what, rule, expected", [
    # found by an independent recomputation from the raw curves
    (("half10", "BCD-1/3 every 40"), curves.plateau_multiplier, 2.78), (("half", "BCD-1/3 every 40"), curves.plateau_multiplier, 3.86),
    (("resnet8", "BCD-1/3"), curves.plateau_multiplier, 3.66), (("resnet14", "BCD-1/3"), curves.plateau_multiplier, 3.41),
    (("resnet20", "BCD-1/3"), curves.plateau_multiplier, 3.07), (("gpt", "BCD-1/2"), curves.plateau_multiplier, 2.54),
    (("gpt", "BCD-1/3"), curves.plateau_multiplier, 3.50), (("gpt", "BCD-1/4"), curves.plateau_multiplier, 5.31),
    (("half10", "1/3 x.9"), record.same_training_loss, 5.29),
    (("half10", "1/3 x.3"), record.same_training_loss, 5.64),
    (("resnet8", "BCD-1/3"), record.same_training_loss, 4.95)])
def test_multipliers(what, rule, expected):
    assert round(statistics.fmean(record.multipliers(*what, rule)), 2) == expected


@pytest.mark.parametrize("rule", [record.same_training_loss, curves.own_multiplier, curves.plateau_multiplier])
def test_cosines_of_other_lengths_have_no_multiplier(rule):
    """They are compared as a whole only; the GPT's are equally long."""
    assert np.isnan(record.multipliers("half10-cosine", "BCD-1/3", rule)).all()
    assert rule is curves.own_multiplier or np.isfinite(record.multipliers("gpt-cosine", "BCD-1/3", rule)).all()


def test_bcd_never_reaches_the_same_loss_sooner():
    for what in record.THREE_SEEDS + record.FEWER_SEEDS + record.SECOND_TRAININGS + [("resnet8-plain", "BCD-1/3")]:
        for rule in (curves.plateau_multiplier, lambda bcd, full: curves.training_multiplier(bcd, full)[2]):
            assert all(value > 1 for value in record.multipliers(*what, rule) if not math.isnan(value)), what


def test_each_training_of_bcd_with_each_full_update():
    """Equal seeds make no pairs, so the documents say what all pairs give, too: from the raw curves."""
    means = []
    for network, method in record.ALL_DATA:
        bcd, full = (record.find(network, which).trainings for which in (method, "full"))
        if method.startswith("BCD-1/3") and len(bcd) > 1 and "cosine" not in network:
            found = [curves.plateau_multiplier(one, other) for one in bcd for other in full]
            assert record.multipliers(network, method, curves.plateau_multiplier, every_pair=True) == found
            means.append(statistics.fmean(found))
    span = document_multipliers.same_loss_means(every_pair=True)
    assert span == f"{min(means):.2f} to {max(means):.2f}" == "1.65 to 3.80"


def test_fine_tuning_passes_in_mid_schedule():
    """The full update is at BCD's loss before its end, so that its multiplier is at least what is printed; the GPT with a
    cosine, too."""
    tuned = {one.method.name: one for one in choose.tuned(choose.trainings(choose.FILE))}
    times = tuned["BCD-1/3"].times_the_updates(tuned[choose.FULL])
    assert min(times) > 1.5 and all(one.setting("schedule") == "cosine" for one in tuned[choose.FULL].trainings)
    for rule in (curves.plateau_multiplier, record.same_training_loss):
        assert min(record.multipliers("gpt-cosine", "BCD-1/3", rule)) > 1.5


# ---- Table 2, and trainings of one seed ---------------------------------------------------------

def test_spans_next_to_table_2():
    """They are of BCD-1/3 in all long trainings on all data, but those of ResNet-8x8 in phases of other lengths."""
    images, text = document.ours_by_thirds(True), document.ours_by_thirds(False)
    phases = {("half", "BCD-1/3 every 1e"), ("half", "BCD-1/3 every auto"), ("half10", "BCD-1/3 every 2e"),
              *(("half-longest", method) for method in list(record.LONGEST_THIRDS)[1:])}
    assert sorted(images + text) == sorted(set(document_multipliers.all_thirds()) - phases)
    gaps = [record.ends_apart(*what, what[0], "full") for what in images]
    assert document.our_gaps() == f"{min(gaps):+.2f} to {max(gaps):+.2f}"
    found = [statistics.fmean(bcd["multiplier"] for bcd in record.find(*what).trainings) for what in images + text]
    assert document.our_multipliers() == f"{np.nanmin(found):.2f} to {np.nanmax(found):.2f}"
    percent = [100 * bcd / full - 100 for what in text for bcd, full in zip(*(
        record.scores(what[0], method) for method in ("BCD-1/3", "full")))]
    assert document.our_gaps_of_text() == f"{min(percent):.1f} to {max(percent):.1f}"


def test_trainings_of_one_seed():
    """Sentences say "with one seed" of these, and that a second one of the GPT with a cosine is left to train."""
    for network in ("gpt-cosine", "resnet8-plain", "resnet14", "resnet20"):
        assert [document_record.seeds(network, method) for method in ("full", "BCD-1/3")] == [1, 1], network
    lowest = document_multipliers.same_loss_means(one_seed=True).low
    assert lowest == document_multipliers.same_loss("resnet8-plain", "BCD-1/3")


# ---- own plateaus -------------------------------------------------------------------------------

def test_plateaus_come_early():
    """BCD stops at its own plateau after 1.29 times the epochs, at a worse score, and gains points after it."""
    images = [(network, record.thirds_of(network)) for network in ("half10", "half", "resnet8")]
    text = [("gpt", f"BCD-1/{m}") for m in (2, 3, 4)]
    assert document_multipliers.mean_own_plateau(*images, *text) == "1.29"
    for network, method in images + text:
        full, bcd = (np.nanmean([each["plateau_score"] for each in record.find(network, which).trainings])
                     for which in ("full", method))
        assert (bcd < full) == (network != "gpt"), network
    for network, method in images:
        assert np.nanmean([record.gain(each) for each in record.find(network, method).trainings]) > 2, network


def test_own_plateaus_of_thirds():
    """Of BCD-1/3 alone, as the sentences say, from the plateaus of the files; three rows lack one of three seeds."""
    found, lacking = [], []
    for network, method in record.ALL_DATA:
        if method.startswith("BCD-1/3"):
            ratios = [bcd["plateau_epochs"] / full["plateau_epochs"] for bcd, full in record.pairs(network, method)
                      if bcd.setting("schedule") != "cosine"]
            known = [ratio for ratio in ratios if math.isfinite(ratio)]
            found += [statistics.fmean(known)] if known else []
            lacking += [(network, method)] if 0 < len(known) < len(ratios) else []
    assert document_multipliers.own_plateau_means() == f"{min(found):.2f} to {max(found):.2f}" == "1.08 to 2.85"
    assert document_multipliers.mean_own_plateau() == f"{statistics.fmean(found):.2f}" == "1.74"
    assert lacking == [("half", f"BCD-1/3 every {phases}") for phases in ("40", "1e", "auto")]


def test_own_plateaus_by_the_protocol():
    """The first mean of five within 0.2 points of the best, from the evaluations; early stopping gives less of two."""
    found = {}
    for network in ("half-longest", "half-plain", "half-plain-adam"):
        updates, thirds = {}, record.thirds_of(network)
        for method in ("full", thirds):
            updates[method] = []
            for one in record.find(network, method).trainings:
                means = np.convolve(100 * one.evaluation["accuracy"], np.ones(5) / 5, "valid")
                updates[method].append(one.evaluation["step"][4:][means >= means.max() - 0.2 - 1e-9][0])
        found[network] = np.mean(updates[thirds]) / np.mean(updates["full"])
        assert document_multipliers.near_its_best(network, thirds) == f"{found[network]:.2f}"
    assert document_multipliers.near_its_best("half", "BCD-1/3 every 40") == "–"


# ---- speed and cost -----------------------------------------------------------------------------

def test_the_advantage_of_half_the_ranks_shrinks():
    for table in ("pipeline1", "pipeline2"):
        ratios = document.pipeline_ratios(table)
        assert ratios == sorted(ratios, reverse=True) and ratios[0] > 1.2, table
    assert max(document.filled_ratios()) < 1


def test_the_published_multipliers_are_at_unequal_losses():
    """With Adam BCD's loss is the lower one of each ResNet, and the higher one of each language model."""
    pairs = [row for row in published.trainings(2) if row.submodels > 1 and row.optimizer == "adam"]
    lower = [row.loss < row.full.loss for row in pairs]
    assert lower == [row.model.startswith("resnet") for row in pairs] and lower.count(True) == 3 and len(lower) == 5


def test_break_even_on_half_the_gpus():
    """As many GPU hours: twice the updates in half the speed would be four times, and so on.  Of ten pairs nine can be
    simulated, of which two have the same step of BCD."""
    ratios = document.filled_ratios()
    assert [f"{ratio:.3f}" for ratio in ratios] == [
        "0.744", "0.693", "0.709", "0.709", "0.721", "0.759", "0.794", "0.809", "0.824"]
    assert document.break_even_when_filled() == f"{2 * min(ratios):.1f} to {2 * max(ratios):.1f}"
    paid = [2 * full.ms / bcd.ms for full, bcd in published.pairs(4)]
    assert document.published_break_even() == f"{min(paid):.1f} to {max(paid):.1f}"


def test_at_the_published_ratio_the_gpt_is_within_the_published_span():
    ours = document_record.gap_percent("gpt", "BCD-1/3", 1, 50 / 18)
    assert min(published.gaps(False)) < float(ours.low) < float(ours.high) < max(published.gaps(False))


def test_published_multipliers():
    assert document.published_multipliers() == "0.55 to 2.78" and document.published_multipliers(False) == "1.83 to 2.78"
