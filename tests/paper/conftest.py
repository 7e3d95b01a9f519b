"""Tests import the modules of experiments/paper/ by their names."""
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "experiments" / "paper"), str(ROOT / "tests" / "experiments")]
