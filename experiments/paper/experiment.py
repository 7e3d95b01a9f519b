"""bcd experiment NAME: asks bcd the questions of the paper, and writes each answer to DIR/NAME.h5."""

import argparse
import os
import pathlib

import errors
import run
import trainings
from errors import Refused


def read_flags(words):
    """Reads flags of bcd train, which checks them itself: --name value, or --name alone."""
    flags, words = {}, list(words)
    while words:
        name = words.pop(0)
        if not name.startswith("--") or len(name) < 3:
            raise Refused(f"{name}: expected a flag; see bcd experiment --help")
        flags[name[2:]] = words.pop(0) if words and not words[0].startswith("--") else True
    return flags


def read_config(path):
    """Reads flags from a file as bcd train --config does: one on a line, as in lr 0.1."""
    flags = {}
    for line in pathlib.Path(path).read_text(encoding="utf-8-sig").splitlines():
        words = line.split("#")[0].split(None, 1)
        if words:
            flags[words[0].removeprefix("--")] = words[1].strip() if len(words) > 1 else True
    return flags


def parse(arguments):
    parser = argparse.ArgumentParser(prog="bcd experiment", allow_abbrev=False)
    parser.add_argument("name")
    parser.add_argument("--preset", choices=trainings.PRESETS, default="laptop")
    parser.add_argument("--models", type=str.split)
    parser.add_argument("--optimizers", type=lambda text: text.replace(",", " ").split())
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--yes", action="store_true")
    parser.add_argument("--quiet", action="store_true")
    parser.add_argument("--out")
    options, rest = parser.parse_known_args(arguments)
    options.flags = read_flags(rest)
    if "config" in options.flags:
        options.flags = read_config(options.flags.pop("config")) | options.flags
    options.out = options.out or ("results" if options.preset == "laptop" else f"results-{options.preset}")
    options.program = os.environ.get("BCD_PROGRAM", "bcd")
    return options


def main(arguments):
    options = parse(arguments)
    plan = trainings.Plan(options.name, options)
    table_path = pathlib.Path(options.out) / f"{options.name}.h5"
    table = run.table_settings(table_path)
    finished = {row.name for row in plan.rows
                if run.is_finished(row, pathlib.Path(options.out) / "rows" / row.name, table, table_path)}
    if plan.long and not options.yes:
        raise Refused("long")
    return run.Pool(plan, options, finished, lambda: None).run()


if __name__ == "__main__":
    errors.run(main)
