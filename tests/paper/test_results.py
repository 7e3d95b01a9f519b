"""The committed files of results."""
import math

import h5py
import pytest

import check_schema
import compare
import curves
import store
import study
import tables
from conftest import RESULTS, git, has_history

FILES = {path.stem: store.format_of(path) for path in sorted(RESULTS.glob("*.h5"))}
STUDIES = [name for name, kind in FILES.items() if kind == study.FORMAT]
INCOMPLETE = ["plateau-next", "width-rates-next"]  # files of the second trainings of a part that is not complete or not reported: of these nothing is said
TABLES = [name for name, kind in FILES.items() if kind == tables.FORMAT]


def read(name):
    return study.read([RESULTS / f"{name}.h5"])


@pytest.mark.parametrize("name", FILES)
def test_schema(name):
    kinds = check_schema.read_page(RESULTS / "README.md")
    assert check_schema.Check(RESULTS / f"{name}.h5", kinds).mistakes == []


@pytest.mark.parametrize("name", STUDIES)
def test_computed_columns(name):
    """What was computed from the curves in the committed files is what is computed today, except for rounding."""
    stored, today = read(name), read(name)
    compare.converge(today)
    for had, has in zip(stored, today):
        for column in compare.alone(has):
            assert has[column] == pytest.approx(had[column], rel=1e-9, abs=0, nan_ok=True), (had["row"], column)


@pytest.mark.parametrize("name", STUDIES)
def test_rule(name):
    """The files name the rule by which their columns were computed, and it is today's."""
    with h5py.File(RESULTS / f"{name}.h5") as file:
        assert store.attribute(file, "convergence") == curves.RULE, "bcd report FILE --study FILE writes it anew"


@pytest.fixture(scope="module")
def history():
    """Returns the commits before today's; None in a copy without the whole history."""
    return set(git("log", "--format=%H").split()) if has_history() else None


@pytest.mark.parametrize("name", STUDIES + TABLES)
def test_provenance(name, history):
    """Every result can be made again: its commit is in the history, and nothing was changed in it."""
    path = RESULTS / f"{name}.h5"
    every = [t.provenance for t in read(name)] if name in STUDIES else [tables.read(path).provenance]
    for provenance in every:
        assert provenance["wall"] > 0
    if history is None:
        pytest.skip("not the whole history is here")
    for commit in {provenance["commit"] for provenance in every}:
        full = git("rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}") or ""
        assert full.strip() in history, f"commit {commit} is not in the history"


def test_multipliers():
    """In no training of a complete group does BCD reach the loss of its full update in fewer updates, as paper_repro.md
    says."""
    found = [t for name in STUDIES if name not in INCOMPLETE for t in read(name) if t["submodels"] > 1]
    for t in found:
        assert not t["multiplier"] <= 1 and not t["valid_multiplier"] <= 1, t["row"]
    assert sum(math.isfinite(t["multiplier"]) for t in found) > 100
