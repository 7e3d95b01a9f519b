"""What is printed of committed files of results is, letter by letter, what the golden files have."""
import io

import pytest

import printing
import report
from conftest import RESULTS, ROOT

GOLDEN = [path for path in sorted((ROOT / "tests" / "paper" / "golden").iterdir()) if path.name != "README.md"]


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda path: path.name)
def test_printed(golden):
    out = io.StringIO()
    printing.print_tables(out, report.Report([str(RESULTS / f"{golden.stem}.h5")]), golden.suffix == ".md")
    assert out.getvalue() == golden.read_text(encoding="utf-8")
