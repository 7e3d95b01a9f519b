"""The documents are what their sources and the files of results make."""
import os
import pathlib
import re
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
RESULTS = ROOT / "experiments" / "results"
PROGRAM = os.environ.get("BCD_PROGRAM", str(ROOT / "build" / "bcd"))
sys.path.insert(0, str(ROOT / "experiments" / "paper"))
import render  # noqa: E402


@pytest.mark.parametrize("source, document", render.DOCUMENTS.items())
def test_rendered(source, document):
    text = render.render(source, PROGRAM)
    assert (ROOT / document).read_text(encoding="utf-8") == text, f"make documents writes {document} anew"


@pytest.mark.parametrize("document", render.DOCUMENTS.values())
def test_names_files_that_exist(document):
    text = (ROOT / document).read_text(encoding="utf-8")
    assert [name for name in set(re.findall(r"[\w-]+\.(?:h5|svg)", text)) if not (RESULTS / name).exists()] == []


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    return render.draw(PROGRAM, tmp_path_factory.mktemp("drawn"))


@pytest.mark.parametrize("name", render.PICTURES)
def test_pictures_are_as_drawn(drawn, name):
    new = drawn[name]
    old = (RESULTS / name).read_text(encoding="utf-8")
    if old.splitlines()[1] != new.splitlines()[1]:
        pytest.skip(f"{old.splitlines()[1]} drew it, and here is {new.splitlines()[1]}")
    assert old == new
