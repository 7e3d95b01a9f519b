"""The rules of protocol.md: scores, the best rates, and answers; cells computed by hand."""
import math
import multiprocessing

import numpy as np
import pytest
from scipy import stats

import beyond
import compare
import measures
import program
import registered
import smollm
import study
from cases import Cases
from errors import Refused
from samples import GPT, LATER, PROVENANCE, curve, evaluations, like, training


def scored(accuracies, **columns):
    """A training with these accuracies, in per cent."""
    made = training(started=LATER, **columns)
    made.evaluation = evaluations(np.arange(1, len(accuracies) + 1) * 10, 2 - np.array(accuracies) / 100,
                                  np.array(accuracies) / 100)
    return made


def of_loss(loss, **columns):
    made = training(GPT, False, started=LATER, **columns)
    made.evaluation = evaluations(range(10, 60, 10), [loss] * 5)
    return made


# ---- scores -------------------------------------------------------------------------------------

def test_scores():
    accuracies = [10, 60, 70, 80, 70, 60, 20]
    assert registered.at_the_end(scored(accuracies)) == pytest.approx(60)
    assert registered.at_its_best(scored(accuracies)) == pytest.approx(68)
    assert registered.at_the_end(scored(accuracies, schedule="cosine")) == pytest.approx(20)
    assert math.isnan(registered.at_the_end(scored([50, 60, 70, 80])))
    assert math.isnan(registered.at_the_end(scored([50, 60, 70, 80, math.nan], schedule="cosine")))
    for status in ("diverged", "running"):
        stopped = scored([50, 60, 70, 80, 90], schedule="cosine", status=status)
        assert math.isnan(registered.at_the_end(stopped)) and math.isnan(registered.at_its_best(stopped))
    assert registered.at_the_end(of_loss(2)) == pytest.approx(math.exp(2))
    assert registered.at_the_end(of_loss(2, init="model")) == 2


# ---- the best rates -----------------------------------------------------------------------------

def of_rates(scores, **columns):
    return [scored([score] * 5, lr=lr, **columns) for lr, score in zip((0.4, 0.05, 0.1, 0.2), scores)]


def test_rates():
    """The rates are sorted; each schedule and method has its grid; rates that diverged count as worse."""
    trainings = (of_rates([60, 50, 70, 65]) + of_rates([math.nan, 50, 60, 70], submodels=3)
                 + of_rates([60, 50, 55, 57], schedule="cosine"))
    table = registered.best_rates(Cases(trainings))
    full, cosine, bcd = "resnet8 synthetic sgd full", "resnet8 synthetic sgd cosine full", "resnet8 synthetic sgd BCD-1/3"
    assert sorted(table.labels) == sorted([full, cosine, bcd])
    assert table.value(full, "tried") == "0.05 0.1 0.2 0.4"
    assert [table.value(full, name) for name in ("best", "score", "lower", "higher")] == pytest.approx([0.1, 70, 50, 65])
    assert table.value(full, "place") == table.value(bcd, "place") == "inside"
    assert table.value(bcd, "best") == 0.2 and table.cell(bcd, "higher").is_empty
    assert table.value(cosine, "best") == 0.4 and table.value(cosine, "place") == "the highest"


def test_a_best_rate_at_the_end_of_its_grid():
    """There may be a better one beyond it, so it is not said to be inside."""
    table = registered.best_rates(Cases(of_rates([60, 80, 70, 65])))
    assert table.column("best")[0].value == 0.05 and table.column("place")[0].value == "the lowest"
    assert table.column("lower")[0].is_empty and table.column("higher")[0].value == 70


def test_a_rate_that_diverged_is_not_chosen():
    """Not even one of whose seeds the others are best; it is named among those tried."""
    best = [scored([90] * 5, lr=0.8, seed=1), scored([20], lr=0.8, seed=2, status="diverged")]
    table = registered.best_rates(Cases(of_rates([60, 50, 70, 65]) + best))
    label, = table.labels
    assert table.value(label, "best") == 0.1 and table.value(label, "tried") == "0.05 0.1 0.2 0.4 0.8 (diverged)"
    every = registered.best_rates(Cases([scored([20], lr=lr, status="diverged") for lr in (0.4, 0.8)]))
    label, = every.labels
    assert every.value(label, "tried") == "0.4 (diverged) 0.8 (diverged)" and every.cell(label, "best").is_empty


def test_rates_of_perplexity():
    trainings = [of_loss(loss, lr=lr) for lr, loss in ((0.1, 2.0), (0.2, 1.5), (0.4, 1.75))]
    table = registered.best_rates(Cases(trainings))
    assert table.column("best")[0].value == 0.2 and table.column("place")[0].value == "inside"


def test_not_registered():
    """Trainings of before have no rows."""
    trainings = [like(one, started="2026-11-25T17:33:59Z") for one in of_rates([60, 50, 70, 65])]
    assert not registered.best_rates(Cases(trainings)).rows
    assert not registered.answers(Cases([like(one, seed=seed) for seed in (1, 2) for one in trainings])).rows


# ---- the answers --------------------------------------------------------------------------------

def seeds(scores, **columns):
    return [scored([score] * 5, seed=seed, augment=1, **columns) for seed, score in enumerate(scores)]


def only(table):
    return {column.name: cell.value for column, cell in zip(table.columns, table.rows[0])}


def test_p_is_corrected_for_all_that_were_registered(monkeypatch):
    """Also for those that are not there yet; a comparison with a seed that diverged is no test, and 0 have no answers."""
    made = seeds([70.0, 70.1, 70.2]) + seeds([60.0, 60.1, 60.3], submodels=3)
    for one in made:
        one.file = "somewhere/no-augmentation.h5"
    alone = stats.ttest_ind([60.0, 60.1, 60.3], [70.0, 70.1, 70.2], equal_var=False).pvalue
    table = registered.answers(Cases(made))
    assert only(table)["p"] == pytest.approx(4 * alone)
    assert any(note.startswith("1 of the 4 comparisons that were registered") for note in table.notes)
    monkeypatch.setattr(registered, "planned", lambda file: 0)
    assert not registered.answers(Cases(made)).rows
    assert compare.holm([0.01, math.nan, 0.03], 5) == [0.04, pytest.approx(math.nan, nan_ok=True), pytest.approx(0.09)]


def test_a_group_is_known_by_its_name_in_any_file():
    """A copy under another name, and a file that has several groups: each is corrected by itself, for what was planned."""
    def of(group, **columns):
        made = seeds([70.0, 70.1, 70.2], **columns) + seeds([60.0, 60.1, 60.3], submodels=3, **columns)
        for one in made:
            one.file, one.row["experiment"] = "all.h5", group
        return made
    alone = stats.ttest_ind([60.0, 60.1, 60.3], [70.0, 70.1, 70.2], equal_var=False).pvalue
    table = registered.answers(Cases(of("no-augmentation") + of("plateau", schedule="cosine")))
    assert sorted(cell.value / alone for cell in table.column("p")) == pytest.approx([4, 5])
    assert "p by Holm's correction for the comparisons of each group." in table.notes[0]
    assert {note.split(" that")[0] for note in table.notes[1:]} == {f"1 of the {n} comparisons" for n in (4, 5)}
    full, *_, bcd = of("plateau")
    assert all(map(math.isnan, beyond.unregistered_ends(measures.Pair(bcd, full))))


def test_what_has_no_full_update_is_named():
    made = seeds([70.0, 70.1, 70.2]) + seeds([60.0, 60.1, 60.3], submodels=3) + seeds([61.0, 62.0], submodels=3, schedule="cosine")
    notes = registered.answers(Cases(made)).notes
    assert sum("Without a full update to compare with: resnet8 synthetic sgd cosine BCD-1/3." == note for note in notes) == 1


@pytest.mark.parametrize("bcd, full, expected", [
    ([70.0, 70.1, 70.2], [70.1, 70.2, 70.0], "yes"),
    ([69.70, 69.71, 69.72], [70.0, 70.01, 70.02], "worse by less than the margin"),
    ([60.0, 60.1, 60.2], [70.0, 70.1, 70.2], "no"),
    ([60.0, 70.0, 80.0], [70.0, 70.1, 70.2], "undecided"),
])
def test_answers(bcd, full, expected):
    table = registered.answers(Cases(seeds(full) + seeds(bcd, submodels=3)))
    row = only(table)
    test = stats.ttest_ind(bcd, full, equal_var=False)
    assert row["difference"] == pytest.approx(np.mean(bcd) - np.mean(full)) and row["p"] == pytest.approx(test.pvalue)
    assert (row["low"] + row["high"]) / 2 == pytest.approx(row["difference"])
    assert row["margin"] == 0.5 and row["seeds"] == 3 and row["answer"] == expected


@pytest.mark.parametrize("low, high, p, expected", [
    (-1.9, -0.6, 0.049, "no"), (-1.9, -0.6, 0.05, "undecided"), (-0.4, -0.1, 0.049, "worse by less than the margin"),
    (-0.4, -0.1, 0.05, "yes"), (-0.5, 0.1, 0.9, "undecided"), (-0.4, 0.0, 0.049, "yes"), (-1.9, -0.6, math.nan, "")])
def test_an_answer_takes_the_corrected_p(low, high, p, expected):
    """The interval is that of one comparison alone, so that it does not say no by itself."""
    difference = compare.Difference((low + high) / 2, low, high, 0.01, 3)
    assert registered.answer(difference, 0.5, p) == expected


def test_correction():
    """Two rows of one table: the smaller p counts twice."""
    full, near, far = [70.0, 70.1, 70.2], [69.9, 70.0, 70.1], [60.0, 60.1, 60.2]
    trainings = seeds(full) + seeds(near, submodels=3) + seeds(far, submodels=2)
    expected = {"1/3": stats.ttest_ind(near, full, equal_var=False).pvalue,
                "1/2": 2 * stats.ttest_ind(far, full, equal_var=False).pvalue}
    for label, cell in column_by_label(registered.answers(Cases(trainings)), "p"):
        assert cell.value == pytest.approx(expected[label[-3:]])
    # What another file has is another group.
    for one in trainings[-3:]:
        one.file = "added.h5"
    for label, cell in column_by_label(registered.answers(Cases(trainings)), "p"):
        assert cell.value == pytest.approx(expected[label[-3:]] / (2 if label.endswith("1/2") else 1))


def column_by_label(table, name):
    return list(zip(table.labels, table.column(name)))


@pytest.mark.parametrize("submodels, words", [(3, ""), (1, "full update, diverged: seed 1")])
def test_there_is_no_answer_where_a_seed_diverged(submodels, words):
    """Of the method or of the full update; it is named.  The other comparison is corrected alone."""
    made = seeds([70.0, 70.1, 70.2]) + seeds([60.0, 60.1, 60.2], submodels=3) + seeds([61.0, 61.1, 61.2], submodels=2)
    next(one for one in made if one["submodels"] == submodels and one["seed"] == 1).row["status"] = "diverged"
    table = registered.answers(Cases(made))
    half, third = range(2)
    assert [table.rows[row][-1].value for row in (third, half)] == [words, "no" if submodels == 3 else words]
    assert table.labels[third].endswith(", diverged: seed 1") == (submodels == 3)
    assert table.column("difference")[third].is_empty and table.column("seeds")[third].value == 3
    if submodels == 3:
        assert table.column("score")[third].is_empty
        alone = stats.ttest_ind([61.0, 61.1, 61.2], [70.0, 70.1, 70.2], equal_var=False)
        assert table.column("p")[half].value == pytest.approx(alone.pvalue)


def test_a_full_update_may_lack_the_first_seed():
    table = registered.answers(Cases(seeds([70.0, 70.1, 70.2])[1:] + seeds([60.0, 60.1, 60.2], submodels=3)))
    assert only(table)["answer"] == "no" and only(table)["seeds"] == 2


def test_without_augmentation():
    """Two readings of each: at the end, and at the best mean of five."""
    def falling(best, **columns):
        return scored([best] * 5 + [50] * 5, **columns)
    trainings = [falling(70 + seed, seed=seed, submodels=m) for seed in range(3) for m in (1, 3)]
    table = registered.answers(Cases(trainings))
    assert [cell.value for cell in table.column("score")] == pytest.approx([50, 71])
    assert table.labels[1].endswith(", at its best")


def test_answers_of_perplexity():
    """Better is lower; the margin is one per cent of the full update's."""
    full = [of_loss(math.log(20 + seed / 10), seed=seed) for seed in range(3)]
    bcd = [of_loss(math.log(22 + seed / 10), seed=seed, submodels=3) for seed in range(3)]
    table = registered.answers(Cases(full + bcd))
    row = only(table)
    assert len(table.rows) == 1, "the best mean is a reading of images alone"
    assert row["difference"] == pytest.approx(-2) and row["margin"] == pytest.approx(0.201) and row["answer"] == "no"


def test_fine_tuning():
    """All methods are compared with the full update of AdamW, those with another optimizer too."""
    def of(loss, **columns):
        return [of_loss(loss + seed / 1000, seed=seed, init="model", **columns) for seed in range(3)]
    table = registered.answers(Cases(of(3.5, optimizer="adamw") + of(3.6, optimizer="adamw", submodels=3)
                                     + of(3.505, optimizer="lion")))
    assert len(table.rows) == 2 and [cell.value for cell in table.column("answer")] == ["no", "worse by less than the margin"]
    assert {cell.value for cell in table.column("margin")} == {0.01}, "nats, not a part of the loss"


def test_a_pilot_takes_no_answer_away():
    """A full update of BCD's rate, but of one seed, in the same report."""
    full, bcd = seeds([70.0, 70.1, 70.2], lr=0.2), seeds([60.0, 60.1, 60.2], submodels=3)
    table = registered.answers(Cases(seeds([50.0]) + full + bcd))
    assert only(table)["answer"] == "no" and only(table)["full"] == pytest.approx(70.1)


def test_another_group_takes_no_answer_away():
    """A full update of BCD's rate and of the same length, in another file of the same report."""
    full, bcd, other = seeds([70.0, 70.1, 70.2], lr=0.2), seeds([60.0, 60.1, 60.2], submodels=3), seeds([50.0, 50.1, 50.2])
    for one in full + bcd:
        one.file = "gpt-length.h5"
    for one in other:
        one.file = "width.h5"
    table = registered.answers(Cases(other + full + bcd))
    assert only(table)["answer"] == "no" and only(table)["full"] == pytest.approx(70.1)


def test_a_pilot_of_fine_tuning_takes_no_answer_away():
    def of(loss, count=3, **columns):
        return [of_loss(loss + seed / 1000, seed=seed, init="model", **columns) for seed in range(count)]
    table = registered.answers(Cases(of(3.4, 1, optimizer="adamw") + of(3.5, optimizer="adamw", lr=0.2)
                                     + of(3.6, optimizer="adamw", submodels=3)))
    assert only(table)["answer"] == "no" and only(table)["full"] == pytest.approx(3.501)


def test_single_seeds():
    assert not registered.answers(Cases(seeds([70]) + seeds([60], submodels=3))).rows


# ---- plateaus -----------------------------------------------------------------------------------

def test_plateaus():
    """By hand: means of five evaluations from the fifth on; the last fifth of ten evaluations is two."""
    full = [50, 60, 70, 75, 76, 76, 76, 76, 76, 76]  # means: 66.2, 71.4, 74.6, 75.8, 76, 76
    bcd = [40, 40, 40, 40, 40, 50, 60, 70, 74, 76]
    made = [scored(full, seed=seed) for seed in (1, 2)] + [scored(bcd, seed=seed, submodels=3) for seed in (1, 2)]
    table = registered.plateaus(Cases(made))
    one, thirds = table.labels
    assert table.value(one, "updates") == 80 and table.value(thirds, "updates") == 100
    assert table.cell(one, "multiplier").is_empty and table.value(thirds, "multiplier") == pytest.approx(1.25)
    assert table.value(one, "gain") == 0 and table.value(thirds, "gain") == pytest.approx((74 + 76 - 60 - 70) / 2)
    assert table.value(one, "stays") == "stays" and table.value(thirds, "stays") == "still climbing"


def test_its_best_is_not_its_end():
    """By hand: the means are 66.2, 71.4, 74.6, 75.8, 72.8 and 69.6, of which the fourth is that of eight evaluations."""
    table = registered.plateaus(Cases([scored([50, 60, 70, 75, 76, 76, 76, 76, 60, 60])]))
    assert table.column("updates")[0].value == 80


@pytest.mark.parametrize("last, words", [(80.29, "stays"), (80.31, "still climbing"), (70, "stays")])
def test_a_plateau_that_stays(last, words):
    """It gains less than 0.3 points in the last fifth of the evaluations; a fall is no climb."""
    assert registered.plateaus(Cases([scored([80] * 8 + [last] * 2)])).column("stays")[0].value == words


def test_a_training_that_diverged_has_no_plateau():
    """Nor has its method, whose other seeds have one."""
    for made in ([scored([50] * 9 + [math.nan])], [scored([50] * 4, status="diverged"), scored([50] * 10, seed=2)]):
        table = registered.plateaus(Cases(made))
        assert [table.rows[0][place].is_empty for place in (1, 2, 3)] == [True] * 3 and table.rows[0][4].value == ""


def test_plateaus_are_of_constant_rates():
    for made in [scored([50] * 10, schedule="cosine"), of_loss(2.0)], [scored([50] * 4)]:
        assert not registered.plateaus(Cases(made)).rows


# ---- LoRA, by another program -------------------------------------------------------------------

def fine_tuned(loss, init="model", **columns):
    made = of_loss(loss, init=init, optimizer="adamw", schedule="cosine", steps=10, **columns)
    made.settings |= {"steps": 10, "context": 8}
    made.curve = curve([3.0] * 10)
    return made


def lora(full, loss):
    measured = [(1.0 + step, 3.0) for step in range(10)], [(0, 2.5, 0.1, 0.0), (10, loss, 0.2, 10.0)], 1000, 10
    made = smollm.as_training(full, 2e-4, measured, PROVENANCE | {"started": LATER, "cpu": "another processor"})
    made.row["resident"] = 5 * 2.0**20
    return made


def test_lora_is_compared_with_the_full_update(tmp_path):
    """It is no full update, although it has one submodel, and goes through a file."""
    full = [fine_tuned(loss, seed=seed) for seed, loss in enumerate((2.00, 2.01, 2.02), 1)]
    study.write(str(tmp_path / "lora.h5"), [lora(one, 1.9) for one in full])
    cases = Cases(full + study.read([str(tmp_path / "lora.h5")]))
    table = registered.answers(cases)
    label, = table.labels
    assert label.endswith("LoRA of rank 16") and table.value(label, "answer") == "yes"
    assert table.value(label, "difference") == pytest.approx(0.11)
    costs = beyond.FINETUNE.make(cases)
    assert costs.value(label, "resident") == 5 and costs.value(label, "updates") == 10
    assert costs.value(label, "closed_form") == pytest.approx(4 * (1000 + 4 * 10) / 2**20)
    assert costs.value(label, "lowest") == pytest.approx(1.9)


def test_fine_tuning_is_compared_on_the_same_data():
    """Two texts in one file, another checkpoint of the same network, and other data that give the scores, or fewer of
    them, have full updates of their own."""
    texts = [[fine_tuned(loss + behind, seed=seed, submodels=submodels, switch_every="5", **text)
              for seed in (1, 2) for submodels, behind in ((1, 0), (3, 0.2 + seed / 1000))]
             for loss, text in ((2.0, {"checksum": "1"}), (4.0, {"checksum": "2"}), (3.0, {"checksum": "1", "init": "other"}),
                                (5.0, {"checksum": "1", "valid": "choose.tokens"}), (6.0, {"checksum": "1", "eval_samples": 8}))]
    table = registered.answers(Cases(sum(texts, [])))
    assert len(table.rows) == 5
    assert [cell.value for cell in table.column("difference")] == pytest.approx([-0.2015] * 5)
    assert sorted(cell.value for cell in table.column("full")) == [2, 3, 4, 5, 6]


def test_lora_has_its_own_processor():
    made = lora(fine_tuned(2.0), 1.9)
    assert made["cpu"] == made.provenance["cpu"] == "another processor"


def test_two_that_end_together_are_both_added(tmp_path):
    out = str(tmp_path / "lora.h5")
    made = [like(lora(fine_tuned(2.0), 1.9), row=f"lora {number}") for number in range(6)]
    processes = [multiprocessing.get_context("fork").Process(target=smollm.add, args=(out, one)) for one in made]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert {one["row"] for one in study.read([out])} == {one["row"] for one in made}


def test_a_missing_tokenizer_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setenv("BCD_DATA", str(tmp_path))
    (tmp_path / "tinyshakespeare.txt").write_text("words " * 100)
    with pytest.raises(Refused, match="smollm2"):
        smollm.prepare()


def test_rates_of_lora_follow_the_schedule():
    """That of bcd train: two updates of warm-up, then a cosine to a tenth."""
    with program.trained(model="gpt:layers=1,width=8,heads=1,context=8", data="text", limit=32, batch=8, steps=10, lr=0.5,
                         schedule="cosine", warmup=2, final_lr=0.1, context=8) as file:
        rates = lora(study.read_run(file.filename), 1.9).curve["lr"] / 2e-4
    assert rates[:3] == pytest.approx([0.5, 1, 1]) and rates[6] == pytest.approx(0.55) and rates[-1] > 0.1
