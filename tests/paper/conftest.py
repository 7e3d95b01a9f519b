"""Tests import the modules of experiments/paper/ by their names."""
import contextlib
import functools
import io
import os
import pathlib
import subprocess
import sys
import unittest.mock

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
RESULTS = ROOT / "experiments" / "results"
sys.path[:0] = [str(ROOT / "experiments" / "paper"), str(ROOT / "tests" / "experiments")]


def git(*command):
    """What git prints, or None where it fails; its dates are UTC."""
    done = subprocess.run(["git", "-C", str(ROOT), *command], capture_output=True, text=True, check=False,
                          env={**os.environ, "TZ": "UTC"})
    return done.stdout if done.returncode == 0 else None


def has_history():
    """True where git has the whole of it: False in a shallow clone, or in a copy without git."""
    return (git("rev-parse", "--is-shallow-repository") or "").strip() == "false"


def called(main, folder, *arguments):
    """Runs a command's main() in `folder` as its script does, but in this process, which has the packages already."""
    import errors
    out, complaints = io.StringIO(), io.StringIO()
    with (contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(complaints),
          unittest.mock.patch.object(sys, "argv", [main.__module__, *map(str, arguments)]), pytest.raises(SystemExit) as end):
        errors.run(main)
    return subprocess.CompletedProcess(arguments, end.value.code or 0, out.getvalue(), complaints.getvalue())


@pytest.fixture
def held():
    """Checks a cell against a number that is written out, to half a unit of its last digit."""
    def check(table, row, column, value):
        digits = len(value.partition(".")[2])
        assert table.value(row, column) == pytest.approx(float(value), abs=0.50005 * 10**-digits)
    return check


@functools.cache
def stored(name):
    """The Tables of a committed file of results, read once."""
    import tables
    return tables.read(RESULTS / f"{name}.h5")


@pytest.fixture
def golden():
    """Compares a table with that of the same name in a committed file of results, which may have more columns: labels,
    heads, sources, and each cell to the last digit that is printed. Cells of the columns `simulated`, and their
    deviations, may differ by this fraction; `waiting` has fractions for other columns by name. only_columns: the table
    was measured anew, and only its columns are compared."""
    import tables

    def check(file, table, simulated=0.0, waiting=(), name=None, only_columns=False):
        before = stored(file)[name or table.name]
        for place, column in enumerate(table.columns):
            old, = (c for c in before.columns if c.name == column.name)
            assert (old.head, old.below, old.kind, old.decimals) == (column.head, column.below, column.kind, column.decimals)
            if only_columns:
                continue
            assert before.labels == table.labels
            for label, row, cell in zip(table.labels, table.rows, before.column(column.name)):
                new = row[place]
                assert new.source == cell.source, (label, column.name)
                if column.name in waiting:
                    assert new.value == pytest.approx(cell.value, rel=waiting[column.name], nan_ok=True)
                elif simulated and new.source in (tables.SIMULATED, tables.NONE) and not isinstance(new.value, str):
                    assert new.value == pytest.approx(cell.value, rel=simulated, abs=simulated, nan_ok=True)
                else:
                    assert tables.printed(column, new) == tables.printed(old, cell), (label, column.name)
    return check


@pytest.fixture
def all_data(tmp_path):
    """Returns a directory in which every data set seems to exist."""
    import program
    for file in filter(None, (file for _, file in program.data_sets().values())):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()
    return tmp_path
