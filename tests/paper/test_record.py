"""What paper_repro.md says about the long trainings: numbers from the raw curves, and the sentences that rest on
them.  test_multipliers.py has how many times the updates BCD takes."""
import math
import statistics

import h5py
import numpy as np
import pytest
from scipy import stats

import compare
import curves
import document
import document_record
import published
import record
import registered
import study
from cases import Method
from conftest import RESULTS
from samples import LATER, evaluations, like, training


# ---- rules --------------------------------------------------------------------------------------

def test_a_score_is_the_mean_of_five_that_end_at_the_part():
    each = training(steps=100)
    each.evaluation = evaluations(range(10, 101, 10), [1] * 10, np.array([1, 2, 3, 4, 5, 6, 7, 8, 9, 20]) / 100)
    compare.converge([each])
    assert record.score_at(each) == pytest.approx((6 + 7 + 8 + 9 + 20) / 5)
    assert record.score_at(each, 0.5) == pytest.approx(3)
    assert record.score_at(each, 0.54) == pytest.approx(3.4)  # between two
    assert math.isnan(record.score_at(each, 0.4))  # four evaluations
    each.settings["schedule"] = "cosine"
    assert record.score_at(each) == pytest.approx(10) and math.isnan(record.score_at(each, 0.5))
    assert record.score_at(like(each, started=LATER)) == pytest.approx(20)  # by the rule that was registered
    each.row["status"] = "diverged"
    assert math.isnan(record.score_at(each))


def test_a_seed_that_diverged_is_neither_ahead_nor_behind(monkeypatch):
    made = {m: {seed: training(submodels=m, seed=seed) for seed in (1, 2)} for m in (1, 3)}
    for m, by_seed in made.items():
        for one in by_seed.values():
            one.evaluation = evaluations(range(40, 240, 40), [1] * 5, [0.8 - 0.1 * m] * 5)
        compare.converge(list(by_seed.values()))
    made[3][2].row["status"] = "diverged"
    methods = {m: Method(None, list(by_seed.values())) for m, by_seed in made.items()}
    monkeypatch.setattr(record, "find", lambda network, method: methods[1 if method == "full" else 3])
    assert record.behind("some", "BCD-1/3") == [True]
    assert (document_record.ahead("some", "BCD-1/3"), document_record.behind("some", "BCD-1/3")) == (0, 1)


def test_a_method_is_found_by_its_name():
    assert sorted(record.find("half", "1/3 x.9").by_seed) == [1, 2, 3]
    phases = [record.find(*what).first["switching"] for what in
              [("half10", "1/3 x.9"), ("half", "BCD-1/3 every 1e"), ("half", "BCD-1/3 every 40"), ("pilot-half", "BCD-1/3 rate 0.2"),
               ("pilot-gpt", "BCD-1/3 every 0.25e rate 0.002")]]
    assert phases == ["2e", "1e", "40", "1e", "0.25e"]
    for network, method, count in [("half", "BCD-1/5", 0), ("half", "BCD-1/3", 3), ("pilot-half", "full", 0)]:
        with pytest.raises(KeyError, match=f"{network}: {count} methods {method}"):
            record.find(network, method)


def test_seeds_for():
    """Two samples, 5 % two-sided, 80 %: 2 (spread / difference)^2 (1.960 + 0.842)^2."""
    assert record.seeds_for(1.0, 1.0) == 16
    assert record.seeds_for(0.3, 1.4) == 342


def test_what_a_hundred_seeds_find():
    """The same the other way round, of so many that Student's t is nearly normal: 2.802 times the root of 2/100."""
    assert record.found_in_four_of_five([1.0, 1.0], 100, 0.05) == pytest.approx(0.396, rel=0.02)


# ---- numbers, from the raw curves ---------------------------------------------------------------

def raw():
    """Reads (model, limit, optimizer, schedule, M, phase, fraction), seed and end score of each row of converged.h5."""
    with h5py.File(RESULTS / "converged.h5") as file:
        settings, found = file["settings"], {}
        for row, name in enumerate(file["table/row"].asstr()[()]):
            end = int(file["curves/evaluation_first"][row]) + int(file["curves/evaluation_rows"][row])
            what = "perplexity" if name.startswith("gpt") else "accuracy"
            score = sum(file["evaluation"][what][end - 5:end]) / 5 * (1 if name.startswith("gpt") else 100)
            flags = "model", "limit", "optimizer", "schedule", "submodels", "switch-every"
            parts = [settings[flag][row] for flag in flags]
            key = (*(part.decode() if isinstance(part, bytes) else int(part) for part in parts),
                   round(float(settings["fraction"][row]), 2))
            found.setdefault(key, {})[int(settings["seed"][row])] = score
        return found


def test_45_of_47_pairs_end_behind():
    found = raw()
    fulls = {key[:4]: scores for key, scores in found.items() if key[4] == 1}
    ends = [((score < fulls[key[:4]][seed]) == key[0].startswith("res"), key[-1] < 1)
            for key, scores in found.items() if key[4] > 1 for seed, score in scores.items()]
    behind, less_data = map(sum, zip(*ends))
    assert document_record.pairs_behind() == (behind, len(ends), less_data) == (45, 47, 14)


def test_scores_are_those_of_the_raw_curves():
    found = raw()
    half = found["resnet:depth=8,width=8", 0, "sgd", "constant", 3, "40", 1.0]
    assert record.scores("half", "BCD-1/3 every 40") == pytest.approx([half[1], half[2], half[3]])
    gpt = found["gpt:layers=4,width=128,heads=4,context=64", 0, "adam", "constant", 1, "1e", 1.0]
    assert record.scores("gpt", "full") == pytest.approx([gpt[1], gpt[2]])
    every = [score for what in record.THREE_SEEDS + record.FEWER_SEEDS for score in record.scores(*what)]
    assert sorted(every) == pytest.approx(sorted(
        score for key, scores in found.items() if key[4] > 1 for score in scores.values()))


def test_the_answers_of_group_2_are_those_of_the_raw_curves():
    """Five comparisons were registered, so Holm's factors begin at five.  A score is the mean of five at a constant rate,
    and the last one with a cosine."""
    ends = {}
    with h5py.File(RESULTS / "plateau.h5") as file:
        settings, curves_of = file["settings"], file["curves"]
        for row, schedule in enumerate(settings["schedule"].asstr()[()]):
            is_bcd = settings["submodels"][row] > 1
            how = is_bcd and tuple(settings[flag].asstr()[row] for flag in ("switch-every", "always-active"))
            end = int(curves_of["evaluation_first"][row]) + int(curves_of["evaluation_rows"][row])
            assert file["evaluation/step"][end - 1] == (187500 if is_bcd else 93750)
            last = file["evaluation/accuracy"][end - (5 if schedule == "constant" else 1):end]
            ends.setdefault((schedule, how), []).append(100 * float(np.mean(last)))
    assert set(map(len, ends.values())) == {3} and len(ends) == len(record.LONGEST_THIRDS) + 3
    tests = {key: stats.ttest_ind(ends[key], ends[key[0], False], equal_var=False).pvalue for key in ends if key[1]}
    corrected = dict.fromkeys(tests, 0.0)
    for rank, key in enumerate(sorted(tests, key=tests.get)):
        corrected[key] = max(min(1, (5 - rank) * tests[key]), *corrected.values())
    gaps = {key: statistics.fmean(ends[key]) - statistics.fmean(ends[key[0], False]) for key in tests}
    found = document.made_of("plateau.h5")["answers"]
    assert sorted(found.value(label, "difference") for label in found.labels) == pytest.approx(sorted(gaps.values()))
    assert sorted(found.value(label, "p") for label in found.labels) == pytest.approx(sorted(corrected.values()))
    label, key = record.find(*record.LONGEST).label, ("constant", ("1e", ""))
    assert [found.value(label, column) for column in ("difference", "p")] == pytest.approx([gaps[key], corrected[key]])


def test_what_was_registered():
    """8 : 24 comes from the registered evaluations, and the full update of 24 epochs begins with the same bits."""
    assert statistics.fmean(record.gaps("gpt", "BCD-1/2", full="gpt8")) == pytest.approx(-0.26, abs=0.005)
    assert statistics.fmean(record.gaps("gpt", "BCD-1/3", full="gpt8")) == pytest.approx(0.56, abs=0.005)
    for seed, short in record.find("gpt8", "full").by_seed.items():
        long = record.find("gpt", "full").by_seed[seed]
        rows = len(short.curve["step"]) - 1  # the last one ends early
        assert rows > 1000
        for column in ("step", "loss"):
            assert (short.curve[column][:rows] == long.curve[column][:rows]).all()


# ---- sentences ----------------------------------------------------------------------------------

def test_where_the_gap_shrinks():
    def gaps(network, method):
        return [abs(statistics.fmean(record.gaps(network, method, part))) for part in (0.25, 0.5, 0.75, 1)]

    for what in [("resnet8", "BCD-1/3"), ("half", "BCD-1/3 every 40"), ("half", "BCD-1/3 every 1e"), ("gpt", "BCD-1/2"),
                 ("gpt", "BCD-1/3"), ("gpt", "BCD-1/4")]:
        assert gaps(*what) == sorted(gaps(*what), reverse=True), what
    for what in [("half10", "BCD-1/3 every 40"), ("half10-adam", "BCD-1/3"), ("resnet14", "BCD-1/3"), ("resnet20", "BCD-1/3")]:
        assert gaps(*what) != sorted(gaps(*what), reverse=True), what


def test_the_longest_trainings():
    """At constant rates BCD ends ahead with each seed, from half of both budgets on; at its plateau, and after as many
    updates, it is not."""
    what = record.LONGEST
    assert document_record.ahead(*what) == document_record.seeds(*what) == 3
    after = [statistics.fmean(record.gaps(*what, part)) for part in (0.25, 0.5, 0.75, 1)]
    assert after[0] < 0 < after[1] < after[2] < after[3]
    rates = [record.find("half-longest", method).first["lr"] for method in ("full", what[1])]
    assert rates[0] == pytest.approx(4 * rates[1])
    full, bcd = (np.mean([each["plateau_score"] for each in record.find("half-longest", method).trainings])
                 for method in ("full", what[1]))
    assert bcd < full
    plateaus = document.made_of("plateau.h5")["plateaus"]
    assert [plateaus.value(record.find("half-longest", method).label, "stays") for method in ("full", what[1])] == [
        "stays", "still climbing"]
    lower = [bcd["train_loss"] < full["train_loss"] for bcd, full in record.pairs(*what)]
    assert sum(lower) == 2 and document_record.training_losses_above() == (43, 45)


def test_with_a_cosine_the_longest_trainings_end_better_and_bcd_behind():
    """Each seed of each method; the full update with a cosine is ahead of BCD at a constant rate."""
    by_cosine, constant = ({"full": record.scores(network, "full"), "BCD-1/3": record.scores(network, record.thirds_of(network))}
                           for network in ("half-longest-cosine", "half-longest"))
    assert document_record.behind("half-longest-cosine", "BCD-1/3") == 3
    for method in constant:
        assert min(by_cosine[method]) > max(constant[method])
    assert min(by_cosine["full"]) > max(by_cosine["BCD-1/3"])
    rates = [record.find("half-longest-cosine", method).first["lr"] for method in ("full", "BCD-1/3")]
    assert rates[0] == pytest.approx(4 * rates[1])
    for method in ("full", "BCD-1/3"):
        fifths = [np.array_split(curves.scores(each), 5) for each in record.find("half-longest-cosine", method).trainings]
        gained = [float(np.mean(last) - np.mean(before)) for *_, before, last in fifths]
        assert min(gained) > registered.CLIMBS, "still climbing by the letter: the fall of the rate"
        assert document_record.last_gain("half-longest-cosine", method).startswith(f"{np.mean(gained):+.2f} ±")


def test_the_longest_trainings_and_the_first_ones():
    """They differ in the length and in the full update's rate alone, to which a part of the gap that closed is due."""
    rate = {(network, method): record.find(network, method).first["lr"]
            for network, bcd in (("half", "BCD-1/3 every 1e"), record.LONGEST) for method in ("full", bcd)}
    assert rate["half-longest", "full"] == pytest.approx(2 * rate["half", "full"])
    assert rate[record.LONGEST] == rate["half", "BCD-1/3 every 1e"]
    first = statistics.fmean(record.gaps("half", "BCD-1/3 every 1e"))
    assert first < statistics.fmean(record.gaps(*record.LONGEST, 0.25)) < 0
    for number, holds_zero in ((5, True), (10, False)):
        apart = document_record.full_updates_apart("half-longest", "half", number)
        assert (float(apart.high) > 0) == holds_zero and float(apart.low) < 0
    ends = document_record.ends_earlier(*record.LONGEST, 48)
    assert ends["ahead"] == 48 and 0 < ends["decided"] < 24
    assert document_record.ends_earlier(*record.LONGEST, 1)["decided"] == 1  # the registered end is among them
    above = [gain > 0.3 for gain in (statistics.fmean(curves.scores(each)[-48:]) - statistics.fmean(curves.scores(each)[-96:-48])
                                     for each in record.find("half-longest", "full").trainings)]
    assert above.count(True) == 2


@pytest.mark.parametrize("network", ["half-longest", "half-plain", "half-plain-adam", "half10", "half", "resnet8"])
def test_after_as_many_updates_bcd_is_nowhere_ahead_by_more_than_chance(network):
    found = record.compared(network, record.thirds_of(network), part=document_record.equal_part(network, record.thirds_of(network)))
    assert found.value < 0 or found.p > 0.05


def test_at_equal_updates_and_earlier_ends():
    """From the raw curves of the file: full updates that end 0 to 47 epochs early, and BCD after as many updates.  And the
    means of the last evaluations, in place of five."""
    runs = {True: [], False: []}  # by whether it is BCD: steps and accuracies of each seed
    for one in study.read([str(RESULTS / "plateau.h5")]):
        if one.settings["schedule"] == "constant":
            runs[one["submodels"] > 1].append((one.evaluation["step"], 100 * one.evaluation["accuracy"]))

    def mean_at(steps, scores, update):
        means = np.convolve(scores, np.ones(5) / 5, "valid")
        return np.interp(update, steps[4:].astype(float), means)
    total = max(steps[-1] for steps, _ in runs[False])
    gaps = [np.mean([mean_at(*one, update) for one in runs[True]]) - np.mean([mean_at(*one, update) for one in runs[False]])
            for update in (total * (1 - early / 240) for early in range(48))]
    found = document_record.ends_earlier(*record.LONGEST, 48, document_record.equal_part(*record.LONGEST))
    assert found["ahead"] == sum(gap > 0 for gap in gaps) == 0
    assert float(found["mean"]) == pytest.approx(np.mean(gaps), abs=0.006)
    last, ps = [], []
    for count in range(6, 31):
        bcd, full = ([scores[-count:].mean() for _, scores in runs[which]] for which in (True, False))
        last.append(np.mean(bcd) - np.mean(full))
        ps.append(5 * stats.ttest_ind(bcd, full, equal_var=False).pvalue)
    assert document_record.ahead_by_last(*record.LONGEST, range(6, 31)) == {
        "by": f"{min(last):.2f} to {max(last):.2f}", "p": f"{min(ps):.3f} to {max(ps):.2f}", "counts": 25,
        "decided": sum(p < 0.05 for p in ps)}


def test_at_equal_operations():
    """An update of BCD takes less of them, so BCD is later in its training than at equal updates, and not at its end."""
    (bcd, full), *_ = record.pairs(*record.LONGEST)
    spent = curves.updates_within(bcd, curves.OPERATIONS, curves.total_cost(full, curves.OPERATIONS))
    assert full["steps"] < spent < bcd["steps"]
    row = int(np.searchsorted(bcd.curve["step"], spent))  # a stored curve has not every update
    assert bcd.operations[row] <= full.operations[-1] < bcd.operations[row + 1]
    found = record.compared(*record.LONGEST, part=spent / bcd["steps"])
    assert document_record.ahead_at_equal_operations(*record.LONGEST).startswith(f"{found.value:+.2f} (")


def test_better_is_positive():
    """Of images more is better, and of perplexities less; of two seeds there is no interval."""
    ends = {network: [statistics.fmean(record.scores(network, method)) for method in ("BCD-1/3", "full")]
            for network in ("resnet8", "gpt")}
    assert document_record.better_by("resnet8", "BCD-1/3").startswith(f"{ends['resnet8'][0] - ends['resnet8'][1]:+.2f} (-")
    assert document_record.better_by("gpt", "BCD-1/3") == f"{ends['gpt'][1] - ends['gpt'][0]:+.2f}"


def test_a_cosine_brings_the_full_update_more():
    """On images: the least that it brought to the full update is more than the most that it brought to BCD."""
    found = document.brought_by_a_cosine()
    assert float(found["full"].low) > float(found["bcd"].high)


def test_at_the_published_ratios_halves_and_thirds_fall_back():
    for method, ratio in (("BCD-1/2", 40 / 18), ("BCD-1/3", 50 / 18)):
        means = [statistics.fmean(record.score_at(bcd, part) / record.score_at(full, part / ratio)
                                  for bcd, full in record.pairs("gpt", method)) for part in (0.5, 0.75, 1)]
        assert means == sorted(means)


def test_bcd_still_climbs():
    for network in "resnet8", "half", "half10", "resnet14", "resnet20":
        bcd, full = ([record.gain(each, 0.75) for each in record.find(network, method).trainings]
                     for method in (record.thirds_of(network), "full"))
        assert statistics.fmean(bcd) > statistics.fmean(full) and statistics.fmean(bcd) > 1


def test_the_regime_where_the_full_update_overfits():
    (bcd, full), = record.pairs("resnet8-plain", "BCD-1/3")
    means = {each: (curves.trailing(curves.scores(each), 5), curves.trailing(each.evaluation["loss"], 5))
             for each in (bcd, full)}
    assert record.score_at(bcd) > means[full][0].max() > record.score_at(full)
    assert means[bcd][1].min() < means[full][1].min()
    assert full.evaluation["loss"][-1] > 1.5 * full.evaluation["loss"].min()
    assert bcd.evaluation["loss"][-1] == bcd.evaluation["loss"].min()


def test_when_bcd_pays():
    table = document.made_of("savings.h5")["savings"]
    memory = {label: table.value(label, "all") for label in table.labels}
    assert memory["GPT 4x128: full, 2 micro-batches"] < memory["GPT 4x128: BCD-1/3"]
    assert memory["GPT 4x128: full, batch of 11"] < memory["GPT 4x128: BCD-1/3"]
    assert memory["ResNet-8: full, batch of 108"] == pytest.approx(memory["ResNet-8: BCD-1/3"], rel=0.01)
    assert memory["GPT 8x192: full, plain SGD"] == pytest.approx(memory["GPT 8x192: BCD-1/3"], rel=0.01)
    assert memory["GPT 8x192: BCD-1/3"] < memory["GPT 8x192: full, Lion"]


def test_what_was_planned_of_fine_tuning_lately():
    """The program plans less than the peaks that were measured, and as much less for both methods."""
    of, planned = document.by_method(), document.made_of("savings.h5")["large"]
    less = [int(of[name]["peak_total"]) - round(planned.value(label, "all")) for name, label in
            (("full, AdamW", "full"), ("BCD-1/3", "BCD-1/3"))]
    assert less[0] == less[1] > 0


def test_comparisons_of_the_groups():
    assert [document.comparisons(group) for group in ("plateau", "smollm", "no-augmentation")] == [
        f"{len(record.LONGEST_THIRDS) + 1} of 5", "7 of 7", "4 of 4"]


def test_what_three_seeds_decide():
    """Three of twelve comparisons are significant by Welch's test and none by the paired one; three seeds do not say
    whether pairing helps."""
    assert (document_record.significant(), document_record.significant(paired=True)) == (3, 0)
    assert len(record.decided()) == len(record.correlations()) == 12
    assert min(record.correlations()) < -0.5 and max(record.correlations()) > 0.5


def test_less_data_cannot_be_decided():
    for network, all_data in (("half10", "BCD-1/3 every 2e"), ("half", "BCD-1/3 every 1e"), ("gpt", "BCD-1/3")):
        found = record.compared(network, "1/3 x.9", all_data)
        assert found.low < 0 < found.high, network


def test_phases_by_auto_are_as_short_as_allowed():
    what = "half", "BCD-1/3 every auto"
    assert float(document_record.phase_updates(*what)[1]) == record.find(*what).first.setting("auto-min")


def test_pilots_third_submodel():
    """In two epochs with phases of an epoch the third submodel of the GPT never trained."""
    switches = [each for each in record.trainings("converged-pilot.h5")
                if each["model"].startswith("gpt") and (each["switching"], each["submodels"]) == ("1e", 3)]
    assert [len(each.switches["step"]) for each in switches] == [2]


# Settings that the documents state, by file, model, optimizer and schedule ("": all).
STATED = [
    ("converged.h5", "", "", "", "weight-decay=1e-5 decay=all order=cyclic keep-state=0 frozen-norm=running "
     "precision=fp32 device=cpu always-active="),
    ("converged.h5", "resnet", "", "", "batch=128 augment=1 clip=0 eval-samples=0"),
    ("converged.h5", "resnet", "sgd", "", "momentum=0.9"),
    ("converged.h5", "resnet", "", "constant", "warmup=0"),
    ("converged.h5", "resnet", "", "cosine", "warmup=79 final-lr=0 limit=10000"),
    ("converged.h5", "gpt", "", "", "batch=16 context=64 augment=0 clip=1 warmup=100 eval-samples=1000 optimizer=adam"),
    ("converged.h5", "gpt", "", "cosine", "final-lr=0"),
    ("validity.h5", "", "", "", "weight-decay=1e-5 augment=0"),
    ("validity.h5", "", "sgd", "", "momentum=0.9 lr=0.1"),
    ("validity.h5", "resnet", "", "", "batch=128 warmup=0 clip=0"),
    ("validity.h5", "resnet", "adam", "", "lr=0.003"),
    ("validity.h5", "gpt", "", "", "batch=16 warmup=50"),
    ("validity.h5", "gpt", "sgd", "", "clip=1"),
    ("validity.h5", "gpt", "adam", "", "lr=0.001 clip=0")]
# The rates of the full update and of BCD.
RATES = [("resnet", "sgd", 0.2, 0.1), ("resnet", "adam", 0.01, 0.003), ("gpt", "adam", 0.001, 0.002)]


@pytest.mark.parametrize("file, model, optimizer, schedule, settings", STATED)
def test_settings_are_those_of_the_files(file, model, optimizer, schedule, settings):
    found = [each for each in record.trainings(file) if each["model"].startswith(model)
             and optimizer in each["optimizer"] and schedule in each.setting("schedule")]
    assert found
    for each in found:
        for item in settings.split():
            flag, _, value = item.partition("=")
            setting = each.setting(flag)
            assert setting == (value if isinstance(setting, str) else float(value)), f"{each['row']}: {flag} is {setting}"


def test_rates_and_lengths_are_those_of_the_files():
    trained = record.trainings("converged.h5")
    for model, optimizer, full, bcd in RATES:
        rates = {(each["submodels"] == 1, each["lr"]) for each in trained
                 if each["model"].startswith(model) and each["optimizer"] == optimizer}
        assert rates == {(True, full), (False, bcd)}
    lengths = {}
    for each in trained:
        if each.setting("fraction") == 1:
            lengths.setdefault((each.is_images, each["submodels"]), set()).add(round(each["epochs"]))
    assert lengths == {(True, 1): {30, 60, 80}, (True, 3): {60, 120, 240}} | {(False, m): {24} for m in (1, 2, 3, 4)}


def test_the_losses_of_table_2_that_differ_most():
    """Section 5: the paper says that they differ by less than 0.1."""
    training, largest = published.largest_loss_difference()
    assert training.row == "ResNet8" and largest == pytest.approx(0.3955 - 0.2279)
