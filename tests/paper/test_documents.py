"""The committed documents are what their sources and the files of results give."""
import ast
import inspect
import re

import jinja2
import jinja2.meta
import pytest

import document
import document_multipliers
import document_record
import pictures
import published
import render
from conftest import RESULTS, ROOT
from errors import Refused
from test_results import INCOMPLETE


@pytest.mark.parametrize("source, document", render.DOCUMENTS.items())
def test_rendered(source, document):
    text = render.render(source)
    assert (ROOT / document).read_text(encoding="utf-8") == text, f"make documents writes {document} anew"


@pytest.mark.parametrize("document", ["paper_repro.md", "experiments/results/appendix.md"])
def test_names_files_that_exist(document):
    text = (ROOT / document).read_text(encoding="utf-8")
    names = set(re.findall(r"[\w-]+\.(?:h5|svg)", text)) - {"NAME.h5"}
    assert [name for name in names if not (RESULTS / name).exists()] == []


@pytest.mark.parametrize("name", INCOMPLETE)
def test_what_is_not_complete_is_in_no_document(name):
    """Neither a source of the documents nor what these call names its file."""
    sources = [ROOT / source for source in render.DOCUMENTS] + sorted((ROOT / "experiments" / "paper").glob("*.py"))
    assert [path.name for path in sources if name in path.read_text(encoding="utf-8")] == []


@pytest.mark.parametrize("document", ["paper_repro.md", "experiments/results/appendix.md"])
def test_published_perplexities_never_stand_alone(document):
    """Next to ours, of another vocabulary, a section says that they cannot be compared."""
    printed = {f"{row.score:.2f} r" if row.is_ten_perplexity else f"{row.score} p" for table in (2, 9, 11)
               for row in published.trainings(table) if not row.is_images}
    sections = re.split(r"\n(?=#)", (ROOT / document).read_text(encoding="utf-8"))
    found = [section for section in sections if any(f" {cell} |" in section for cell in printed)]
    assert len(found) >= 2
    for section in found:
        assert "2,048" in section, section.split("\n")[0]


def test_every_function_is_called():
    """By a source, or by another function; and every list is named."""
    called = set()
    for source in render.DOCUMENTS:
        text = (ROOT / source).read_text(encoding="utf-8")
        called |= jinja2.meta.find_undeclared_variables(jinja2.Environment().parse(text))
    for module in (document, document_record, document_multipliers):
        called |= {node.id for node in ast.walk(ast.parse(inspect.getsource(module)))
                   if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    assert set(document.functions()) - called == {document.functions.__name__}


@pytest.mark.parametrize("source", render.DOCUMENTS)
def test_every_name_is_used(source):
    """What a source sets, its macros and what they take; "_" is for what is not used."""
    tree = jinja2.Environment().parse((ROOT / source).read_text(encoding="utf-8"))
    names = list(tree.find_all(jinja2.nodes.Name))
    made = {name.name for name in names if name.ctx != "load"}
    made |= {macro.name for macro in tree.find_all(jinja2.nodes.Macro)}
    assert sorted(made - {name.name for name in names if name.ctx == "load"} - {"_"}) == []


def test_a_source_sees_what_is_meant_for_it(monkeypatch):
    assert not {"np", "math", "record", "OURS", "Refused"} & set(document.functions())
    monkeypatch.setattr(document_record, "hours", document_record.seeds, raising=False)
    with pytest.raises(Refused, match="two things are called hours"):
        document.functions()


def test_all_pictures_are_drawn():
    assert sorted(path.name for path in RESULTS.glob("*.svg")) == sorted(pictures.NAMES)


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    folder = tmp_path_factory.mktemp("drawn")
    pictures.draw(folder)
    return folder


@pytest.mark.parametrize("name", pictures.NAMES)
def test_pictures_are_as_drawn(drawn, name):
    new = (drawn / name).read_text(encoding="utf-8")
    old = (RESULTS / name).read_text(encoding="utf-8")
    if old.splitlines()[1] != new.splitlines()[1]:
        pytest.skip(f"{old.splitlines()[1]} drew it, and here is {new.splitlines()[1]}")
    if old != new:  # pytest would compare thousands of lines
        pytest.fail(f"{name}: has other curves; make documents draws it anew")


def test_only_the_block_of_readme_is_rendered(tmp_path, monkeypatch):
    source = "experiments/readme_numbers.md.in"
    (tmp_path / "experiments").mkdir()
    (tmp_path / source).write_text("{{ seeds('gpt') }} seeds\n")
    monkeypatch.setattr(render, "ROOT", tmp_path)
    begin, end = "<!-- numbers: make documents -->\n", "<!-- end of numbers -->\n"
    (tmp_path / "README.md").write_text(f"Reworded, 99 %.\n{begin}old\n{end}and more\n")
    assert render.render(source) == f"Reworded, 99 %.\n{begin}2 seeds\n{end}and more\n"
    (tmp_path / "README.md").write_text("no block\n")
    with pytest.raises(Refused, match="no block"):
        render.render(source)


def test_paragraphs_are_filled():
    words = "word " * 30 + "3.08 ± 0.29 %"
    for width in range(60, 110):
        lines = render.filled(words, width).split("\n")
        assert max(map(len, lines)) <= width and "3.08 ± 0.29 %" in lines[-1]
    assert render.filled("- one two three four", 10) == "- one two\n  three\n  four"


def test_no_line_begins_a_list_by_chance():
    text = "a number " * 11 + "- 5"
    for width in range(20, 110):
        assert not any(re.match(r"\s*- ", line) for line in render.filled(text, width).split("\n"))


def test_tables_are_aligned_and_go_on_below():
    table = ["| a | b | c |", "|---|---:|---|", "| one | 1 | x |", "| three | 10 | |"]
    assert render.aligned(table) == ("| a     |   b | c   |\n|-------|----:|-----|\n| one   |   1 | x   |\n"
                                     "| three |  10 |     |")
    first, second = render.aligned(table, width=16).split("\n\n")
    assert first.split("\n")[3] == "| three |  10 |" and second.split("\n")[3] == "| three |     |"
    with pytest.raises(Refused, match="rows of 3 cells"):
        render.aligned([*table, "| four | 1 |"])


def test_a_line_that_is_too_long_is_refused():
    with pytest.raises(Refused, match="a line of 130 characters"):
        render.tidied("x" * 130)


def test_how_many_comparisons_end_ahead():
    """The sentence counts the table's rows from scratch of three seeds, by their intervals and answers."""
    text = (ROOT / "paper_repro.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (?!SmolLM2)[^|]+\| +\d : \d +\| +3 \| +\S+ \(([+-][.\d]+) to \S+\) \|[^|]+\| (\w+) +\|$", text, re.M)
    ahead = sum(answer == "yes" and float(low) > 0 for low, answer in rows)
    behind = sum(answer in ("no", "behind") for _, answer in rows)
    words = " ".join(text.split())
    assert f"of the {len(rows)} comparisons with three seeds in the table below, it ended ahead in {ahead} by more than chance and behind in {behind}; " \
           f"{len(rows) - ahead - behind} are undecided" in words


def test_pairs_of_images_and_of_text():
    images, text, every = (document_record.pairs_behind(which) for which in (True, False, None))
    assert images[:2] == (36, 38) and [a + b for a, b in zip(images, text)] == list(every)
