"""bcd report: the tables of trainings, by hand."""
import math

import numpy as np
import pytest

import beyond
import curves
import measures
import report
import study
from samples import GPT, LATER, MIB, evaluations, like, pairs, training
from tables import CLOSED_FORM, MEASURED, NONE, PUBLISHED, RECOMPUTED, Tables

LABEL, HERE, HERE_GPT = "resnet8 synthetic sgd BCD-1/3", "  here: resnet8 synthetic sgd ", "  here: gpt-2x64 text sgd "


def tables_of(trainings):
    return Tables(report.make(trainings)[0])


def holds(found, table, row, column, value, source):
    cell = found[table].cell(row, column)
    return cell.source == source and cell.value == pytest.approx(value, rel=1e-9)


def is_empty(found, table, row, column):
    return found[table].cell(row, column).is_empty


# ---- next to the paper --------------------------------------------------------------------------

def test_table_2():
    trainings = pairs()
    trainings[1] = like(trainings[1], lr=0.2)
    found = tables_of(trainings)
    third, bcd = "ResNet8 SGD, 1/3", trainings[1]
    assert holds(found, "table2_images", third, "trained", 395, PUBLISHED)
    assert holds(found, "table2_images", third, "multiplier", 395 / 639, RECOMPUTED)
    assert holds(found, "table2_images", third, "score", 87.2, PUBLISHED)
    assert holds(found, "table2_images", "ResNet20 Adam, 1/3", "train_loss", 0.0222, PUBLISHED)
    assert is_empty(found, "table2_images", third, "valid_loss")
    assert holds(found, "table2_images", HERE + "BCD-1/3", "score", 72.51, MEASURED)
    assert holds(found, "table2_images", HERE + "BCD-1/3", "multiplier", bcd["multiplier"], MEASURED)
    assert holds(found, "table2_images", HERE + "BCD-1/3", "to_level", 4, MEASURED)
    assert holds(found, "table2_images", HERE + "BCD-1/3", "rate", 0.2, NONE)
    assert holds(found, "table2_images", HERE + "full", "rate", 0.1, NONE)
    assert holds(found, "table2_images", HERE + "full", "trained", 4, NONE)
    assert is_empty(found, "table2_images", HERE + "full", "multiplier")
    assert holds(found, "table2_language", HERE_GPT + "BCD-1/3", "score", math.exp(0.71), MEASURED)
    assert holds(found, "table2_language", HERE_GPT + "BCD-1/3", "to_level", trainings[3]["steps_to_converge"], MEASURED)
    labels = found["table2_images"].labels
    assert len(labels) == 18 and labels[2:4] == [third, HERE + "BCD-1/3"], "ours are below the published one"
    assert not {"table9", "table10", "table11"} & {table.name for table in found}, "tables without trainings"
    assert [found[f"table2_{kind}"].columns[5].head for kind in ("images", "language")] == ["accuracy", "perplexity"]
    assert holds(found, "multipliers", "SGD, image models", "training_loss", bcd["multiplier"], MEASURED)
    assert is_empty(found, "multipliers", "Adam, language models", "training_loss")


def test_means_of_five():
    """Where there are ten evaluations, a score and a validation loss are means of the last five."""
    trainings = pairs()
    for t in trainings[:2]:
        t.evaluation = evaluations([20 * e for e in range(1, 11)], [e / 10 for e in range(10)], [0.5 + e / 100 for e in range(10)])
    found = tables_of(trainings)
    assert holds(found, "table2_images", HERE + "full", "score", 57, MEASURED)
    assert holds(found, "table2_images", HERE + "full", "valid_loss", 0.7, MEASURED)


def test_a_registered_cosine_has_its_last_score():
    """As the protocol says; of an older one it is the mean of five."""
    for started, score in ((LATER, 59), (pairs()[0]["started"], 57)):
        trainings = [like(one, schedule="cosine", started=started) for one in pairs()[:2]]
        for t in trainings:
            t.evaluation = evaluations(range(20, 201, 20), [1] * 10, [0.5 + e / 100 for e in range(10)])
        found = tables_of(trainings)["table2_images"]
        assert [found.value(label, "score") for label in found.labels if "here" in label] == pytest.approx([score] * 2)


def test_nine_evaluations_have_no_means():
    """They are far apart: the last one alone counts, and nothing is said of convergence."""
    trainings = pairs()[:2]
    for t in trainings:
        t.evaluation = evaluations([20 * e for e in range(1, 10)], [e / 10 for e in range(9)], [0.5 + e / 100 for e in range(9)])
    found = tables_of(trainings)
    assert holds(found, "table2_images", HERE + "full", "score", 72.51, MEASURED)
    assert holds(found, "table2_images", HERE + "full", "valid_loss", 0.71, MEASURED)
    assert "converged" not in {table.name for table in found}


def test_table_2_of_a_training_that_diverged():
    trainings = pairs()
    trainings[0].row.update(status=study.DIVERGED, valid_loss=math.nan)
    trainings[0].evaluation = evaluations([10 * e for e in range(1, 11)], [2.0] * 10)
    found = tables_of(trainings)
    label = HERE + "full, diverged: seed 1"
    assert all(is_empty(found, "table2_images", label, name) for name in ("score", "train_loss", "valid_loss"))


def test_an_offloaded_full_update_is_not_next_to_the_paper():
    """Its memory is not what the paper has of a full update."""
    trainings = pairs()[:2]
    labels = tables_of([*trainings, like(trainings[0], method="offload")])["table2_images"].labels
    assert [label for label in labels if label.startswith(HERE)] == [HERE + "full", HERE + "BCD-1/3"]


def test_mean_multipliers_are_of_one_kind():
    """Variants in order or phases, and what began from trained weights, are in no mean of them."""
    plain = pairs()[:2]
    found = tables_of([*plain, training(submodels=3, rate=0.005, order="descending")])
    assert holds(found, "multipliers", "SGD, image models", "trainings", 1, NONE)
    assert holds(found, "multipliers", "SGD, image models", "training_loss", plain[1]["multiplier"], MEASURED)
    tuned = tables_of([like(one, init=".") for one in plain])
    assert holds(tuned, "multipliers", "SGD, image models", "trainings", 0, NONE)


def test_tables_9_to_11():
    """"Acc" is shown as the perplexity that it is, and mean multipliers leave these rows out."""
    trainings = pairs() + [training(GPT, False, 3, 0.004, fraction=0.9), training(GPT, False, 2, 0.003),
                           training(submodels=3, rate=0.009, fraction=0.9), training(rate=0.009, init=".")]
    found = tables_of(trainings)
    assert holds(found, "table9", "0.9 1/3 SGD", "score", 6.89, RECOMPUTED)
    assert holds(found, "table9", HERE_GPT + "1/3 x.9", "multiplier", trainings[4]["multiplier"], MEASURED)
    assert holds(found, "table9", "1 1/3 SGD", "memory", 1013.58, PUBLISHED)
    assert holds(found, "table9", HERE_GPT + "full", "memory", 9, MEASURED)
    assert holds(found, "table10", HERE + "1/3 x.9", "multiplier", trainings[6]["multiplier"], MEASURED)
    assert holds(found, "table11", HERE_GPT + "BCD-1/2", "memory", 6, MEASURED)
    assert holds(found, "table11", HERE_GPT + "BCD-1/3", "closed_form", 5, CLOSED_FORM)
    assert len(found["table11"].rows) == 8 + 3
    assert holds(found, "multipliers", "SGD, language models", "training_loss", trainings[3]["multiplier"], MEASURED)
    assert found["finetune"].labels == ["resnet8 synthetic sgd init . full"]


# ---- pairs --------------------------------------------------------------------------------------

def test_same_loss():
    """BCD-1/3 has the losses of the full update in twice the updates, and 2/3 of its time per update."""
    trainings = pairs()
    found = tables_of(trainings)
    full, bcd = trainings[:2]
    at, full_at = int(bcd["steps_to_converge"]) - 1, round(bcd["steps_to_converge"] / bcd["multiplier"]) - 1
    operations = bcd.operations, full.operations
    assert holds(found, "same_loss", LABEL, "updates", bcd["multiplier"], MEASURED)
    assert holds(found, "same_loss", LABEL, "seconds", bcd["multiplier"] * 2 / 3, MEASURED)
    assert holds(found, "same_loss", LABEL, "operations", operations[0][at] / operations[1][full_at], MEASURED)
    assert holds(found, "per_update", LABEL, "ms", 100, MEASURED)
    assert holds(found, "per_update", LABEL, "time", 2 / 3, MEASURED)
    assert holds(found, "per_update", LABEL, "operations", operations[0][199] / operations[1][199], CLOSED_FORM)
    assert holds(found, "per_update", LABEL, "trained", 5 / 9, MEASURED)
    assert holds(found, "per_update", LABEL, "peak", 10 / 14, MEASURED)


@pytest.mark.parametrize("steps, full_steps", [(150, 7), (2, 49), (150, 100)])
def test_the_row_of_the_full_update_is_found_exactly(steps, full_steps):
    """Although 150 / (150 / 7) is a little more than 7."""
    full, bcd = training(), training(submodels=3, steps_to_converge=float(steps), multiplier=steps / full_steps)
    seconds = beyond.to_level(curves.SECONDS)(measures.Pair(bcd, full))
    assert seconds == bcd.curve["seconds"][steps - 1] / full.curve["seconds"][full_steps - 1]


@pytest.mark.parametrize("other", [{"threads": 3}, {"cpu": "another"}, {"pipeline": "local:3", "replicas": 1}])
def test_other_computers(other):
    """Seconds of other processors, threads or ranks are not compared."""
    trainings = pairs()
    trainings[1] = like(trainings[1], **other)
    trainings[1].provenance["cpu"] = trainings[1]["cpu"]
    found = tables_of(trainings)
    assert is_empty(found, "same_loss", LABEL, "seconds") and is_empty(found, "answer", LABEL, "equal_seconds")
    assert is_empty(found, "answer", LABEL, "time") and not is_empty(found, "same_loss", LABEL, "operations")


def test_ranks():
    """Seconds are compared between as many ranks, and notes say that peaks are sums over them."""
    def noted(trainings):
        return {table.name for table in tables_of(trainings) if measures.RANKS_NOTE in table.notes}
    one_device = pairs()
    one_device[0].settings |= {"pipeline": "none", "replicas": 1}
    one_device[1].settings |= {"pipeline": "", "replicas": 0}  # of older trainings next to newer ones
    assert not is_empty(tables_of(one_device), "answer", LABEL, "time") and noted(one_device) == set()
    ranks = [like(one, pipeline="local:4", replicas=2) for one in pairs()]
    assert not is_empty(tables_of(ranks), "answer", LABEL, "time")
    assert noted(ranks) == {"answer", "per_update", "trainings"}
    mixed = [like(ranks[0], replicas=1), *ranks[1:]]
    assert is_empty(tables_of(mixed), "answer", LABEL, "time")
    assert "answer" in noted([ranks[0], one_device[1]]), "where the full update alone is over ranks"


@pytest.mark.parametrize("peak", [9, 10])
def test_equal_budgets(peak):
    """20 seconds are 200 updates of BCD and 133 of the full one, two thirds of the way from its second evaluation to
    its third. A smaller network fits the same memory, 10 MiB."""
    fits = training("resnet:depth=8,width=8", rate=0.004, peak_total=peak * MIB)
    fits.evaluation["accuracy"][3] = 0.6
    trainings = pairs() + [
        fits, training("resnet:depth=8,width=4", rate=0.004, peak_total=8 * MIB),
        # This one fits better, but was not trained alike.
        training("resnet:depth=8,width=9", rate=0.004, peak_total=9.5 * MIB, augment=1)]
    found = tables_of(trainings)
    for budget, difference in [("updates", 0), ("seconds", 71 - (57 + 7 * 33 / 50)), ("memory", 71 - 60)]:
        assert found["answer"].value(LABEL, f"equal_{budget}") == pytest.approx(difference, abs=1e-9)
        assert found["answer"].value(LABEL, f"{budget}_verdict") == "", "a verdict of one seed"
    for column, value in [("bcd", 71), ("full", 71), ("memory", 10 / 14), ("time", 2 / 3),
                          ("updates", trainings[1]["multiplier"])]:
        assert holds(found, "answer", LABEL, column, value, MEASURED)
    assert found.tables[0].name == "answer"


@pytest.mark.parametrize("cosine, started, end", [(False, LATER, 57), (True, "2026-01-01T00:00:00Z", 57), (True, LATER, 59)])
def test_cosine(cosine, started, end):
    """A training whose rate depends on its length says nothing about shorter ones.  By the protocol it ends at its last
    evaluation."""
    trainings = [like(t, started=started, **({"schedule": "cosine"} if cosine else {})) for t in pairs()[:2]]
    for r, t in enumerate(trainings):
        count = 20 if r else 10
        t.evaluation = evaluations([10 * e for e in range(1, count + 1)], [math.exp(-0.1 * (2 - r) * e) for e in range(count)],
                                   [0.4 + 0.01 * e for e in range(count)])
    full = trainings[0]
    full.row["steps"], full.curve = 100, {name: values[:100] for name, values in full.curve.items()}
    found = tables_of(trainings)
    label = LABEL.replace("sgd", "sgd cosine") if cosine else LABEL
    assert is_empty(found, "answer", label, "equal_updates") == cosine, "after 100 updates"
    assert holds(found, "converged", label, "end", end, MEASURED)
    assert holds(found, "converged", label, "end_difference", 10, MEASURED)
    if cosine:
        assert is_empty(found, "converged", label, "at_equal") and is_empty(found, "converged", label, "same_loss")
    else:
        assert holds(found, "converged", label, "at_equal", 47, MEASURED)
        assert not is_empty(found, "converged", label, "same_loss")


# ---- seeds --------------------------------------------------------------------------------------

def seeds(images=True, bcd=0.7, spread=(-0.04, 0.03, 0.02)):
    """Three seeds of a full update with accuracy 0.7 and of BCD."""
    made = []
    for seed in (1, 2, 3):
        for submodels in (1, 3):
            t = training(submodels=submodels, rate=(0.02 if submodels == 1 else 0.01) + 1e-4 * seed, seed=seed,
                         checksum=f"images of seed {seed}", input="images" if images else "tokens")
            value = bcd + spread[seed - 1] if submodels == 3 else 0.7 + 1e-3 * seed
            t.row["accuracy"] = value
            t.evaluation["accuracy"][:] = value
            t.evaluation["perplexity"][:] = value
            made.append(t)
    return made


def test_seeds():
    found = tables_of(seeds())
    score = found["table2_images"].cell(HERE + "BCD-1/3", "score")
    assert score.value == pytest.approx(100 * (0.7 + 0.01 / 3)) and score.spread == pytest.approx(
        100 * float(np.std([-0.04, 0.03, 0.02], ddof=1)))
    assert holds(found, "table2_images", HERE + "BCD-1/3", "seeds", 3, NONE)
    assert holds(found, "multipliers", "SGD, image models", "trainings", 3, NONE)
    assert found["answer"].value(LABEL, "updates_verdict") == "undecided"
    assert holds(found, "trainings", "resnet8 synthetic sgd full", "seeds", 3, NONE)
    assert holds(found, "trainings", LABEL, "peak", 10, MEASURED)


def test_ratios_are_means_of_ratios():
    """Each seed is over the full update of its own seed."""
    trainings = seeds()
    for one in trainings:
        one.row["peak_total"] = MIB * {1: 10, 3: 5}[one["submodels"]] * (one["seed"] if one["submodels"] == 1 else 1)
    assert holds(tables_of(trainings), "answer", LABEL, "memory", (5 / 10 + 5 / 20 + 5 / 30) / 3, MEASURED)


@pytest.mark.parametrize("submodels", [1, 3])
def test_a_seed_that_diverged_is_not_compared(submodels):
    """The two others are, and have no verdict."""
    trainings = seeds(bcd=0.9, spread=(0.001, 0.002, 0.009))
    trainings[4 + (submodels == 3)].row["status"] = study.DIVERGED
    table = tables_of(trainings)["answer"]
    label, = table.labels
    assert table.value(label, "updates_verdict") == ""
    assert table.value(label, "equal_updates") == pytest.approx(20 + (0.1 + 0.2 - 0.1 - 0.2) / 2)


@pytest.mark.parametrize("images, bcd, verdict", [
    (True, 0.9, "BCD ahead"), (True, 0.5, "full ahead"), (False, 0.5, "BCD ahead"), (False, 0.9, "full ahead")])
def test_verdicts(images, bcd, verdict):
    """A lower perplexity is better."""
    found = tables_of(seeds(images, bcd, (0.001, 0.002, 0.003)))
    assert found["answer"].value(LABEL, "updates_verdict") == verdict


def test_verdicts_are_corrected_for_their_number():
    """A difference that alone would be beyond chance is undecided among ten."""
    alone = seeds(bcd=0.72, spread=(-0.007, 0.0, 0.007))
    many = list(alone)
    for other in range(9):
        many += [like(t, batch=100 + other) for t in seeds()]
    assert tables_of(alone)["answer"].value(LABEL, "updates_verdict") == "BCD ahead"
    verdicts = [cell.value for cell in tables_of(many)["answer"].column("updates_verdict")]
    assert verdicts == ["undecided"] * 10


def test_two_seeds_have_an_interval_and_no_verdict():
    trainings = [t for t in seeds() if t["seed"] < 3]
    for t in trainings:
        t.evaluation = evaluations(range(20, 220, 20), [1] * 10, [t["accuracy"] + 0.001 * e for e in range(10)])
    found = tables_of(trainings)["converged"]
    assert found.value(LABEL, "end_verdict") == ""
    low, difference, high = (found.value(LABEL, name) for name in ("end_low", "end_difference", "end_high"))
    assert low < difference < high and difference == pytest.approx((low + high) / 2)


def test_the_full_update_at_the_end_is_that_of_the_pairs():
    """Of a seed that diverged by BCD the full update is not in the mean next to it."""
    trainings = seeds()
    for t in trainings:
        t.evaluation = evaluations(range(20, 220, 20), [1] * 10, [0.1 * t["seed"] + 0.01 * (t["submodels"] == 3)] * 10)
    trainings[-1].row["status"] = study.DIVERGED
    found = tables_of(trainings)["converged"]
    label, = (label for label in found.labels if "diverged" in label)
    assert found.value(label, "end_full") == pytest.approx(15) and found.value(label, "end") == pytest.approx(16)
    assert found.value(label, "end_difference") == pytest.approx(1)


@pytest.mark.parametrize("provenance, mixed", [
    ({}, False), ({"commit": "def"}, True), ({"cpu": "another"}, True), ({"commit": "abc then def"}, True)])
def test_means_over_other_programs_or_computers_are_named(provenance, mixed):
    """Also where all seeds went on by another program."""
    trainings = [training(seed=seed, checksum=f"{seed}") for seed in (1, 2)]
    for t in trainings[" then " not in provenance.get("commit", ""):]:
        t.provenance |= provenance
    notes = tables_of(trainings)["trainings"].notes
    assert any(note.endswith(": of resnet8 synthetic sgd full, for example.") for note in notes) == mixed


def test_a_single_pair_is_a_sentence():
    found = tables_of(pairs()[:2])["answer"]
    assert found.title.startswith(LABEL + ": 0.71 x memory, 0.67 x time per update, ") and found.title.endswith(" x updates")


def test_nothing():
    assert report.make([])[0] == []
