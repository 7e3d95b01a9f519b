"""The trainings of the groups of protocol.md have the settings that it says (trainings.toml)."""
import re

import pytest

import choose
import program
import registered
import study
import trainings
from conftest import RESULTS
from test_trainings import plan

# ---- group 2 ------------------------------------------------------------------------------------

def test_plateau_has_the_best_rates():
    """Each of its methods has the rate, and with a cosine also the phases, of the best score in rates.h5."""
    found = {}
    for training in study.read([RESULTS / "rates.h5"]):
        key = training["submodels"], training.setting("schedule"), str(training.setting("switch-every"))
        key = key[:2] if training["submodels"] == 1 else key
        found.setdefault(key, []).append((registered.at_the_end(training), training["lr"]))
    best = {key: max(scores) for key, scores in found.items()}
    rows = plan("plateau", "laptop").rows
    assert len(rows) == 7 * 3
    for row in rows:
        schedule, phases = row.flags["schedule"], str(row.flags.get("switch-every"))
        key = (1, schedule) if row.submodels == 1 else (3, schedule, phases)
        assert row.flags["lr"] == best[key][1], row.name
    cosine = {phases: score for (submodels, schedule, *phases), score in best.items() for phases in phases
              if submodels == 3 and schedule == "cosine"}
    chosen, = {str(row.flags["switch-every"]) for row in rows if row.submodels == 3 and row.flags["schedule"] == "cosine"}
    assert cosine[chosen] == max(cosine.values())


# ---- group 3 ------------------------------------------------------------------------------------

def test_smollm_has_the_best_rates():
    """Each method has the rate of the lowest loss in smollm-rates.h5, which is inside the rates tried, and differs in
    nothing else but the length, the text for scores and the evaluations from the training that chose it."""
    longer = {"steps", "valid", "eval-every", "seed"}
    tried = {}
    for row, training in paired(plan("smollm-rates", "laptop").rows, "smollm-rates.h5"):
        tried.setdefault(choose.named(training), []).append((training["lr"], registered.at_the_end(training), row.flags))
    rows = plan("smollm", "laptop").rows
    assert len(rows) == 3 * len(tried) and {row.seed for row in rows} == {1, 2, 3}
    for grid in tried.values():
        grid.sort(key=lambda one: one[0])
        best = min(grid, key=lambda one: one[1])
        assert best not in (grid[0], grid[-1])
        kept = {flag: value for flag, value in best[2].items() if flag not in longer}
        same = [row for row in rows if kept == {flag: row.flags[flag] for flag in row.flags if flag not in longer}]
        assert len(same) == 3


def test_what_was_added_has_the_best_rate():
    """SGD without momentum, as above, by smollm-added-rates.h5."""
    tried = sorted((training["lr"], registered.at_the_end(training)) for _, training in
                   paired(plan("smollm-added-rates", "laptop").rows, "smollm-added-rates.h5")
                   if choose.named(training) == choose.PLAIN)
    best = min(tried, key=lambda one: one[1])
    assert best not in (tried[0], tried[-1])
    assert {(row.flags["lr"], row.flags["momentum"], row.seed) for row in plan("smollm-added", "laptop").rows} == {
        (best[0], 0, seed) for seed in (1, 2, 3)}


def paired(rows, file):
    """Each row of a plan, and its training in a file of results."""
    found = {training["row"]: training for training in study.read([RESULTS / file])}
    return [(row, found[row.name]) for row in rows]


# ---- group 4 ------------------------------------------------------------------------------------

def test_gpt_length_has_the_best_rate():
    """With a cosine, that of the lowest perplexity in gpt-rates.h5, the same for both methods and inside the rates tried;
    at a constant rate all settings of `converged` but the length."""
    tried = {}
    for _, training in paired(plan("gpt-rates", "laptop").rows, "gpt-rates.h5"):
        tried.setdefault(training["submodels"], []).append((training["lr"], registered.at_the_end(training)))
    best, = {min(grid, key=lambda one: one[1])[0] for grid in tried.values()}
    assert all(min(grid)[0] < best < max(grid)[0] and len(grid) == 5 for grid in tried.values())
    rows = plan("gpt-length", "laptop").rows
    cosine = [row for row in rows if row.flags["schedule"] == "cosine"]
    assert [(row.submodels, row.flags["lr"], row.flags["epochs"]) for row in cosine if row.seed == 1] == [
        (1, best, 6), (1, best, 9), (1, best, 12), (1, best, 24), (2, best, 24), (3, best, 24)]
    constant = [row for row in rows if row not in cosine]
    before = {(row.submodels, row.seed): row.flags for row in plan("converged", "laptop").rows
              if row.flags["model"].startswith("gpt") and row.submodels in (2, 3) and row.flags["schedule"] == "constant"
              and row.flags.get("fraction", 1) == 1}
    assert len(rows) == 12 + 4 and len(constant) == 4
    for row in constant:
        assert row.flags == before[row.submodels, row.seed] | {"epochs": 72}


# ---- group 7 ------------------------------------------------------------------------------------

def memory_of(flags, **changes):
    """What bcd info plans for the settings of a training, one sequence at a time."""
    asked = {"model": flags["model"] + ",vocabulary=8192", "optimizer": flags["optimizer"], "recompute": True, "batch": 1,
             "submodels": max(3, flags["submodels"]), "always-active": flags["always-active"]} | changes
    table = program.ask_once("info", *program.flags_of(**{flag.replace("-", "_"): value for flag, value in asked.items()}))
    name = f"BCD-1/{flags['submodels']}" if flags["submodels"] > 1 else "full"
    return table["memory"].value(f"{flags['optimizer']} {name}", "all")


@pytest.mark.parametrize("name", [name for name, table in trainings.experiments().items() if table.get("hours")])
def test_a_constant_rate_is_evaluated_often_enough(name, all_data):
    """The score of protocol.md is the mean of the last five evaluations, which lie in the second half."""
    for row in plan(name, "laptop").rows:
        every, steps = int(row.flags.get("eval-every", 0)), int(row.flags.get("steps", 0))
        if row.flags["schedule"] == "constant" and every:
            assert steps == 0 or steps // every >= 10, row.name


def kinds_of(name):
    return {(row.flags["model"], row.flags["optimizer"], row.submodels): row.flags for row in plan(name, "laptop").rows}


def test_equal_memory():
    """Each network of group 7 is the widest, in steps of 8, that takes no more memory than the first by BCD-1/3."""
    kinds = kinds_of("equal-memory-rates")
    assert len(kinds) == 5
    first, *others = kinds.values()
    limit = memory_of(first)
    for flags in others:
        width = int(re.search(r"width=(\d+)", flags["model"])[1])
        wider = flags["model"].replace(f"width={width}", f"width={width + 8}") + ",vocabulary=8192"
        assert memory_of(flags) <= limit < memory_of(flags, model=wider)


def test_each_method_of_group_7_is_timed():
    """A cycle of BCD and more, and otherwise as it is trained."""
    timed, rates = kinds_of("equal-memory-speed"), kinds_of("equal-memory-rates")
    assert timed.keys() == rates.keys()
    for kind, flags in timed.items():
        differ = {flag for flag in flags.keys() | rates[kind].keys() if flags.get(flag) != rates[kind].get(flag)}
        assert differ <= {"lr", "steps", "switch-every", "eval-every", "eval-samples"}
        assert flags["submodels"] == 1 or flags["steps"] == 3 * flags["switch-every"]
