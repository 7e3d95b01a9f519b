"""How tests/paper/run ends: its totals, and its exit status."""
import os
import subprocess
import sys

from conftest import ROOT


def test_a_suite_without_its_package_is_skipped(tmp_path):
    """It counts as skipped, names the package, and the run succeeds."""
    (tmp_path / "gguf.py").write_text("raise ModuleNotFoundError('not installed', name='gguf')\n")
    done = subprocess.run([sys.executable, ROOT / "tests" / "paper" / "run", "=gguf"], capture_output=True, text=True,
                          env=os.environ | {"PYTHONPATH": str(tmp_path), "BCD_PROGRAM": "unused"})
    assert done.returncode == 0, done.stdout
    lines = done.stdout.strip().split("\n")
    assert lines[-1] == "paper: 0 passed, 0 failed, 1 skipped" and any("no gguf; type: pip" in line for line in lines)


CASES = """
import pytest
def test_passes(): pass
def test_fails(): assert 1 == 2
def test_is_skipped(): pytest.skip("for a reason")
@pytest.fixture
def broken():
    yield
    raise ValueError("at the end")
def test_fails_at_its_end(broken): pass
"""


def test_a_failure_shows_why(tmp_path):
    """Once each; what is skipped shows its reason, and the totals come last."""
    (tmp_path / "paper").mkdir()
    script = tmp_path / "paper" / "run"
    script.write_text((ROOT / "tests" / "paper" / "run").read_text())
    (tmp_path / "paper" / "test_some.py").write_text(CASES)
    done = subprocess.run([sys.executable, script, "=some"], capture_output=True, text=True, check=False,
                          env=os.environ | {"BCD_PROGRAM": "unused"})
    assert done.returncode == 1 and done.stdout.endswith("\npaper: 1 passed, 2 failed, 1 skipped\n")
    assert all(words in done.stdout for words in ("assert 1 == 2", "ValueError: at the end", "for a reason"))
