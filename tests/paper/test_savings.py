"""savings.h5: peaks of memory that a training has today as well."""
import pathlib

import pytest

import savings
import tables

STORED = tables.read(str(pathlib.Path(__file__).resolve().parents[2] / "experiments" / "results" / "savings.h5"))


def test_a_later_flag_replaces_an_earlier_one():
    assert savings.flags_of("--optimizer adam --steps 6", "", "--recompute --optimizer sgd --momentum 0") == [
        "--optimizer", "sgd", "--steps", "6", "--recompute", "--momentum", "0"]


@pytest.mark.parametrize("way, flags", savings.NETWORKS["resnet8"][2])
def test_stored_peaks(way, flags, tmp_path):
    """Peaks that need no download are measured again, to the byte."""
    found, _ = savings.peaks(savings.flags_of(savings.STEPS, savings.NETWORKS["resnet8"][1], flags), tmp_path / "run")
    assert found["total"] / savings.MIB == STORED["savings"].value(f"ResNet-8: {way}", "all")


def test_every_way_is_stored():
    labels = [f"{name}: {way}" for name, _, ways in savings.NETWORKS.values() for way, _ in ways]
    assert STORED["savings"].labels == labels
