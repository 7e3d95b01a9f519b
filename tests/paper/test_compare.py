"""Trainings grouped and compared; tests and intervals."""
import math

import numpy as np
import pytest
from scipy import stats

import cases
import compare
from cases import Cases, case_name
from errors import Refused
from samples import GPT, case_of, curve, like, pairs, training


# ---- cases --------------------------------------------------------------------------------------

def test_cases():
    full, bcd, gpt, gpt_bcd = pairs()
    trainings = [full, bcd, gpt, gpt_bcd,
                 like(bcd, seed=2, checksum="another"),  # another seed, and images generated from it
                 like(full),  # the same training from another file
                 like(bcd, order="descending"),
                 like(full, method="offload"),
                 like(full, device="cuda", precision="bf16"),
                 like(bcd, momentum=0.5)]
    found = Cases(trainings)
    assert len(found.cases) == 4 and found.left_out == 0
    first = found.cases[0]
    assert len(first.methods) == 4
    assert first.methods[0].trainings == [full] and first.methods[1].first.is_offload
    seeds, = [method for method in first.methods if len(method.trainings) == 2]
    assert seeds.trainings == [bcd, trainings[4]] and seeds.name == "BCD-1/3"
    assert first.pairs(seeds) == [(bcd, full), (trainings[4], None)]
    assert case_name(gpt) == "gpt-2x64 text sgd" and case_name(trainings[8]) == "resnet8 synthetic sgd cuda bf16"
    assert case_name(like(gpt, limit=500)) == "gpt-2x64 text[:500] sgd"
    assert case_name(like(gpt, limit=500, schedule="cosine")) == "gpt-2x64 text[:500] sgd cosine"


def partners(case):
    return [pair for method in case.methods for pair in case.pairs(method)]


def test_left_out():
    """Of trainings with the same settings and seed the first one counts. Those that are dropped are counted if their
    losses differ."""
    full = training()
    other = like(full)
    other.curve["loss"][3] = 7
    assert Cases([full, like(full)]).left_out == 0
    found = Cases([full, other])
    assert found.left_out == 1 and found.methods[0].trainings == [full]
    # The same one from its run and, with a shorter curve, from a study; and another one of that study.
    assert Cases([full.thinned(20), full]).left_out == 0
    other.evaluation["loss"][1] = 7
    assert Cases([full.thinned(20), other]).left_out == 1


def test_scores_on_other_samples_are_not_compared():
    full, bcd, *_ = pairs()
    found = Cases([full, like(bcd, eval_samples=8)])
    assert len(found.cases) == 2 and partners(found.cases[1])[0][1] is None


def test_partners():
    """A longer full update of the same seed changes nothing for a training that has one of its own length. A full
    update never switches, whatever its flag says."""
    full, bcd, *_ = pairs()
    longer = like(full, steps=2000, switching="3e")
    other = like(bcd, steps=2001)
    case = case_of([full, bcd, longer, other])
    assert partners(case) == [(full, full), (longer, longer), (bcd, full), (other, longer)]
    assert not any("every" in method.name for method in case.methods if method.first["submodels"] == 1)
    assert {method.name for method in case.methods} >= {"full, 200 updates", "BCD-1/3, 2001 updates"}


def test_rates():
    """Each method is compared at its best rate. Another rate makes another method, with its own full update. The name
    has the rate, and other flags that differ."""
    full, bcd, *rest = pairs()
    own, warm = like(bcd, lr=0.05), like(bcd, switch_warmup=40)
    case = case_of([full, bcd, *rest, own, warm])
    assert len(case.methods) == 4 and (own, full) in partners(case)
    assert {method.name for method in case.methods} >= {"BCD-1/3 rate 0.05", "BCD-1/3 rate 0.1 switch-warmup 40"}
    twin = like(full, lr=0.05, steps=400)
    case = case_of([full, bcd, *rest, own, warm, twin])
    assert {(own, twin), (bcd, full)} <= set(partners(case)), "of the same rate"


def test_all_seeds_have_the_same_partner():
    """A full update of BCD's rate and length, but of one seed, as in a pilot, takes no seed from the one of three."""
    full, bcd, *_ = pairs()
    pilot = like(full)
    longer = like(full, lr=0.2, steps=400)
    three = [like(one, seed=seed) for one in (longer, bcd) for seed in (1, 2, 3)]
    assert partners(case_of([pilot, *three]))[-3:] == list(zip(three[3:], three[:3]))


def test_registered_trainings_are_compared_with_registered_ones():
    """Where there are some; and of two that are the same training the registered one counts."""
    full, bcd, *_ = pairs()
    older = [like(full, seed=seed) for seed in (1, 2)]
    later = [like(full, started=cases.REGISTERED, lr=0.2), like(bcd, started=cases.REGISTERED)]
    assert (later[1], later[0]) in partners(case_of([*older, *later]))
    assert (later[1], older[0]) in partners(case_of([*older, later[1]]))
    again = like(full, started=cases.REGISTERED)
    assert partners(case_of([full, bcd, again])) == [(again, again), (bcd, again)]


def test_names_of_variants():
    bcd = training(submodels=3)
    named = [like(bcd), like(bcd, frozen_norm="batch"), like(bcd, keep_state=1), like(bcd, order="random"),
             like(bcd, switching="auto", switch_every="auto"), like(bcd, fraction=0.9)]
    names = [method.name for method in case_of(named).methods]
    assert names == ["BCD-1/3 every 20", "BCD-1/3 every 20 batch norms", "BCD-1/3 every 20 keeps state",
                     "BCD-1/3 every 20 random", "BCD-1/3 every auto", "1/3 x.9"]
    assert [method.is_plain for method in case_of(named).methods] == [True, False, False, False, False, True]


def test_names_of_cases():
    """Those that would have the same name have the settings in which they differ."""
    full = training()
    made = [full, like(full, momentum=0.0), like(full, clip=1.0), training(GPT, False),
            training(GPT + ",heads=4", False)]
    assert [case.name for case in Cases(made[:1]).cases] == ["resnet8 synthetic sgd"]
    assert [case.name for case in Cases(made).cases] == [
        "resnet8 synthetic sgd clip 0 momentum 0.9", "resnet8 synthetic sgd clip 0 momentum 0",
        "resnet8 synthetic sgd clip 1 momentum 0.9", f"gpt-2x64 text sgd model {GPT}",
        f"gpt-2x64 text sgd model {GPT},heads=4"]
    assert len({method.label for method in Cases(made).methods}) == len(made)


def test_the_heaviest_case_is_first():
    """Its method of most seeds counts; of as many, the longer one."""
    short, longer, three = training(), training("resnet14", steps=400), training("resnet20")
    made = [short, longer, three, *(like(three, submodels=3, method="BCD", seed=seed) for seed in (1, 2, 3))]
    assert [case.methods[0].first for case in Cases(made, heaviest_first=True).cases] == [three, longer, short]
    assert [case.methods[0].first for case in Cases(made).cases] == [short, longer, three]


def test_what_has_no_effect_makes_no_other_case():
    """The end of a cosine where the rate is constant, and where the data lie."""
    *_, full, bcd = pairs()
    assert len(Cases([like(full, data="a/x.tokens"), like(bcd, final_lr=0.1, data="b/x.tokens")]).cases) == 1
    cosines = [like(full, schedule="cosine"), like(bcd, schedule="cosine", final_lr=0.1)]
    assert len(Cases(cosines).cases) == 2
    assert len(Cases([like(full, valid="a/x.tokens"), like(bcd, valid="b/x.tokens")]).cases) == 1
    for step in ({"step_every": 5}, {"step_factor": 0.5}):
        assert len(Cases([full, like(bcd, **step)]).cases) == 1
        assert len(Cases([like(full, schedule="step"), like(bcd, schedule="step", **step)]).cases) == 2
    assert len(Cases([like(full, valid="a/x.tokens"), like(bcd, valid="a/y.tokens")]).cases) == 2


def test_settings_of_older_files():
    """A flag that an older file lacks had no effect when the file was written; with SGD those of Adam have none."""
    old, new = training(submodels=3), training(submodels=3, seed=2)
    for flag in ("switch-warmup", "correct-above", "submodel-lr", "valid", "beta1", "beta2", "eps"):
        del old.settings[flag]
    assert len(case_of([old, new]).methods) == 1
    assert len(case_of([old, like(new, switch_warmup=3)]).methods) == 2


@pytest.mark.parametrize("idle", [
    {"switching": "5", "switch_every": "5"}, {"order": "random"}, {"keep_state": 1}, {"always_active": "ends"},
    {"frozen_norm": "batch"}, {"correct_above": 2.0}, {"partition": "0,1"}, {"switch_every": "auto", "auto_min": 7}])
def test_a_full_update_by_the_flags_of_bcd(idle):
    """As --like BCD --submodels 1 makes it.  These flags are idle then, so that it is another seed of the full update."""
    full, bcd, *_ = pairs()
    made = [full, bcd, like(full, seed=2, **idle), like(bcd, seed=2)]
    case = case_of(made)
    assert [method.name for method in case.methods] == ["full", "BCD-1/3"]
    assert partners(case)[2:] == [(bcd, full), (made[3], made[2])]


@pytest.mark.parametrize("own, name", [
    ({"lr": 0.05}, "full rate 0.05"), ({"fraction": 0.5}, "full x.5"), ({"switch_warmup": 40}, "full switch-warmup 40"),
    ({"submodel_lr": "0.5"}, "full submodel-lr 0.5")])
def test_full_updates_that_differ_have_names_that_differ(own, name):
    names = [method.name for method in case_of([training(), training(**own)]).methods]
    assert name in names and len(set(names)) == 2


def test_irrelevant_settings():
    bcd = training(submodels=3)
    assert len(case_of([bcd, like(bcd, seed=2, eval_every=7, threads=9, recompute=1)]).methods) == 1
    assert "augment" not in cases.IRRELEVANT


@pytest.mark.parametrize("optimizer, setting, methods", [
    ("sgd", "momentum", 2), ("sgd", "beta1", 1), ("adam", "beta1", 2), ("sophia", "lr", 2),
    ("sophia", "beta1", 2), ("sophia", "momentum", 2)])
def test_settings_of_an_optimizer(optimizer, setting, methods):
    """Of one that this program does not have each setting may count."""
    one = training(optimizer=optimizer)
    assert len(Cases([one, like(one, **{setting: 0.05})]).methods) == methods


# ---- multipliers --------------------------------------------------------------------------------

def test_pairs_alone():
    """Adding other trainings changes no pair's numbers."""
    trainings = pairs()
    before = trainings[1]["multiplier"], trainings[1]["level"]
    worse = like(trainings[1], submodels=4)
    worse.curve = curve([2.9] * 20, 4)
    compare.converge([*trainings, worse])
    assert (trainings[1]["multiplier"], trainings[1]["level"]) == before
    assert worse["level"] == pytest.approx(2.9) and worse["steps_to_converge"] == 10
    worse.row["seed"] = 2  # no full update has this schedule
    compare.converge([*trainings, worse])
    assert math.isnan(worse["multiplier"])


@pytest.mark.parametrize("model, images", [(GPT, False), ("resnet8", True)])
@pytest.mark.parametrize("optimizer", ["adam", "adamw", "sgd"])
def test_measured_multiplier(model, images, optimizer):
    trainings = [training(model, images, 1, 0.02, optimizer=optimizer), training(model, images, 3, 0.01, optimizer=optimizer)]
    value = compare.measured_multiplier(trainings, "some.h5")
    assert value == trainings[1]["multiplier"] > 1


def test_measured_multiplier_of_several():
    """What is priced are language models with Adam; the others stand in for them, in this order."""
    kinds = [[training(model, images, 1, 0.02, optimizer=optimizer), training(model, images, 3, rate, optimizer=optimizer)]
             for model, images, optimizer, rate in ((GPT, False, "adam", 0.01), (GPT, False, "sgd", 0.011),
                                                    ("resnet8", True, "adam", 0.012), ("resnet8", True, "sgd", 0.013))]
    for first in range(4):
        value = compare.measured_multiplier(sum(kinds[:first - 1 if first else None:-1], []), "some.h5")
        assert value == kinds[first][1]["multiplier"]
    assert len({bcd["multiplier"] for _, bcd in kinds}) == 4


@pytest.mark.parametrize("diverged", [0, 1])
def test_what_diverged_has_no_multiplier(diverged):
    """Nor has what would be compared with it: its curves end before its training."""
    made = pairs()[:2]
    made[diverged].row["status"] = "diverged"
    compare.converge(made)
    assert all(math.isnan(made[1][name]) for name in ("level", "multiplier", "steps_to_converge", "valid_multiplier"))


def test_measured_multiplier_of_nothing():
    with pytest.raises(Refused, match="some.h5: no BCD-1/3"):
        compare.measured_multiplier([training(), training(submodels=2)], "some.h5")


# ---- statistics ---------------------------------------------------------------------------------

def test_means():
    assert np.isnan(compare.mean([])[:2]).all() and compare.mean([])[2] == 0
    assert compare.mean([2, math.nan])[::2] == (2, 1) and math.isnan(compare.mean([2, math.nan])[1])
    assert compare.mean([2, math.nan, 4, 9]) == (5, pytest.approx(math.sqrt(13)), 3)


def test_welch():
    """By hand: means 5 and 2, variances 4 and 1 of three each: 3 over the root of 5/3, with (5/3)^2 / (16/18 + 1/18) =
    50/17 degrees of freedom.  scipy has the same probability."""
    first, second = [3, 5, 7], [1, 2, 3]
    found = compare.welch(first, second)
    error, freedom = math.sqrt(5 / 3), 50 / 17
    assert found.value == 3 and found.seeds == 3
    assert found.p == pytest.approx(2 * stats.t.sf(3 / error, freedom))
    assert found.p == pytest.approx(stats.ttest_ind(first, second, equal_var=False).pvalue)
    # A difference at the end of a 95 % interval has p = 0.05.
    for end in (found.low, found.high):
        assert compare.welch([value - end for value in first], second).p == pytest.approx(0.05)


@pytest.mark.parametrize("first, second, value", [([1], [2, 3], -1.5), ([], [], math.nan), ([1, 2], [3], -1.5)])
def test_welch_of_too_few(first, second, value):
    found = compare.welch(first, second)
    assert found.value == pytest.approx(value, nan_ok=True) and math.isnan(found.p) and math.isnan(found.low)


def test_welch_of_equal_values():
    assert compare.welch([1, 1], [1, 1]).p == 1 and compare.welch([2, 2], [1, 1]).p == 0


def test_holm():
    """In the order of Holm the smallest p is multiplied by 3, the next one by 2, and none becomes smaller than the one
    before."""
    assert compare.holm([0.02, math.nan, 0.015, 0.03]) == [pytest.approx(0.045), pytest.approx(math.nan, nan_ok=True),
                                                          pytest.approx(0.045), pytest.approx(0.045)]
    assert compare.holm([0.6, 0.7]) == [1, 1]


@pytest.mark.parametrize("difference, p, more_is_better, words", [
    (1, 0.04, True, "BCD ahead"), (1, 0.04, False, "full ahead"), (-1, 0.04, True, "full ahead"),
    (-1, 0.05, True, "undecided"), (-1, math.nan, True, "")])
def test_verdict(difference, p, more_is_better, words):
    assert compare.verdict(difference, p, more_is_better) == words
