"""The instructions of ref/README.md name every place where an op or an optimizer is named."""
import pathlib
import re

import program

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCES = "ref", "cuda", "dist", "data", "experiments"


def section(title):
    """The text below a title of ref/README.md, up to the next one."""
    text = (ROOT / "ref" / "README.md").read_text(encoding="utf-8")
    return text.split(f"\n## {title}\n")[1].split("\n## ")[0]


def places(title, name):
    """The files that the instructions below a title name, by path, with `name` in place of NAME."""
    paths = re.findall(r"`((?:ref|cuda|tests)/[\w/]+\.\w+)`", section(title))
    return {path.replace("NAME", name) for path in paths} - {"tests/paper/test_instructions.py"}


def naming(pattern, folders):
    """The sources in these folders that match."""
    words = re.compile(pattern)
    return {str(path.relative_to(ROOT)) for folder in folders for path in (ROOT / folder).rglob("*")
            if path.suffix in (".c", ".h", ".cu", ".py") and words.search(path.read_text(encoding="utf-8"))}


# ---- an op --------------------------------------------------------------------------------------

def test_op():
    """An op with files of its own is in those that the instructions name, and in no other but the blocks that use it."""
    found = naming(r"OP_AVGPOOL|\bbuild_avgpool|avgpool_(forward|input_gradient)", (*SOURCES, "tests/ref"))
    assert found - {"ref/blocks/resnet.c"} == places("Adding an op", "avgpool")


# ---- an optimizer -------------------------------------------------------------------------------

def last():
    """The last optimizer of the table."""
    return program.ask_once("info")["optimizers"].labels[-1]


def test_sources_of_an_optimizer():
    """An optimizer added by the instructions is in no other file."""
    found = naming(rf"(?i)(?<![a-z]){last()}(?![a-z])", SOURCES)
    assert found == {path for path in places("Adding an optimizer", last()) if not path.startswith("tests/")}


def test_tests_of_an_optimizer():
    """Each test that the instructions name has the last optimizer."""
    for path in places("Adding an optimizer", last()):
        if path.startswith("tests/"):
            assert re.search(last(), (ROOT / path).read_text(encoding="utf-8"), re.IGNORECASE), path
