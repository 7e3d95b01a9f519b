"""The trainings of an experiment, as trainings.toml has them: which ones a command line asks for."""

import contextlib
import dataclasses
import functools
import itertools
import math
import os
import pathlib
import re
import tomllib

import program
import published
from errors import WRONG_USE, Refused

PRESETS = ("smoke", "laptop", "gpu", "paper")
FILE = pathlib.Path(__file__).with_name("trainings.toml")

# The published rates.  The paper has no others, and an entry or --lr has the rate of another optimizer.
RATES = {"sgd": 0.1, "adam": 1e-4}
# What bcd train would otherwise choose by the kind of data.
PINNED = {"schedule": "constant", "warmup": 0, "clip": 0, "always-active": "none"}

# A row has these from its entry, or pool.py sets them.
NOT_TAKEN = ("model", "data", "optimizer", "submodels", "threads", "brief", "quiet")
# These make no sense for a full update.
ONLY_BCD = ("partition", "cache", "device-cache", "pre-infer")


@dataclasses.dataclass
class Row:
    """A training to do."""
    name: str  # of its directory, and its row in the experiment's file
    flags: dict  # of bcd train
    files: dict = dataclasses.field(default_factory=dict)  # by flag: as the entry has it, "{data}/train.txt"
    prepare: str = ""  # how they are made

    @property
    def seed(self):
        return int(self.flags.get("seed", 1))

    @property
    def submodels(self):
        return int(self.flags["submodels"])

    def check_files(self):
        for file in map(self.flags.get, self.files):
            if not os.path.exists(file):
                raise Refused(f"{file}: not there; to make it: {self.prepare}")


def experiments():
    """Returns the file as a dictionary by the names of experiments, without [shared]."""
    return {name: table for name, table in _load(FILE).items() if name != "shared"}


def is_beyond_the_paper(experiment):
    """True of what is no table of the paper, as are all trainings of hours."""
    return bool(experiment.get("beyond") or experiment.get("hours"))


@functools.cache
def _load(path):
    with open(path, "rb") as file:
        return tomllib.load(file)


def number_of(flags, name, default):
    """A flag's number, of the type of `default`; bcd train checks its range."""
    value = flags.get(name, default)
    with contextlib.suppress(ValueError, OverflowError):
        number = type(default)(value)
        if math.isfinite(number):
            return number
    raise Refused(f"--{name} {value}: expected a number", WRONG_USE)


def flag_text(value):
    """Returns a value as bcd train is given it."""
    return str(int(value) if isinstance(value, bool) else value)


def data_dir(given=None):
    return pathlib.Path(given or os.environ.get("BCD_DATA") or "datasets")


def is_present(data, directory):
    _, file = kind_of(data)
    return not file or (directory / file).exists()


def is_tokens(data):
    holds, _ = kind_of(data)
    return holds == "tokens"


def kind_of(data):
    """As in program.data_sets(); what is not there is a file of tokens."""
    return program.data_sets().get(data.split(":")[0], ("tokens", ""))


def merged(entry, shared):
    """Returns an entry with the keys of the table that it is like.  Flags are merged one by one."""
    if "like" not in entry:
        return entry
    base = shared[entry["like"]]
    return base | entry | {"flags": base.get("flags", {}) | entry.get("flags", {})}


def variants(table):
    """Returns a table for each combination of the values of its lists, the last list being the fastest."""
    values = [value if isinstance(value, list) else [value] for value in table.values()]
    return [dict(zip(table, combination)) for combination in itertools.product(*values)]


def row_name(flags, own, submodels):
    """Names a row and its directory, as in gpt-layers-2-text-sgd-bcd3.  A long name is cut before the
    seed, so that each seed keeps its own directory."""
    settings = own.get("name") or " ".join(
        f"{key}={flag_text(value)}" for key, value in own.items() if key not in ("submodels", "fraction"))
    model = str(flags.get("model") or os.path.basename(os.path.normpath(flags["init"])))[:60]
    data = str(flags["data"]).rsplit("/", 1)[-1][:20]
    name = f"{model}-{data}-{flags['optimizer']}-" + (f"bcd{submodels}" if submodels > 1 else "full")
    fraction = number_of(flags, "fraction", 1.0)
    if fraction < 1:
        name += f"-of{fraction:.4g}"
    if settings:
        name += "-" + settings[:46]
    seed = int(flags.get("seed", 1))
    ending = f"-seed{seed}" if seed != 1 else ""
    return re.sub(r"[^A-Za-z0-9.]", "-", name[: 127 - len(ending)] + ending)


def published_length(row):
    """Returns the flags of the published length.  Where Table 2 has iterations, the epochs are in Table 11, for
    WikiText-2 alone."""
    iterations = row.table == 2 and not row.is_images
    epochs = published.find(11, row.model, row.data, False, row.optimizer, row.submodels, 1) if iterations else row
    batch = 128 if row.is_images else 1
    if epochs and epochs.data == row.data:
        return {"epochs": epochs.duration, "batch": batch}
    return {"steps": row.duration, "batch": batch}


class Plan:
    """The trainings that a command line asks for, in the order in which they are run.

    asked has preset, models, optimizers, seeds (each None if not given) and flags, which override
    those of the entries."""

    def __init__(self, name, asked):
        table = _load(FILE)
        self.name, self.asked = name, asked
        self.experiment, self.shared = table[name], table["shared"]
        self.data_dir = data_dir(asked.flags.get("data-dir"))
        self.hours = bool(self.experiment.get("hours")) and asked.preset != "smoke"
        self.needs_weights = "part-of" in self.experiment  # the other part starts from them
        self.long = self.hours or asked.preset in ("gpu", "paper")
        self.replaced = []  # data sets that others stand in for
        self.rows = []
        self._check_submodels()
        if asked.preset == "paper" and self.experiment.get("tables"):
            self._add_published()
        else:
            self._add_preset()
        # All rows of a seed come before the next seed, so that an experiment that is stopped early is
        # a whole table of fewer seeds.  When it takes hours, all seeds of an entry come before the
        # next entry, so that some rows are whole.
        if not self.hours:
            self.rows.sort(key=lambda row: row.seed)

    # ---- which entries ----

    def _entries(self):
        default = [{"like": "long-smoke"}] if self.asked.preset == "smoke" else []
        found = [merged(entry, self.shared) for entry in self.experiment.get(self.asked.preset, default)]
        return [entry | one for entry in found
                for one in variants({"model": entry["model"]} if "model" in entry else {})]

    def _is_usable(self, entry, entries):
        """Returns whether an entry's data are there, or it stands in for data that are missing; with
        --data, whether it is no stand-in."""
        given = "data" in self.asked.flags
        instead_of = entry.get("instead-of")
        # Nobody publishes WebText2.
        if entry["data"] == "webtext2" and not is_present("webtext2", self.data_dir):
            return False
        if instead_of:
            return not given and not is_present(instead_of, self.data_dir)
        has_stand_in = any(other.get("instead-of") == entry["data"] for other in entries)
        return given or not has_stand_in or is_present(entry["data"], self.data_dir)

    def _add_preset(self):
        entries = self._entries()
        usable = [entry for entry in entries if self._is_usable(entry, entries)]
        self.replaced = [(e["instead-of"], e["data"]) for e in usable if "instead-of" in e]
        for model in self.asked.models or [None]:
            self._add_model(model, usable)
        if not self.rows:
            idle = {e["instead-of"] for e in entries if "instead-of" in e and is_present(e["instead-of"], self.data_dir)}
            why = f"it has only stand-ins for {', '.join(sorted(idle))}, which is there," if idle else "it has no trainings"
            raise Refused(f"{self.name}: {why} for --preset {self.asked.preset}")

    def _add_model(self, model, usable):
        """Adds the entries for a model, or else the first for the same kind of data."""
        chosen = [e for e in usable if model in (None, e.get("model"))]
        if model and not chosen:
            tokens = program.reads_tokens(model)
            chosen = [e for e in usable if is_tokens(e["data"]) == tokens][:1]
            if not chosen:
                raise Refused(f"--models {model}: the preset has no setting for such a model")
        changes = {"model": model} if model else {}
        data = self.asked.flags.get("data")
        if data:
            chosen = [e for e in chosen if is_tokens(e["data"]) == is_tokens(data)]
            changes["data"] = data
            if not chosen:
                raise Refused(f"--data {data}: {model or 'the preset'} has no setting for {'tokens' if is_tokens(data) else 'images'}")
        for entry in chosen:
            self._add_entry(entry | changes)

    def _add_published(self):
        """Adds the paper's own trainings, with the published length."""
        for table in self.experiment["tables"]:
            for row in published.trainings(table):
                if row.data == "webtext2" and not is_present("webtext2", self.data_dir):
                    continue
                if (row.model in (self.asked.models or [row.model])
                        and row.optimizer in (self.asked.optimizers or [row.optimizer])):
                    own = {"submodels": row.submodels} | ({"fraction": row.fraction} if row.fraction < 1 else {})
                    self._add_entry({"model": row.model, "data": row.data, "trainings": [own],
                                     "flags": published_length(row)}, [row.optimizer])
        if not self.rows:
            raise Refused("--models or --optimizers: none of those is in the paper's table")

    # ---- rows ----

    def _add_entry(self, entry, optimizers=None):
        optimizers = optimizers or self.asked.optimizers or entry["optimizers"]
        default = {"smoke": 1, "paper": 1}.get(self.asked.preset, 3)
        for seed in range(self.asked.seeds or entry.get("seeds", default)):
            for optimizer in optimizers:
                for own in entry.get("trainings") or self.experiment["trainings"]:
                    for one in variants(own):
                        self._add_row(entry, optimizer, one, seed)

    def _check_submodels(self):
        """--submodels replaces 3, where nothing else than 3 is trained."""
        asked = self.asked.flags
        self.submodels = number_of(asked, "submodels", 3)
        if "partition" in asked:
            self.submodels = str(asked["partition"]).count("/") + 1
        if self.submodels < 2:
            raise Refused(f"--submodels {self.submodels}: BCD needs at least 2")

    def _add_row(self, entry, optimizer, own, seed):
        submodels = own.get("submodels", 1)
        if submodels == 3:
            submodels = self.submodels
        given = {k: v for k, v in self.asked.flags.items() if k not in NOT_TAKEN}
        if submodels == 1:
            given = {k: v for k, v in given.items() if k not in ONLY_BCD}
        # A pretrained model is its own specification, and is named after its directory.
        start = {"init": given.get("init", entry.get("init"))}
        start = start if start["init"] else {"model": entry["model"]}
        flags = {**start, "data": entry["data"], "optimizer": optimizer, "lr": RATES.get(optimizer), **PINNED,
                 "submodels": submodels}
        flags |= entry.get("flags", {}) | entry.get(optimizer, {})
        flags |= {k: v for k, v in own.items() if k not in ("submodels", "name")}
        flags = overridden(flags, given)
        if flags["lr"] is None:
            raise Refused(f"{self.name}: no learning rate for {optimizer}; give --lr", WRONG_USE)
        files = {k: v for k, v in flags.items() if "{data}" in str(v)}
        flags |= {k: v.replace("{data}", str(self.data_dir)) for k, v in files.items()}
        flags["seed"] = number_of(flags, "seed", 1) + seed
        name = row_name(flags, own, submodels)
        same = [row for row in self.rows if row.name == name]
        if any(row.flags != flags for row in same):
            raise Refused(f"{FILE.name}: {self.name}: two trainings are named {name}; give one a name")
        if not same:
            self.rows.append(Row(name, flags, files, entry.get("prepare", "")))


def overridden(flags, given):
    """Returns flags with those given in their place; --steps replaces --epochs, and the other way round."""
    length = {"steps", "epochs"}
    return {name: value for name, value in flags.items() if name not in length or not length & given.keys()} | given
