"""The instructions of ref/README.md name every place where an op or an optimizer is named."""
import functools
import re

import program
from conftest import ROOT

SOURCES = "ref", "cuda", "dist", "data", "experiments"


def section(title):
    """The text below a title of ref/README.md, up to the next one."""
    text = (ROOT / "ref" / "README.md").read_text(encoding="utf-8")
    return text.split(f"\n## {title}\n")[1].split("\n## ")[0]


def places(title, name):
    """The files that the instructions below a title name, by path, with `name` in place of NAME."""
    paths = re.findall(r"`((?:ref|cuda|tests)/[\w/]+\.\w+)`", section(title))
    return {path.replace("NAME", name) for path in paths} - {"tests/paper/test_instructions.py"}


@functools.cache
def naming(pattern, folders):
    """The sources in these folders that match."""
    words = re.compile(pattern)
    return {str(path.relative_to(ROOT)) for folder in folders for path in (ROOT / folder).rglob("*")
            if path.suffix in (".c", ".h", ".cu", ".py") and words.search(path.read_text(encoding="utf-8"))}


# ---- an op --------------------------------------------------------------------------------------

def test_op():
    """An op with files of its own is in those that the instructions name, and in no other but the blocks that use it.
    One with a kink is among the differences, too."""
    found = naming(r"OP_AVGPOOL|\bbuild_avgpool|avgpool_(forward|input_gradient)", (*SOURCES, "tests/ref"))
    found |= {"tests/ref/differences.c"}
    assert found - {"ref/blocks/resnet.c"} == places("Adding an op", "avgpool")


# ---- an optimizer -------------------------------------------------------------------------------

TITLE = "Adding an optimizer"
ON_A_GPU = {"cuda/update.c", "tests/cuda/test_device_update.c"}  # at least


def optimizers():
    """The optimizers of the table, in its order."""
    return program.ask_once("info")["optimizers"].labels


def added():
    """Those added by the instructions: what SGD, Adam and AdamW are is said in more files."""
    return [name for name in optimizers() if name not in ("sgd", "adam", "adamw")]


def naming_optimizer(name, folders):
    """The sources in these folders that name an optimizer."""
    return naming(rf"(?i)(?<![a-z]){name}(?![a-z])", folders)


def missing(name):
    """The places where an optimizer has to be and is not.  Only one for a GPU is in cuda/ and its tests, and only one for
    matrices, which names the optimizer of the rest, has a test of its own."""
    found = naming_optimizer(name, ("ref", "cuda", "tests"))
    needed = {path for path in places(TITLE, name) if "cuda/" not in path}
    if any(path.startswith("cuda/") for path in found):
        needed |= ON_A_GPU
    source = ROOT / "ref" / "optimizers" / f"{name}.c"
    if source.exists() and ".others" not in source.read_text(encoding="utf-8"):
        needed -= {f"tests/ref/test_{name}.c"}
    return needed - found


def test_sources_of_an_optimizer():
    """An optimizer added by the instructions is in no other file of ref/ and cuda/, and the last one in no other at all."""
    for name in added():
        assert naming_optimizer(name, ("ref", "cuda")) <= places(TITLE, name), name
    assert naming_optimizer(optimizers()[-1], SOURCES) <= places(TITLE, optimizers()[-1])


def test_tests_of_an_optimizer():
    """The instructions name the tests that have all added optimizers, and those of one alone."""
    tests = set.intersection(*(naming_optimizer(name, ("tests/ref", "tests/fixtures")) for name in added()))
    assert tests | ON_A_GPU <= places(TITLE, "NAME")
    for name in added():
        own = f"tests/ref/test_{name}.c"
        assert own in places(TITLE, name) or not (ROOT / own).exists()


def test_places_of_an_optimizer():
    """An optimizer added by the instructions is in every place that they name for one of its kind."""
    for name in added():
        assert not missing(name), f"{name} is not in {missing(name)}"


def test_no_place_is_superfluous():
    """Each place that the instructions name has one of the optimizers."""
    for place in places(TITLE, "NAME"):
        assert any(place.replace("NAME", name) in naming_optimizer(name, ("ref", "cuda", "tests"))
                   for name in added()), place
