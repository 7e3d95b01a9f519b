"""The figures of the page: what they show of trainings and of tables."""
import copy
import math
import re
import subprocess

import pytest

import figures_of_cases
import page
import program
import schema
import study
import tables
from samples import GPT, LATER, case_of, evaluations, like, pairs, training
from tables import PUBLISHED, Column, Table, Tables
from test_page import done


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
