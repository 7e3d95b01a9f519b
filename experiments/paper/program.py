"""The program `bcd`, which is asked by its command line and answers in HDF5."""
import contextlib
import functools
import os
import pathlib
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile

import h5py

import tables
from errors import WRONG_USE, Refused


def find():
    """The path of the program: $BCD_PROGRAM, or next to the command that runs, or in the source tree."""
    installed = pathlib.Path(sys.argv[0]).absolute().parent / "bcd"
    built = pathlib.Path(__file__).resolve().parents[2] / "build" / "bcd"
    for path in [os.environ.get("BCD_PROGRAM"), installed, built]:
        if path and os.access(path, os.X_OK) and os.path.isfile(path):
            return str(path)
    raise Refused(f"the program bcd is neither in {installed.parent} nor in {built.parent}; type: make")


def ask(*arguments):
    """Runs `bcd ARGUMENTS --out FILE.h5`, and returns the Tables of that file."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "answer.h5")
        run(*arguments, "--out", path)
        return tables.read(path)


@functools.cache
def ask_once(*arguments):
    """The same, asked once by this process: of what is computed, not measured."""
    return ask(*arguments)


def has_processes():
    """Returns true where the program can be started as ranks of MPI."""
    return bool(shutil.which("mpirun")) and (pathlib.Path(find()).parent / "libbcd-mpi.so").exists()


# Open MPI refuses more ranks than processors, and root, unless it is told; another MPI ignores this.  The names with
# PRTE are those of Open MPI 5.
RANKS = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
         "OMPI_MCA_hwloc_base_binding_policy": "none", "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
         "PRTE_MCA_hwloc_default_binding_policy": "none"}


def run(*arguments, processes=0):
    """Runs `bcd ARGUMENTS`, without its output; as so many ranks of MPI, if any."""
    command = [*(["mpirun", "-n", str(processes)] if processes else []), find(), *arguments]
    end = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | RANKS)
    if end.returncode:
        complaints = end.stderr.strip().split("\n")
        raise Refused(complaints[-1].removeprefix("bcd: ") or f"{shlex.join(command)}: failed",
                      WRONG_USE if end.returncode == WRONG_USE else 1)


def known(name):
    """A table of what the program knows, as bcd info prints it without a model."""
    try:
        return ask_once("info")[name]
    except KeyError:
        raise Refused(f"{find()}: it is older than these scripts; type: make") from None


@functools.cache
def flags():
    """The kind and the role of each flag of bcd train by its name; both are as in options.h."""
    table = known("flags")
    return {name: (kind.value, role.value) for name, kind, role in
            zip(table.labels, table.column("kind"), table.column("role"))}


@functools.cache
def data_sets():
    """What each of the data sets holds, "images" or "tokens", and the file without which it is missing, or ""."""
    table = known("data")
    return {name: (holds.value, file.value) for name, holds, file in
            zip(table.labels, table.column("holds"), table.column("file"))}


def reads_tokens(model):
    """Whether a model reads tokens, and no images."""
    return "embedding" in ask_once("info", "--model", model)["blocks"].column("ops")[0].value


@contextlib.contextmanager
def trained(processes=0, **flags):
    """Trains by these flags of bcd train in a directory of its own; yields run.h5, an h5py.File, and removes all.  What
    is not asked for, an evaluation, is of one sample."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "run")
        flags = {"eval-samples": 1} | flags | {"quiet": True, "out": out}
        run("train", *train_flags(flags), processes=processes)
        # Not store.reading(), which says of errors that the file is damaged: of this file they are the caller's.
        with h5py.File(os.path.join(out, "run.h5"), "r", locking=False) as file:
            yield file


def flags_of(**flags):
    """Words of a command line: flags_of(batch=8, per_node=2, cache=True) is --batch 8 --per-node 2 --cache; those that
    are None or False are left out."""
    words = []
    for name, value in flags.items():
        if value is not None and value is not False:
            words.append("--" + name.replace("_", "-"))
            words += [] if value is True else [str(value)]
    return words


def train_flags(flags):
    """Words of a command line of bcd train, whose flags without a value may be on by default: those that are False are
    --no-name."""
    return flags_of(**{f"no-{name}" if value is False else name: value is False or value for name, value in flags.items()})


def way(submodels):
    """As tables name a full update, or BCD."""
    return f"BCD-1/{submodels}" if submodels > 1 else "full"


def memory(optimizer, submodels, **flags):
    """What `bcd info` plans, in bytes by column of its table `memory`: of the largest submodel."""
    table = ask_once("info", *flags_of(optimizer=optimizer, submodels=submodels, **flags))["memory"]
    label = f"{optimizer} {way(submodels)}"
    return {column.name: table.value(label, column.name) * tables.MIB for column in table.columns}


@functools.cache
def operations(spec, submodels, partition="", always_active="", correct_above=0.0):
    """Floating point operations (two for a multiply-add) of a step on one sample, of each submodel, counted from
    shapes.  Refuses settings that do not make these submodels, and a model that the program does not know."""
    answer = ask("info", *flags_of(model=spec, submodels=submodels, partition=partition or None,
                                  always_active=always_active or None, correct_above=correct_above or None))
    return [cell.value for cell in answer["submodels"].column("operations")]


def operations_share(spec, submodels, *settings):
    """The operations of a step, on the mean over the submodels, over those of the full update."""
    return statistics.fmean(operations(spec, submodels, *settings)) / operations(spec, 1)[0]


def provenance(command=None):
    """The attributes of /provenance for what this process makes: of the program that it asks; `command`: the
    command line as typed, by default that of this process."""
    known = dict(ask("info").provenance)
    name = pathlib.Path(sys.argv[0]).stem.removeprefix("bcd-")  # bcd-experiment runs experiment.py
    known["command"] = command or shlex.join(["bcd", name, *sys.argv[1:]])
    return known
