"""The instructions of ref/README.md name every place where an optimizer is named."""
import pathlib
import re

import program

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCES = "ref", "cuda", "dist", "data", "experiments"


def section(title):
    """The text below a title of ref/README.md, up to the next one."""
    text = (ROOT / "ref" / "README.md").read_text(encoding="utf-8")
    return text.split(f"\n## {title}\n")[1].split("\n## ")[0]


def places(name):
    """The files that the instructions name, by path, with an optimizer's name in place of NAME."""
    return {path.replace("NAME", name) for path in re.findall(r"`((?:ref|cuda|tests)/[\w/]+\.\w+)`",
                                                               section("Adding an optimizer"))} - {
                                                                   "tests/paper/test_instructions.py"}


def naming(name, folders):
    """The sources in these folders that name an optimizer."""
    word = re.compile(rf"(?<![a-z]){name}(?![a-z])", re.IGNORECASE)
    return {str(path.relative_to(ROOT)) for folder in folders for path in (ROOT / folder).rglob("*")
            if path.suffix in (".c", ".h", ".cu", ".py") and word.search(path.read_text(encoding="utf-8"))}


def last(on_gpu):
    """The last optimizer of the table, or the last one that has a kernel for GPUs."""
    table = program.ask_once("info")["optimizers"]
    return [name for name in table.labels if not on_gpu or "GPU" in table.text(name, "devices")][-1]


def test_sources():
    """An optimizer added by the instructions is in no other file, and the kernels' are named too."""
    name, kernel = last(False), last(True)
    found = naming(name, SOURCES) | naming(kernel, ["cuda"])
    assert found == {path for path in places(name) if not path.startswith("tests/")}


def test_tests():
    """Each test that the instructions name has the last optimizer, those of kernels the last one with a kernel."""
    for path in places(last(False)):
        if path.startswith("tests/"):
            name = last(path.startswith("tests/cuda/"))
            assert re.search(name, (ROOT / path).read_text(encoding="utf-8"), re.IGNORECASE), path
