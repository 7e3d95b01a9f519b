"""savings.h5: peaks of memory that a training has today as well."""
import savings
import tables
from conftest import RESULTS
from test_experiment import experiment

STORED = tables.read(str(RESULTS / "savings.h5"))


def test_stored_peaks(tmp_path):
    """Peaks of the network that needs no download are measured again, to the byte."""
    experiment("savings", "--preset", "smoke", "--quiet", cwd=tmp_path)
    found = tables.read(str(tmp_path / "results-smoke" / "savings.h5"))
    assert found["savings"].labels == [label for label in STORED["savings"].labels if label.startswith("ResNet-8: ")]
    for label in found["savings"].labels:
        assert found["savings"].value(label, "all") == STORED["savings"].value(label, "all"), label
    assert found["large"].column("all")[0].value == STORED["large"].column("all")[0].value


def test_every_way_is_stored():
    labels = [f"{name}: {way}" for name, _, ways in savings.NETWORKS.values() for way, _ in ways]
    assert STORED["savings"].labels == labels
