"""The committed trainings give the tables of the golden files, except for the listed cells."""
import io
import pathlib

import pytest

import goldens
import report
import store
import study
from tables import Tables

RESULTS = pathlib.Path(__file__).resolve().parents[2] / "experiments" / "results"
TRAININGS = sorted(path.stem for path in goldens.GOLDEN.glob("*.md") if (RESULTS / f"{path.stem}.h5").exists()
                   and store.format_of(str(RESULTS / f"{path.stem}.h5")) != "bcd tables")


@pytest.mark.parametrize("name", TRAININGS)
def test_cells(name):
    path = str(RESULTS / f"{name}.h5")
    found, _ = report.make(study.read([path]).trainings, paper=store.format_of(path) != study.RUN_FORMAT)
    out = io.StringIO()
    Tables(found).print(out, markdown=True)
    now = goldens.cells_of(out.getvalue())
    expected = goldens.cells_of((goldens.GOLDEN / f"{name}.md").read_text(encoding="utf-8"))
    for cell, (before, after) in goldens.differences(name).items():
        assert expected.get(cell, "-") == before, cell
        expected[cell] = after
    added = {cell: text for cell, text in now.items() if cell not in expected}
    assert {cell: text for cell, text in now.items() if cell in expected} == expected
    assert set(added.values()) <= {""}, "a new column is empty where no difference is listed"


def test_differences_are_explained():
    reasons = (goldens.GOLDEN / "README.md").read_text(encoding="utf-8")
    with open(goldens.DIFFERENCES, encoding="utf-8", newline="") as file:
        for row in goldens.csv.DictReader(file):
            assert f"`{row['reason']}`" in reasons
            assert row["file"] in TRAININGS and row["before"] != row["now"]
