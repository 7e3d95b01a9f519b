"""bcd report: what is printed, and the page with its figures."""
import html.parser
import os
import re
import shlex
import subprocess
import warnings

import pytest

import page
import printing
import program
import report
import study
import tables
from conftest import RESULTS, called
from samples import LATER, evaluations, like, pairs, unfinished
from tables import CLOSED_FORM, MEASURED, PUBLISHED, Column, Table, Tables
from test_report import seeds


# ---- the command --------------------------------------------------------------------------------

def run(folder, *arguments):
    return subprocess.run([program.find(), "report", *arguments], cwd=folder, capture_output=True, text=True, check=False)


def done(folder, *arguments):
    end = called(report.main, folder, *arguments)
    assert end.returncode == 0, end.stderr
    return end.stdout


def refused(folder, *arguments, status=1):
    end = called(report.main, folder, *arguments)
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
    (["study.h5", "--out", ""], "argument --out: the name is empty", 2),
    (["study.h5", "--study", ""], "argument --study: the name is empty", 2),
    (["study.h5", ""], "the name is empty", 2),
    ([], "FILE", 2),
    (["tables.h5", "--out", "/nowhere/at/all.html"], "/nowhere/at/all.html", 1)])
def test_refused(folder, arguments, words, status):
    assert words in refused(folder, *arguments, status=status)


@pytest.mark.parametrize("flag, name", [
    ("--out", "b/checkpoint.h5"), ("--out", "notes.txt"), ("--out", "tables.h5"), ("--study", "b/checkpoint.h5"),
    ("--study", "b/run.h5"), ("--study", "notes.txt"), ("--study", "tables.h5")])
def test_what_is_something_else_is_not_replaced(folder, flag, name):
    (folder / "notes.txt").write_text("mine")
    before = (folder / name).read_bytes()
    expected = f"{flag} {name}: it is there, and has something else; give another name"
    assert expected in refused(folder, "study.h5", flag, name, status=2)
    assert (folder / name).read_bytes() == before


def test_what_is_ours_is_replaced(folder):
    (folder / "empty").write_bytes(b"")
    for _ in range(2):
        done(folder, "study.h5", "--study", "ours.h5")
        done(folder, "tables.h5", "--out", "ours.html")
        done(folder, "tables.h5", "--out", "empty")


def test_the_page_next_to_a_file_replaces_nothing_else(folder, tmp_path):
    (tmp_path / "t.h5").write_bytes((folder / "tables.h5").read_bytes())
    (tmp_path / "report.html").write_text("mine")
    assert "--out report.html: it is there, and has something else" in refused(tmp_path, "t.h5", status=2)
    assert (tmp_path / "report.html").read_text() == "mine"


def test_a_run_of_no_updates(folder, tmp_path):
    """It has an evaluation, and nothing to draw along an axis of no length."""
    subprocess.run([program.find(), "train", *("--model resnet:depth=8,width=2 --data synthetic --limit 32 --batch 4 "
                    "--threads 1 --steps 0 --quiet --out").split(), str(tmp_path / "zero")], check=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        done(tmp_path, "zero", "--out", "zero.html")


def no_memory(*_figure, **_how):
    raise MemoryError


def test_no_memory_is_said(folder, monkeypatch):
    """Of a figure that could not be made no file is left."""
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", no_memory)
    assert refused(folder, "tables.h5", "--out", "m.html", "--figures", "m") == "bcd: there is not enough memory\n"
    assert not (folder / "m.html").exists() and os.listdir(folder / "m") == []


def test_little_memory_is_said(folder):
    """Too little to load what the report is made with: one line says so, whatever fails first."""
    line = f"ulimit -v 100000; exec {shlex.quote(program.find())} report tables.h5"
    end = subprocess.run(["sh", "-c", line], cwd=folder, capture_output=True, text=True, check=False)
    assert end.returncode == 1 and "Traceback" not in end.stderr and end.stderr.count("\nbcd: ") + end.stderr.startswith(
        "bcd: ") == 1, end.stderr


def test_unfinished_is_said(folder, tmp_path):
    unfinished(folder / "b" / "run.h5", tmp_path / "half" / "run.h5")
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
