"""The list of changes after the first results: lines are only ever added."""
import hashlib
import re
import tomllib

import pytest

import cases
import document
import trainings
from conftest import RESULTS, git, has_history

FILE = "experiments/paper/changes.toml"
# The length of the list when this was written, and the checksum of its last line.
KNOWN = 67, "5d7ae0b8bbcf664c"


def chained(changes):
    """Returns the checksum that each line must have."""
    found, last = [], ""
    for change in changes:
        text = "\n".join([last, *(change[key] for key in ("date", "commit", "what", "why")), ""])
        last = hashlib.sha256(text.encode()).hexdigest()[:16]
        found.append(last)
    return found


def test_checksums():
    changes = document.changes()
    for number, (change, checksum) in enumerate(zip(changes, chained(changes)), 1):
        assert change["checksum"] == checksum, f"line {number}, of {change['date']}: {change['what']}"


def test_no_line_was_removed():
    changes = document.changes()
    assert len(changes) >= KNOWN[0]
    assert changes[KNOWN[0] - 1]["checksum"] == KNOWN[1]


def test_every_version_of_history_begins_it():
    """A list with all checksums computed anew would not begin with the older lists in the history."""
    if not has_history():
        pytest.skip("not the whole history is here")
    today = [change["checksum"] for change in document.changes()]
    for commit in git("log", "--format=%h", "--", FILE).split():
        old = [change["checksum"] for change in tomllib.loads(git("show", f"{commit}:{FILE}"))["change"]]
        assert today[:len(old)] == old, f"{commit} has another line"


def test_the_protocol_was_registered_when_it_was_committed():
    """What began before that minute has none of its answers."""
    if not has_history():
        pytest.skip("not the whole history is here")
    dates = git("log", "--diff-filter=A", "--format=%ad", "--date=format-local:%Y-%m-%dT%H:%M", "--",
                "experiments/paper/protocol.md")
    assert dates.split() == [cases.REGISTERED]


def test_commits_and_dates():
    if git("cat-file", "-e", "a81560a4") is None:
        pytest.skip("no history")
    dates = []
    for change in document.changes():
        dates.append(change["date"])
        if change["commit"]:
            date = git("show", "-s", "--format=%ad", "--date=format-local:%Y-%m-%d %H:%M", change["commit"])
            assert date and date.strip() == change["date"], change["commit"]
    assert [date[:10] for date in dates] == sorted(date[:10] for date in dates)


def test_comparisons_are_those_of_the_protocol():
    """p is corrected for the number that trainings.toml has."""
    numbers = {"four": 4, "five": 5, "seven": 7}
    found = {}
    for section in (RESULTS.parent / "paper" / "protocol.md").read_text(encoding="utf-8").split("\n## ")[2:]:
        group = re.search(r"`(.+?)`", section)[1]
        registered_as = re.search(r"Comparisons, (\w+)", section)
        found[group] = numbers[registered_as[1]] if registered_as else 0
    assert len(found) == 8 and sum(map(bool, found.values())) == 4
    for group, count in found.items():
        assert (trainings.experiments().get(group, {}).get("comparisons") or 0) == count, group
