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
