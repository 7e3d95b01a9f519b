"""Which trainings of an experiment have been done: what run.h5 of a row's directory, or the experiment's table, says."""
import shlex

import store
import study
from errors import Refused
from schema import ADDED_FLAGS
from trainings import flag_text

# Flags that may differ between the rows of a table and from a training that goes on.
LENGTH = ("steps", "epochs")
LOCAL = ("threads", "data-dir", "save-every", "keep-last", "quiet", "out")
UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}  # of sizes


def read_number(text):
    """Returns a number, 0 of "", or the whole bytes that a size such as 1.5G stands for."""
    return float(text[:-1]) * UNITS[text[-1]] // 1 if text[-1:] in UNITS else float(text or 0)


def same_value(stored, asked):
    """Compares a stored setting with a flag; numbers are compared as numbers, and sizes such as 2M as bytes."""
    asked = "" if asked == "none" else flag_text(asked)
    try:
        return float(stored or 0) == read_number(asked)
    except ValueError:
        return str(stored) == asked


def given_in(command):
    """The flags of bcd train that a training depends on, of the command that began it, --no-x as x; none of an older
    one, in which bcd experiment trained."""
    if len(command.encode()) >= store.LINE - 1:  # a file has no more of it, and perhaps half of the last word
        command = command.rpartition(" ")[0]
    try:
        words = shlex.split(command)
    except ValueError:  # cut between quotes
        words = command.split()
    if words[1:2] != ["train"]:
        return set()
    return {word[2:].removeprefix("no-") for word in words if word.startswith("--")} - {*LOCAL, *LENGTH, "brief", "device"}


def is_same_file(stored, asked, template):
    """Whether a stored path is that of a file of a row: the same one, or as far into another directory of data."""
    below = template.partition("{data}")[2]
    return str(stored) == str(asked) or bool(below) and str(stored).endswith(below)


def is_as_asked(stored, row, place, command=""):
    """Returns whether a training with stored settings, by this command, is what a row asks for; false where it asks for
    another length.  Any other difference is an error that names `place`."""
    flags, finished, stored = row.flags, True, ADDED_FLAGS | stored  # what an older training lacks it did without
    for name in sorted(given_in(command) - set(flags)):
        raise Refused(f"{place}: trained with --{name}, which is not asked for now; choose another --out")
    for name, asked in flags.items():
        if name in LOCAL or name not in stored or same_value(stored[name], asked):
            continue
        if name in row.files and is_same_file(stored[name], asked, row.files[name]):
            continue
        if name not in LENGTH:
            raise Refused(f"{place}: trained with --{name} {stored[name]}; for {flag_text(asked)} choose another --out")
        finished = False
    return finished


class Run:
    """What run.h5 of a row's directory says: its settings, its status, whether it has ended, how far it is."""

    def __init__(self, directory):
        self.status, self.done, self.settings, self.command = "", 0.0, None, ""
        path = directory / "run.h5"
        if not path.exists():
            return
        with store.reading(path) as file:
            self.settings, self.status = store.attributes(file["settings"]), store.attribute(file, "status")
            study.check_settings(self.settings, path)
            self.command = store.attribute(file["provenance"], "command")
            steps = int(file["curve/step"][-1]) if len(file["curve/step"]) else 0
            length = self.settings.get("epochs", 0) * store.attribute(file["data"], "steps_per_epoch")
            self.done = min(1.0, steps / (length or self.settings["steps"] or 1))

    @property
    def ended(self):
        return self.status in study.ENDED


def finished_rows(plan, folder, table, path):
    """Returns the names of the rows that have been trained to the length asked for, or have diverged, by their
    directories, or where these are gone by the table in `path`, which has the trainings by the names of rows."""
    finished = set()
    for row in plan.rows:
        run = Run(folder / "rows" / row.name)
        if run.settings is not None:
            done = is_as_asked(run.settings, row, folder / "rows" / row.name, run.command) and run.ended
        else:
            had = table.get(row.name)
            ended = had and had["status"] in study.ENDED and not plan.needs_weights
            done = ended and is_as_asked(had.settings, row, path, had.provenance["command"])
        if done:
            finished.add(row.name)
    return finished
