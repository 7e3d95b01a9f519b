"""The lesson's page (ref/lesson/README.md) says what the program prints: in chapters, figures and exercises."""
import importlib.util
import os
import re
import subprocess

import pytest
from conftest import ROOT

LESSON = ROOT / "ref" / "lesson"
SOURCE = LESSON / "bcd_lesson.c"
PAGE = (LESSON / "README.md").read_text()
SOLUTIONS = sorted(path.stem for path in (LESSON / "solutions").glob("*.patch"))


def blocks(language):
    """Returns the fenced blocks of the page whose first line ends with `language`."""
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.M | re.S)


def output_of(source, folder):
    """Compiles as the page says, and returns what the program prints."""
    program = folder / "lesson"
    subprocess.run([os.environ.get("CC", "cc"), "-O2", source, "-lm", "-o", program], check=True)
    return subprocess.run([program], check=True, capture_output=True, text=True).stdout


def solution(name, folder, changes=(), first_chapter=False):
    """Returns a copy of the program with a solution's patch, or none for "", in which texts are replaced.

    The central differences of chapter 1 are most of the program's time, so only who reads them has them.
    """
    source = folder / "bcd_lesson.c"
    source.write_bytes(SOURCE.read_bytes())
    if name:
        subprocess.run(["patch", "-s", "-F", "0", source, LESSON / "solutions" / f"{name}.patch"], check=True)
    for old, new in [*changes, *([] if first_chapter else [("h > 5e-4", "h > 1")])]:
        assert source.read_text().count(old) == 1
        source.write_text(source.read_text().replace(old, new))
    return source


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    return output_of(SOURCE, tmp_path_factory.mktemp("lesson"))


def test_at_most_370_lines():
    assert len(SOURCE.read_text().splitlines()) <= 370


def test_chapters_are_what_the_program_prints(printed):
    assert "\n".join(blocks("text")) == printed


def test_figures_are_those_of_the_output(printed):
    spec = importlib.util.spec_from_file_location("figures", LESSON / "figures.py")
    figures = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(figures)
    drawn = figures.figures(printed)
    assert len(drawn) == 7 and set(drawn) == {path.stem for path in LESSON.glob("*.svg")}
    for name, svg in drawn.items():
        assert (LESSON / f"{name}.svg").read_text() == svg, f"{name}.svg: draw it again"
        assert f"({name}.svg)" in PAGE


def test_every_exercise_has_a_solution():
    assert len(SOLUTIONS) == 8
    assert re.findall(r"^```text exercise (\S+)$", PAGE, re.M) == SOLUTIONS


@pytest.mark.parametrize("name", SOLUTIONS)
def test_solution_gives_the_numbers(name, printed, tmp_path):
    """Each line of the exercise's block is printed by the solution, and not all of them without it."""
    lines = blocks(f"text exercise {name}")[0].splitlines()
    solved = output_of(solution(name, tmp_path, first_chapter=name == "6_frozen_norm"), tmp_path).splitlines()
    assert [line for line in lines if line not in solved] == []
    assert [line for line in lines if line not in printed.splitlines()] != []


def test_numbers_of_the_prose(printed, tmp_path):
    """Ratios of printed numbers, and what exercise 4 prints before `resume` is repaired."""
    losses = [float(loss) for loss in re.findall(r"loss of update 800: (\S+)", printed)]
    assert "ten times that of the full update" in PAGE and round(losses[1] / losses[0]) == 10
    bcd, full = map(int, printed.split("\n")[-2].split()[-2:])
    assert re.search(r"it\s+needs 27 times as many", PAGE) and round(bcd / full) == 27
    assert "W (1 + 3 x 72/168) = 3072" in PAGE and 168 * 8 * (1 + 3 * 72 / 168) == 3072
    repair = "allocate(t, role, &t->param[role][b], params(b), from->param[role][b]);"
    source = solution("4_keep_state", tmp_path, [(repair, "")])
    wrong = re.search(r'"resumed" is wrong now,\s+with\s+(\S+):', PAGE).group(1)
    assert re.search(rf"resumed +{wrong}$", output_of(source, tmp_path), re.M)


def loss_at_the_end(name, tmp_path, *changes):
    """The loss of BCD after 800 updates by a solution, or "" for none, in which texts are replaced."""
    return re.findall(r"loss of update 800: (\S+)", output_of(solution(name, tmp_path, changes), tmp_path))[1]


def test_claims_that_are_not_printed(tmp_path):
    """Exercise 8 without its middle; and the orders, which other initial weights turn round."""
    middle = "|| b * t->submodels / BLOCKS == t->at.submodel", "|| t->submodels == 1"
    words = " ".join(PAGE.split())
    assert f"chapters 1 and 2 need all blocks. ({loss_at_the_end('8_ends', tmp_path, middle)})" in words
    for weights, better in ((7, True), (13, False)):
        change = "uniform(7, ", f"uniform({weights}, "
        cyclic = loss_at_the_end("", tmp_path, change)
        descending, random = (loss_at_the_end(order, tmp_path, change) for order in ("2_descending", "3_random"))
        assert better == (descending < cyclic) == (random < cyclic)
    assert (f"`uniform(13, ...)` for `uniform(7, ...)`) the random one is behind it, at {random}, and descending and cyclic are "
            f"level, at {descending} and {cyclic}:" in words)


def test_costs_are_those_of_info():
    info = subprocess.run([os.environ["BCD_PROGRAM"], "info", "--model", "mlp:inputs=2,layers=2,width=8,classes=8"],
                          check=True, capture_output=True, text=True).stdout
    assert blocks("bcd-info")[0] in info
    costs = [int(line.split()[3]) for line in blocks("bcd-info")[0].splitlines()[3:]]
    forward, inputs = 2 * (2 * 8 + 8 * 8 + 8 * 8), 2 * (8 * 8 + 8 * 8)
    assert costs == [forward + inputs + 2 * 2 * 8, forward + 2 * 8 * 8 + 2 * 8 * 8, forward + 2 * 8 * 8]
    assert f"The full update takes {forward + inputs + forward}." in PAGE
