"""How the experiments without long trainings end: their tables go to DIR/NAME.h5, and to the terminal.

options, of all modules here: what `bcd experiment` was given, as experiment.py parses it.  out: the directory; preset;
models: a list, or None; multiplier and price: texts; quiet; flags: those of bcd train by name."""
import os
import pathlib
import shlex
import sys
import time

import numpy as np

import program
from tables import Tables


def flag(options, name, default=None):
    """A flag of bcd train, as it was given."""
    return options.flags.get(name, default)


def settings(options):
    """The flags that were given, for /settings."""
    own = {"preset": options.preset, "models": " ".join(options.models or []),
           "optimizers": ",".join(options.optimizers or []), "seeds": options.seeds, "multiplier": options.multiplier,
           "price": options.price, "out": options.out}
    chosen = {"preset": "laptop", "out": "results" if options.preset == "laptop" else f"results-{options.preset}"}
    return {name: str(value) for name, value in (own | options.flags).items() if value not in ("", None, chosen.get(name))}


def finish(options, name, found, started, measured=None):
    """Writes and prints the tables; started: time.time() at the beginning; measured: the provenance of what was
    measured, where the device is not the processor that the program was asked on."""
    known = program.provenance() | dict(measured or {})
    known["command"] = program.provenance()["command"]
    known["started"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started))
    known["wall"] = time.time() - started
    known["seed"] = np.uint64(1)
    folder = pathlib.Path(options.out)
    folder.mkdir(parents=True, exist_ok=True)
    path = os.path.join(options.out, f"{name}.h5")
    made = Tables(found, known)
    made.write(path, settings(options))
    if not options.quiet:
        made.print(sys.stdout)
        print(f"tables: {path}; as a page: bcd report {shlex.quote(path)}")
    return 0
