"""bcd report: the tables of trainings by hand, what is printed, and the page."""
import copy
import html.parser
import math
import os
import re
import subprocess

import numpy as np
import pytest

import beyond
import curves
import figures_of_cases
import measures
import page
import printing
import program
import report
import schema
import study
import tables
from conftest import RESULTS
from samples import GPT, LATER, MIB, case_of, evaluations, like, pairs, training
from tables import CLOSED_FORM, MEASURED, NONE, PUBLISHED, RECOMPUTED, Column, Table, Tables

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


def test_table_2_of_a_training_that_diverged():
    trainings = pairs()
    trainings[0].row.update(status=study.DIVERGED, valid_loss=math.nan)
    trainings[0].evaluation = evaluations([10 * e for e in range(1, 11)], [2.0] * 10)
    found = tables_of(trainings)
    label = HERE + "full, diverged: seed 1"
    assert all(is_empty(found, "table2_images", label, name) for name in ("score", "train_loss", "valid_loss"))


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


def test_equal_budgets():
    """20 seconds are 200 updates of BCD and 133 of the full one, two thirds of the way from its second evaluation to
    its third. A smaller network fits the same memory."""
    fits = training("resnet:depth=8,width=8", rate=0.004, peak_total=9 * MIB)
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


@pytest.mark.parametrize("cosine", [False, True])
def test_cosine(cosine):
    """A training whose rate depends on its length says nothing about shorter ones."""
    trainings = [like(t, **({"schedule": "cosine"} if cosine else {})) for t in pairs()[:2]]
    for r, t in enumerate(trainings):
        count = 20 if r else 10
        t.evaluation = evaluations([10 * e for e in range(1, count + 1)], [math.exp(-0.1 * (2 - r) * e) for e in range(count)],
                                   [0.4 + 0.01 * e for e in range(count)])
    full = trainings[0]
    full.row["steps"], full.curve = 100, {name: values[:100] for name, values in full.curve.items()}
    found = tables_of(trainings)
    label = LABEL.replace("sgd", "sgd cosine") if cosine else LABEL
    assert is_empty(found, "answer", label, "equal_updates") == cosine, "after 100 updates"
    assert holds(found, "converged", label, "end", 57, MEASURED)
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


def test_a_single_pair_is_a_sentence():
    found = tables_of(pairs()[:2])["answer"]
    assert found.title.startswith(LABEL + ": 0.71 x memory, 0.67 x time per update, ") and found.title.endswith(" x updates")


def test_nothing():
    assert report.make([])[0] == []


# ---- the command --------------------------------------------------------------------------------

def run(folder, *arguments):
    return subprocess.run([program.find(), "report", *arguments], cwd=folder, capture_output=True, text=True, check=False)


def done(folder, *arguments):
    end = run(folder, *arguments)
    assert end.returncode == 0, end.stderr
    return end.stdout


def refused(folder, *arguments, status=1):
    end = run(folder, *arguments)
    assert end.returncode == status and end.stderr.count("\n") == 1 and end.stderr.startswith("bcd: "), end.stderr
    return end.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("report")
    study.write(str(made / "study.h5"), pairs())
    memory = Table("memory", "A <title> & more", "model", [Column("published", "published", "GiB", 3, PUBLISHED),
                                                           Column("closed", "closed form", "GiB", 3, CLOSED_FORM)])
    memory.row("one", 12, 12.345)
    memory.note("A note.")
    second = Table("second", "Sample: times & \"more\"", "UFP", [
        Column("small", "G-<small>", "ms", 1, MEASURED), Column("large", "G-large", "ms", 1, tables.SIMULATED)],
        figure="lines", axis="ms per iteration \"; exit ' # <b>")
    for m in (3, 4, 5):
        second.row(f"1/{m}", 1000 / m, 2500 / m)
    known = {"command": "bcd experiment sample", "commit": "abc", "started": "today", "cpu": "a processor"}
    Tables([memory, second], known).write(str(made / "tables.h5"))
    small = ("train --model resnet:depth=8,width=2 --data synthetic --limit 32 --batch 4 --threads 1 --steps 24 --quiet "
             "--eval-every 12 ")
    for more in ("--out mine/full", "--out b --submodels 3 --switch-every 4"):
        subprocess.run([program.find(), *(small + more).split()], cwd=made, check=True)
    return made


def test_own_runs(folder):
    """Runs are named by their directories. The answer comes first, and nothing of the paper's is shown."""
    text = done(folder, "mine/full", "b", "--out", "own.html")
    assert text.startswith("resnet-8x2 synthetic[:32] sgd BCD-1/3: ")
    assert re.search(r" x memory, .* x time per update, .* x updates\n", " ".join(text.split("\n\n")[0].split("\n")) + "\n")
    assert "Table 2" not in text and "B-F multipliers" not in text and text.endswith("page: own.html\n")
    assert done(folder, "mine/full", "b", "--table", "table2_images").startswith("Table 2")
    done(folder, "b/", "--out", "b.html")
    assert "<td>b</td>" in (folder / "b.html").read_text(), "a run is named by its directory"


def test_one_table(folder):
    assert done(folder, "tables.h5", "--table", "memory", "--markdown").startswith("### A <title> & more\n\n| model |")
    assert "they have memory second" in refused(folder, "tables.h5", "--table", "nine")
    assert not (folder / "report.html").exists(), "a page next to one table"


def test_study(folder):
    """The trainings of all files are written into one, which is read back the same."""
    assert done(folder, "mine/full", "b", "study.h5", "--study", "again.h5") == ""
    again = study.read([str(folder / "again.h5")])
    assert [t["row"] for t in again] == ["full", "b", "images-1", "images-3", "text-1", "text-3"]
    done(folder, "again.h5", "--study", "twice.h5")
    assert (folder / "again.h5").read_bytes() == (folder / "twice.h5").read_bytes()
    assert "no trainings" in refused(folder, "tables.h5", "--study", "none.h5")


@pytest.mark.parametrize("arguments, words, status", [
    (["mine"], "mine/run.h5: no such file", 1),
    (["mine/full", "--out", "mine/full/../full/run.h5"], "it is one of the inputs", 2),
    (["study.h5", "--study", "x.h5", "--markdown"], "ask for the rest apart", 2),
    (["study.h5", "--table", "answer", "--out", "x.html"], "make no page", 2),
    (["study.h5", "--colour"], "--colour", 2),
    ([], "FILE", 2),
    (["tables.h5", "--out", "/nowhere/at/all.html"], "/nowhere/at/all.html", 1)])
def test_refused(folder, arguments, words, status):
    assert words in refused(folder, *arguments, status=status)


def test_unfinished_is_said(folder, tmp_path):
    import h5py
    path = tmp_path / "half" / "run.h5"
    path.parent.mkdir()
    path.write_bytes((folder / "b" / "run.h5").read_bytes())
    with h5py.File(path, "r+") as file:
        file.attrs["status"] = "running"
    end = run(tmp_path, "half", "--out", "half.html")
    assert end.returncode == 0 and end.stderr == "bcd: not at its end: half (running)\n"
    assert "not at its end: half (running)</p>" in (tmp_path / "half.html").read_text()
    for arguments in (["half", "--study", "half.h5"], ["half.h5", "--out", "half.html"]):
        assert run(tmp_path, *arguments).stderr == "bcd: not at its end: half (running)\n", "of a file of many, too"


def test_a_name_that_is_not_utf_8(folder, tmp_path):
    path = os.fsencode(tmp_path) + b"/\xff"
    os.mkdir(path)
    (tmp_path / os.fsdecode(b"\xff") / "run.h5").write_bytes((folder / "b" / "run.h5").read_bytes())
    text = done(tmp_path, os.fsdecode(b"\xff"))
    assert text.endswith("page: \N{REPLACEMENT CHARACTER}/report.html\n")
    assert "<td>\N{REPLACEMENT CHARACTER}</td>" in (tmp_path / os.fsdecode(b"\xff") / "report.html").read_text()


# ---- the page -----------------------------------------------------------------------------------

class Checker(html.parser.HTMLParser):
    """Checks that elements nest, and that each id occurs once."""

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.elements = [], [], []
        self.feed(text)
        assert self.open == [] and len(self.ids) == len(set(self.ids))

    def handle_startendtag(self, tag, attrs):
        self.add(tag, attrs)

    def handle_starttag(self, tag, attrs):
        self.add(tag, attrs)
        if tag not in ("meta", "path", "use", "br", "rect"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def add(self, tag, attrs):
        self.elements.append(tag)
        self.ids += [value for name, value in attrs if name == "id"]


def test_page(folder):
    """Trainings and tables are on one page: answer and loss come first; it has marks, escapes and figures, and loads
    nothing."""
    done(folder, "study.h5", "tables.h5", "--out", "page.html")
    text = (folder / "page.html").read_text()
    assert Checker(text).elements.count("svg") == 2 * 4 + 1
    for expected in [
            "<h2>Does BCD match the full update?</h2>", "<small>/ full, an update</small>", "<h2>resnet8 synthetic sgd</h2>",
            "<section id=\"notes\">", "results of these trainings</summary>", "<h3>BCD-1/3, seed 1</h3>",
            "<th scope=\"row\">--momentum</th>", "peak_state 1.04858e+06 bytes; ", "&lt;script&gt;&amp;",
            "<td class=\"p\">12.000<sup title=\"published\">p</sup></td>",
            "<td class=\"c\">12.345<sup title=\"closed form\">c</sup></td>", "Made by <code>bcd experiment sample</code>",
            "<h2>Sample: times &amp; &#34;more&#34;</h2>", "G-&lt;small&gt;<small>ms</small>", "<p class=\"note\">A note.</p>",
            "ms per iteration \"; exit ' # &lt;b&gt;</text>", "p published"]:
        assert expected in text, expected
    assert "<script>" not in text and "<title> &" not in text
    assert "src=" not in text and text.count("url(") == text.count("url(#") and "<link" not in text and "@import" not in text
    assert text.index("id=\"answer\"") < text.index(">training loss, nats") < text.index("<section id=\"table2_")


def test_page_has_every_cell(tmp_path):
    """Cells of a committed file of tables, and of a wide one, are on the page as in the text, each with its mark, in
    blocks of columns."""
    wide = Table("wide", "Wide", "row", [Column(f"c{c}", f"column {c}", "of many", 0, MEASURED) for c in range(20)])
    wide.row("one", *range(20))
    Tables([wide], {"command": "x"}).write(str(tmp_path / "wide.h5"))
    files = [str(RESULTS / "cost.h5"), str(tmp_path / "wide.h5")]
    done(tmp_path, *files, "--out", "cells.html")
    text = (tmp_path / "cells.html").read_text(encoding="utf-8")
    printed = [html.unescape(re.sub("<.*?>", "", cell)) for cell in re.findall(r"<td.*?>(.*?)</td>", text)]
    blocks = [(table, places) for file in files for table in tables.read(file) for places in page.blocks(table)]
    assert printed == [tables.printed(table.columns[place], row[place]) + tables.MARKS[row[place].source]
                       for table, places in blocks for row in table.rows for place in places]
    assert len(page.blocks(blocks[-1][0])) > 1
    heads = re.findall(r"<th scope=\"col\"[^>]*>([^<]*)<small>", text)
    assert heads == [html.escape(table.columns[place].head) for table, places in blocks for place in places]


def test_no_table_runs_out_of_the_page():
    """Blocks of columns, with the labels, of which long ones take two lines, are no wider than the page; each column is
    in one."""
    for path in RESULTS.glob("*.h5"):
        for table in report.Report([str(path)], paper=True):
            widths = [printing.width_of(printing.column_lines(table, place)) for place in range(len(table.columns))]
            blocks = page.blocks(table)
            assert sum(blocks, []) == list(range(len(table.columns)))
            for block in blocks:
                used = min(30, printing.width_of([table.head, *table.labels])) + sum(2 + widths[place] for place in block)
                assert used <= page.WIDTH or len(block) == 1, (path.name, table.name)


def test_control_characters_are_not_on_the_page(tmp_path):
    """Neither in tables nor in figures."""
    table = Table("t", "T\x1b", "row", [Column("x", "head\x1b", "", 0, MEASURED)], figure="lines", axis="axis\x1b")
    table.row("one\x1b", 1)
    table.row("two", 2)
    table.note("A note\x1b.")
    Tables([table], {"command": "x\x1b"}).write(str(tmp_path / "t.h5"))
    done(tmp_path, "t.h5", "--out", "t.html")
    text = (tmp_path / "t.html").read_text(encoding="utf-8")
    assert "\x1b" not in text and text.count("\ufffd") >= 7


def test_longest_with_most_seeds_first(tmp_path):
    """The case of most seeds comes first, then the longer one; and the page begins with its scores at the end, that of
    the full update as it was trained, although a seed of BCD has none."""
    trainings = pairs()[2:] + seeds(spread=(-0.01, 0.0, 0.01), bcd=0.6)
    trainings.append(like(trainings[-1], seed=4, accuracy=0.64))
    for t in trainings[2:]:
        t.evaluation = evaluations(range(20, 220, 20), [1] * 10, [t["accuracy"]] * 10)
    study.write(str(tmp_path / "some.h5"), trainings)
    done(tmp_path, "some.h5", "--out", "some.html")
    text = (tmp_path / "some.html").read_text()
    first = text.index("<h2>resnet8 synthetic sgd</h2>")
    assert first < text.index("<h2>gpt-2x64 text sgd</h2>")
    sentence = re.search(r"<li>(.*?)</li>", text)[1]
    assert sentence.startswith("resnet8 synthetic sgd BCD-1/3, 4 epochs, 4 seeds: 61.00 ± 2.16, the full update 70.20; ")
    assert "difference -10.20 ± 0.90 (95 %: -1" in sentence
    assert sentence.endswith(": full ahead.")


def test_a_registered_group_begins_with_its_registered_answer(tmp_path):
    """Alone p is 0.016; the group has five comparisons, so it is undecided, also where the other four are not there."""
    trainings = [like(t, started=LATER) for t in seeds()]
    for t, accuracy in zip(trainings, (0.790, 0.779, 0.793, 0.781, 0.796, 0.786)):
        assert (t["submodels"] == 3) == (accuracy < 0.79)
        t.evaluation = evaluations(range(20, 220, 20), [1] * 10, [accuracy] * 10)
    study.write(str(tmp_path / "plateau.h5"), trainings)
    done(tmp_path, "plateau.h5", "--out", "some.html")
    sentence = re.search(r"<li>(.*?)</li>", (tmp_path / "some.html").read_text())[1]
    assert "difference -1.10" in sentence and sentence.endswith(": as good, by the test that was registered: undecided.")


def test_page_of_many(tmp_path):
    """Of many cases the first sixteen are drawn, and all are listed."""
    trainings = pairs()
    for i in range(18):
        more = like(trainings[0], batch=100 + i)
        more.curve = {name: values[:0] for name, values in more.curve.items()}  # only memory can be drawn
        more.evaluation = {name: values[:0] for name, values in more.evaluation.items()}
        more.row["seconds"] = 1.0
        trainings.append(more)
    study.write(str(tmp_path / "many.h5"), trainings)
    done(tmp_path, "many.h5", "--out", "many.html")
    text = (tmp_path / "many.html").read_text()
    assert text.count("<h2>resnet8 synthetic") == 19
    assert text.count("<svg") == 8 + 14 and text.count("the first 16 networks") == 4


def test_where_it_goes(folder):
    """A target that is no regular file is written to, not replaced; a link stays a link."""
    (folder / "link.html").symlink_to("linked.html")
    done(folder, "tables.h5", "--out", "link.html", "--figures", "drawn")
    assert (folder / "link.html").is_symlink() and (folder / "linked.html").exists()
    done(folder, "tables.h5", "--out", "/dev/null")
    assert not os.path.isfile("/dev/null")
    assert (folder / "drawn" / "second-Sample--times----more-.svg").read_text().startswith("<?xml")
    assert (folder / "drawn" / "second-Sample--times----more-.pdf").read_bytes().startswith(b"%PDF")


def test_figures_of_equal_tables(folder):
    """Each has a file of its own."""
    done(folder, "tables.h5", "tables.h5", "tables.h5", "--out", "/dev/null", "--figures", "equal")
    name = "second-Sample--times----more-"
    assert sorted(os.listdir(folder / "equal")) == sorted(f"{name}{number}.{kind}" for number in ("", "-2", "-3")
                                                          for kind in ("svg", "pdf"))


def test_foreign_answer(tmp_path):
    """A file may call any table "answer"."""
    foreign = Table("answer", "Of something else", "row", [Column("x", "x", "", 0)])
    foreign.row("one", 42)
    Tables([foreign], {"command": "x"}).write(str(tmp_path / "foreign.h5"))
    study.write(str(tmp_path / "ours.h5"), pairs())
    text = done(tmp_path, "foreign.h5", "ours.h5", "--out", "foreign.html")
    assert "Of something else" in text and "42" in text
    assert "Of something else" in (tmp_path / "foreign.html").read_text()


def test_of_several_files_the_longest_trainings_come_first(tmp_path):
    """Of those with most seeds, also where the file of a pilot is named first. A file alone keeps its order."""
    pilot = [like(t, model="gpt-pilot") for t in pairs()[:2]]
    study.write(str(tmp_path / "pilot.h5"), pilot)
    seeds = [like(t, seed=seed) for seed in (1, 2) for t in pairs()[:2]]
    study.write(str(tmp_path / "seeds.h5"), seeds)
    study.write(str(tmp_path / "both.h5"), pilot + seeds)

    def first_of(*files):
        text = done(tmp_path, *files, "--markdown", "--table", "same_loss")
        table = [line for line in text.splitlines() if line.startswith("| ")]
        return table[1].split()[1]  # below the head

    assert first_of("pilot.h5", "seeds.h5") == "resnet8"
    assert first_of("both.h5") == "gpt-pilot"


# ---- figures ------------------------------------------------------------------------------------

def drawn(folder, name, *arguments):
    done(folder, *arguments, "--out", "figures.html", "--figures", "figures")
    svg = (folder / "figures" / f"{name}.svg").read_text()
    assert "nan" not in svg
    return svg


def test_figure_of_losses(tmp_path):
    study.write(str(tmp_path / "loss.h5"), pairs()[:2])
    svg = drawn(tmp_path, "0-resnet8-synthetic-sgd-loss", "loss.h5")
    assert ">updates<" in svg and svg.count(">BCD-1/3<") == 1


@pytest.mark.parametrize("place", [0, 1])
def test_figure_of_memory_where_some_is_not_known(place):
    """As of LoRA by another program: the others have their bars, and the legend has the roles of these alone."""
    full = training(started=LATER)
    lora = like(full, method="LoRA", lr=0.2, **{f"peak_{role}": math.nan for role in schema.ROLES})
    case = page.ShownCase(case_of([lora, full] if place else [full, lora]))
    figure = figures_of_cases.memory(case)
    shown, = figure.legends
    assert [text.get_text() for text in shown.get_texts()] == ["parameters", "gradients", "optimizer state", "activations",
                                                               "closed form"]
    assert [text.get_text() for text in figure.axes[0].texts] == [" 14"]


@pytest.mark.parametrize("losses", [[800.0, 900.0], [math.nan, math.nan]])
def test_figure_of_a_training_that_diverged(tmp_path, losses):
    """A perplexity that is not finite is left out, and the other trainings are drawn."""
    whole = training(GPT, False, 1)
    whole.evaluation = evaluations([1, 2], [3.0, 2.0])
    for trainings in ([whole], []):
        diverged = like(whole, lr=9.0)
        diverged.evaluation = evaluations([1, 2], losses)
        study.write(str(tmp_path / "loss.h5"), [*trainings, diverged])
        drawn(tmp_path, "0-gpt-2x64-text-sgd-score", "loss.h5")


def test_figure_of_scores_leaves_out_a_seed_that_diverged(tmp_path):
    """It ends early, and would end the line of the others."""
    seeds = [training(seed=seed) for seed in (1, 2)]
    early = like(seeds[0], seed=3, status="diverged")
    early.evaluation = evaluations([50], [1.0], [0.1])
    study.write(str(tmp_path / "seeds.h5"), [*seeds, early])
    with_it = drawn(tmp_path, "0-resnet8-synthetic-sgd-score", "seeds.h5")
    study.write(str(tmp_path / "seeds.h5"), seeds)
    assert line_of(with_it) == line_of(drawn(tmp_path, "0-resnet8-synthetic-sgd-score", "seeds.h5"))


def line_of(svg):
    """The longest path of a drawing."""
    return max(re.findall(r' d="([^"]*)"', svg), key=len)


def test_figure_of_seeds_and_other_clocks(tmp_path):
    """Seeds are drawn as bands, and the axis says that not all had the same machine."""
    trainings = pairs()[:2]
    trainings[1] = like(trainings[1], threads=3)
    for t in list(trainings):
        other = copy.deepcopy(like(t, seed=2))
        other.curve["loss"] = 3 * other.curve["loss"]
        trainings.append(other)
    study.write(str(tmp_path / "seeds.h5"), trainings)
    svg = drawn(tmp_path, "0-resnet8-synthetic-sgd-time", "seeds.h5")
    assert ">seconds, not all on as many threads" in svg and svg.count("PolyCollection") == 2


def test_figure_of_series(tmp_path):
    """A simulated column has the colour of the column that it simulates, dashed or pale."""
    both = [Table(shape, "T", "row", [Column("x", "x", "ms", 0, PUBLISHED),
                                      Column("x_simulated", "x sim.", "ms", 0, tables.SIMULATED),
                                      Column("y", "y", "ms", 0, PUBLISHED)], figure=shape) for shape in ("lines", "bars")]
    for table in both:
        for r in range(2):
            table.row(f"{r} | <{r}>", *(float(r + c) for c in range(3)))
    Tables(both, {"command": "x"}).write(str(tmp_path / "series.h5"))
    svg = drawn(tmp_path, "lines-T", "series.h5")
    assert ">x sim.<" in svg and ">1 | &lt;1&gt;<" in svg and svg.count("stroke-dasharray: 5.55") == 1
    svg = (tmp_path / "figures" / "bars-T.svg").read_text()
    assert svg.count("fill: #0072b2; opacity: 0.45") == 2 + 1


def test_figure_of_a_timeline(tmp_path):
    """A pipeline step goes from the simulator into a file, and is drawn. Only its title and notes are printed as
    text."""
    subprocess.run([program.find(), *"plan --model G-1.6B --gpu a100 --per-node 2 --pipeline 2 --micro-batches 3 --batch 3 "
                    "--out plan.h5".split()], cwd=tmp_path, check=True, capture_output=True)
    table, = (table for table in tables.read(tmp_path / "plan.h5") if table.figure == "timeline")
    for form in ([], ["--markdown"]):
        text = done(tmp_path, "plan.h5", "--table", table.name, *form)
        assert table.title.split(":")[0] in text and "The GPUs wait " in text and "rank" not in text
    assert "Memory of the fullest GPU" in done(tmp_path, "plan.h5", "--markdown")
    svg = drawn(tmp_path, re.sub(r"[^A-Za-z0-9]", "-", f"{table.name} {table.title}"[:80]), "plan.h5")
    assert ">weight gradient<" in svg and ">rank  1<" in svg
