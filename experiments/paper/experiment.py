"""bcd experiment NAME: asks bcd the questions of the paper, and writes each answer to DIR/NAME.h5."""

import argparse
import dataclasses
import pathlib
import shlex
import sys
import time
from collections.abc import Callable

import numpy as np

import compare
import cost
import errors
import figure03
import finetune
import memory
import pool
import printing
import program
import run
import savings
import study
import tables
import timing
import trainings
from errors import WRONG_USE, Refused

ABOUT = """\
Tables of the paper
{tables}

Beyond the paper
{beyond}

Measures, simulates or computes the tables of the paper, each number next to the published
one and marked with its source, and writes them to DIR/NAME.h5, which bcd report shows.

--preset says how much is trained.  validity, for example, trains each model with each
optimizer fully and by BCD, and tabulates steps to converge, accuracy or perplexity,
and memory.
  smoke   seconds: tiny networks, to see that everything works
  laptop  `all` takes about an hour on two cores: a small image and a small language model,
          three seeds; if CIFAR-10 or WikiText-2 is missing, generated images or the
          project's sources replace it
  gpu     the published networks and rates on CIFAR and WikiText-2, shorter; three seeds
  paper   the published trainings, at their published length
gpu, paper and the experiments marked with hours first say how long they would take here,
and what they would cost on rented GPUs, and start only with --yes.  DIR is results
(results-PRESET for another preset than laptop), unless --out is given.  DIR/NAME.h5 is
written after each training.  After an interruption the same command continues; with
another --submodels it adds rows.  With --minutes 10 it stops after ten minutes with exit
status 75; start it again until the status is 0.

  bcd experiment all --preset laptop && bcd report results/*.h5
  bcd experiment all --preset smoke --out runs/smoke
  bcd experiment validity --models "resnet8 resnet14" --optimizers sgd,adam --seeds 5
  while bcd experiment all --preset gpu --yes --minutes 10; [ $? = 75 ]; do :; done"""
REST = """\
All other flags are those of bcd train (see bcd train --help) and override the preset's, except
those for one training: --like, --resume, --log-samples and --config."""


# ---- the command line -----------------------------------------------------------------------------


def whole(lowest, highest):
    def read(text):
        if not text.isdigit() or not lowest <= int(text) <= highest:
            raise argparse.ArgumentTypeError(f"{text}: expected a whole number from {lowest} to {highest}")
        return int(text)
    return read


def minutes(text):
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.001 <= value <= 1e5:
        raise argparse.ArgumentTypeError(f"{text}: expected a number from 0.001 to 100000")
    return value


def names_of(text, separators, known=None):
    """Reads a list; an item given twice would be trained twice."""
    names = text.replace(separators, " ").split()
    for name in names:
        if known and name not in known:
            raise argparse.ArgumentTypeError(f"{name}: expected {', '.join(known)}")
        if names.count(name) > 1:
            raise argparse.ArgumentTypeError(f"{name} is given twice")
    if not names:
        raise argparse.ArgumentTypeError("the list is empty")
    return names


def optimizers(text):
    return names_of(text, ",", program.ask_once("info")["optimizers"].labels)


def read_flags(words):
    """Reads flags of bcd train, which checks them itself: --name value, or --name alone."""
    flags, words = {}, list(words)
    while words:
        word, equals, value = words.pop(0).partition("=")
        name = word[2:]
        if not word.startswith("--") or not name:
            raise Refused(f"{word}: expected a flag; see bcd experiment --help", WRONG_USE)
        if equals:
            words.insert(0, value)
        turned_off = name.startswith("no-")
        name = name.removeprefix("no-")
        if name not in program.flags():
            raise Refused(f"bcd train has no flag {word}; see bcd train --help", WRONG_USE)
        if name in flags:
            raise Refused(f"{word} is given twice", WRONG_USE)
        if program.flags()[name] == ("text", "local"):  # a file or a directory of one run; pool.py gives switches itself
            raise Refused(f"{word} is for one training, of bcd train; an experiment has several, whose settings are given by "
                          "flags", WRONG_USE)
        flags[name] = False if turned_off else words.pop(0) if words and not words[0].startswith("--") else True
    return flags


def parser_of_flags():
    parser = errors.Parser(prog="bcd experiment", usage="bcd experiment NAME [FLAGS]", epilog=REST, allow_abbrev=False,
                           add_help=False, formatter_class=argparse.RawDescriptionHelpFormatter, description=ABOUT.format(
                               tables=lines(listed(False) | {"all": "all of these in turn"}), beyond=lines(listed(True))))
    parser.add_argument("name", help=argparse.SUPPRESS)
    flags = parser.add_argument_group("Flags")
    flags.add_argument("--multiplier", metavar="X|FILE,...", default="",
                       help="another B-F multiplier (steps of BCD over steps of the full update): a number, or the "
                       "validity.h5 or run.h5 files that measured it [only the published ones]")
    flags.add_argument("--price", metavar="GPU=DOLLARS,...", default="", help="price of a GPU per hour, as in "
                       "rtx4090=0.31,a100=1.12 [those of section 4.4.1]")
    flags.add_argument("--preset", metavar="|".join(trainings.PRESETS), choices=trainings.PRESETS, default="laptop",
                       help="how much to train, see above [laptop]")
    flags.add_argument("--models", "--model", metavar="LIST", type=lambda text: names_of(text, " "),
                       help="models separated by spaces [the preset's]")
    flags.add_argument("--optimizers", "--optimizer", metavar="LIST", type=optimizers,
                       help="optimizers separated by commas, see bcd info [the preset's]")
    flags.add_argument("--seeds", metavar="N", type=whole(1, 100),
                       help="repeat each training with N seeds, starting at --seed [3; smoke and paper 1]")
    flags.add_argument("--jobs", metavar="N", type=whole(1, 256), default=1,
                       help="run N trainings at the same time, which share the cores: faster if one training cannot use all "
                       "of them, but its times are then those of a busy machine [1]")
    flags.add_argument("--minutes", metavar="N", type=minutes,
                       help="stop after N minutes with exit status 75; the same command continues [no end]")
    start = flags.add_mutually_exclusive_group()
    start.add_argument("--estimate", action="store_true", help="only name the trainings, and say how long they will take")
    start.add_argument("--yes", action="store_true", help="start trainings that take hours")
    flags.add_argument("--out", metavar="DIR", type=errors.name, help="directory of the tables and trainings [see above]")
    flags.add_argument("--quiet", action="store_true", help="print errors only")
    return parser


def parse(words):
    """The options of a command line."""
    options, rest = parser_of_flags().parse_known_args(words)
    options.flags = read_flags(rest)
    options.deadline = time.monotonic() + 60 * options.minutes if options.minutes else None
    options.out = options.out or run.default_out(options.preset)
    if options.name == "all" and options.estimate:
        raise Refused("experiment all: --estimate is of one experiment", WRONG_USE)
    return options


# ---- experiments ----------------------------------------------------------------------------------


def make(name, options):
    """Makes the tables of an experiment without long trainings, writes them to DIR/NAME.h5, and prints them."""
    started = time.time()
    found, measured = OTHERS[name].make(options)  # and the provenance of what was measured
    asked = program.provenance()
    known = asked | measured | {
        "command": asked["command"], "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started)),
        "wall": time.time() - started, "seed": np.uint64(1)}
    folder = pathlib.Path(options.out)
    folder.mkdir(parents=True, exist_ok=True)
    path, made = folder / f"{name}.h5", tables.Tables(found, known)
    made.write(path, run.settings(options))
    if not options.quiet:
        printing.print_tables(sys.stdout, made)
        print(f"tables: {path}; as a page: bcd report {shlex.quote(str(path))}")
    return 0


def is_made(name, options):
    """Whether tables that no training makes were made by an earlier call of the same command, which --minutes ended."""
    path = pathlib.Path(options.out) / f"{name}.h5"
    if name not in OTHERS or not options.deadline or not path.exists():
        return False
    had, now = tables.read(path).provenance, program.provenance()
    return all(had.get(key) == now[key] for key in ("command", "commit"))


@dataclasses.dataclass(frozen=True)
class Other:
    """An experiment without long trainings: how its tables are made, and the settings and flags of bcd train that it
    reads."""
    make: Callable
    title: str
    reads: tuple = ()
    beyond: bool = False


OTHERS = {
    "memory": Other(memory.make, "bytes: closed form, planned and measured (Tables 4, 8 to 11, Figure 5)",
                    ("models", "device", "precision", "threads", "recompute")),
    "cost": Other(cost.make, "dollars and GPU hours saved, by published times (Tables 1, 5 to 7, 12 to 14)",
                  ("multiplier", "price")),
    "timing": Other(timing.make, "steps, simulated and measured (Tables 3, 4, 15, 16, Figures 3, 4 and 6)",
                    ("models", "device", "precision", "multiplier")),
    "inference": Other(figure03.inference, "pre-inference by all ranks, simulated and measured (Figure 3)"),
    "savings": Other(savings.make, "peaks of memory by BCD and by cheaper means", (), beyond=True),
}
CHOICES = "models", "optimizers", "seeds", "multiplier", "price"  # settings that no experiment has to read


def check_read(name, options):
    """Refuses what the experiment would not read."""
    reads = OTHERS[name].reads if name in OTHERS else ("models", "optimizers", "seeds", "price", *options.flags)
    given = [choice for choice in CHOICES if getattr(options, choice)] + list(options.flags)
    unread = [flag for flag in given if flag not in reads]
    if name in OTHERS and options.estimate:
        raise Refused(f"experiment {name}: it has no trainings that --estimate could name", WRONG_USE)
    if unread:
        raise Refused(f"experiment {name}: --{unread[0]} changes nothing of it", WRONG_USE)


def listed(beyond):
    """Returns names and titles of the experiments of the paper, or of those beyond it."""
    known = {name: table["title"] for name, table in trainings.experiments().items()
             if trainings.is_beyond_the_paper(table) == beyond and "part-of" not in table}
    return known | {name: other.title for name, other in OTHERS.items() if other.beyond == beyond}


def lines(titles):
    return "\n".join(f"  {name:<15} {title}" for name, title in titles.items())


def measured_multiplier(options):
    """The file of `validity`, if that is there and measured a B-F multiplier, which goes into the costs."""
    path = str(pathlib.Path(options.out) / "validity.h5")
    trained = study.read_if_there(path)
    try:
        compare.measured_multiplier(trained, path)
    except Refused:
        return ""
    return path


def main(words):
    if not words or "--help" in words or "-h" in words:
        parser_of_flags().print_help()
        return 0
    options = parse(words)
    known = listed(False) | listed(True)
    if options.name != "all" and options.name not in known:
        raise Refused(f"experiment {options.name}: no such experiment; there are {', '.join(known)} and all",
                      WRONG_USE)
    names = list(listed(False)) if options.name == "all" else [options.name]
    if options.name != "all":
        check_read(options.name, options)
    begun = False
    for name in names:
        if options.name == "all" and is_made(name, options):
            continue
        # The first experiment runs even if time is up already, so that every call makes progress.
        if begun and pool.time_is_up(options):
            return pool.TEMPORARY_FAILURE
        begun = True
        if options.name == "all" and not options.quiet:
            print(f"== {name}")
        if options.name == "all" and name == "cost" and not options.multiplier:
            options.multiplier = measured_multiplier(options)
        if name in OTHERS:
            status = make(name, options)
        else:
            status = finetune.run(options) if name == "finetune" else run.train(name, options)
        if status:
            return status
    if options.name == "all" and not options.quiet:
        print(f"all tables are in {options.out}; see them on one page with: bcd report {shlex.quote(options.out)}/*.h5")
    return 0
