"""bcd experiment: trains what an experiment of trainings.toml asks for, a process for each training.

  DIR/rows/NAME/   one training each, as bcd train leaves it
  DIR/KIND.h5      the table so far (study.py), rewritten whole after each row

An interrupted experiment goes on with the same command: a row that has finished or diverged is not trained
again, another one goes on from its checkpoint.  A row of the table is finished even where its directory is gone."""

import ctypes
import os
import pathlib
import shlex
import signal
import subprocess
import sys
import time

import compare
import estimate
import printing
import program
import report
import store
import study
import trainings
from errors import Refused
from estimate import format_time
from schema import ADDED_FLAGS
from trainings import text_of

TEMPORARY_FAILURE = 75  # EX_TEMPFAIL of sysexits.h: time is up, the same command goes on
PR_SET_PDEATHSIG = 1
# Flags that may differ between the rows of a table and from a training that goes on.
LENGTH = ("steps", "epochs")
LOCAL = ("threads", "data-dir", "save-every", "keep-last", "quiet", "out")
UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}  # of sizes
LONG_CURVE_ROW = 20  # updates of a row of a long training's stored curve: 120 epochs of CIFAR-10 are 46,920


def time_is_up(options):
    return options.deadline is not None and time.monotonic() > options.deadline


# ---- what has been trained ------------------------------------------------------------------------


def read_number(text):
    """Returns a number, 0 of "", or the whole bytes that a size such as 1.5G stands for."""
    return float(text[:-1]) * UNITS[text[-1]] // 1 if text[-1:] in UNITS else float(text or 0)


def same_value(stored, asked):
    """Compares a stored setting with a flag; numbers are compared as numbers, and sizes such as 2M as bytes."""
    asked = "" if asked == "none" else text_of(asked)
    try:
        return float(stored or 0) == read_number(asked)
    except ValueError:
        return str(stored) == asked


def given_in(command):
    """The flags of bcd train that a training depends on, of the command that began it, --no-x as x; none of an older
    one, in which bcd experiment trained."""
    words = shlex.split(command)
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
            raise Refused(f"{place}: trained with --{name} {stored[name]}; for {text_of(asked)} choose another --out")
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


# ---- processes ------------------------------------------------------------------------------------


def _before_exec():
    """Even after kill -9 of this process no training is left behind; what bcd train does on SIGALRM
    waits until it has caught that signal."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})


class Pool:
    """Trains the rows of a plan, so many at a time."""

    def __init__(self, plan, options, finished, write_table):
        self.plan, self.options, self.write_table = plan, options, write_table
        self.dir = pathlib.Path(options.out)
        self.left = [row for row in plan.rows if row.name not in finished]
        self.finished, self.failed = set(finished), 0
        self.processes = {}  # by row name
        self.started = self.reported = time.monotonic()
        self.signal, self.signalled = 0, False
        self.at_start = {row.name: Run(self._directory(row)) for row in self.left}

    def _directory(self, row):
        return self.dir / "rows" / row.name

    def _remember(self, number, _frame):
        """The first signal lets the trainings save and end; the second one ends at once."""
        self.signal = number
        signal.signal(number, signal.SIG_DFL)

    def _command(self, row):
        """A run that exists already is resumed."""
        directory = self._directory(row)
        command = [program.find(), "train",
                   "--resume" if (directory / "run.h5").exists() else "--out", str(directory)]
        resumed = command[2] == "--resume"
        command += program.train_flags({name: value for name, value in row.flags.items()
                                        if not resumed or name in LENGTH + ("device", "precision")})
        # The number of threads is always given: a row that goes on would keep what it had.
        command += ["--threads", str(self.threads())]
        return command + ["--quiet" if self.options.quiet or self.options.jobs > 1 else "--brief"]

    def threads(self):
        flags = self.plan.asked.flags
        if flags.get("threads"):
            return trainings.number_of(flags, "threads", 0)
        return max(1, len(os.sched_getaffinity(0)) // self.options.jobs)

    def _start(self, row):
        self._print_row(row, "")
        environment = dict(os.environ)
        if self.options.jobs > 1 and "OMP_WAIT_POLICY" not in environment:
            # Waiting threads spin for about 0.1 ms before they sleep; by default they take the
            # processor from other trainings for milliseconds.  A training that runs alone is
            # faster with the default.
            environment.setdefault("GOMP_SPINCOUNT", "10000")
            environment.setdefault("KMP_BLOCKTIME", "5")
        # Its session is its own: Ctrl-C in a terminal comes to this process, which tells the others.
        self.processes[row.name] = row, subprocess.Popen(
            self._command(row), preexec_fn=_before_exec, start_new_session=True, env=environment)

    # ---- progress ----

    def seconds_left(self):
        """Returns how long the trainings go on at their speed so far, or None as long as that is not
        known.  A training's length is its share of the work: passes over the data, fewer operations
        for BCD.  Networks of which none has been trained count as the mean of the others."""
        done, left = 0.0, 0.0
        for row in self.plan.rows:
            if row.name in self.finished and row.name not in self.at_start:
                continue
            run, before = Run(self._directory(row)), self.at_start[row.name]
            work = relative_work(row)
            done += work * (run.done - before.done)
            left += work * (1 - run.done) if row.name not in self.finished else 0
        if done <= 0:
            return None
        return left / done * (time.monotonic() - self.started)

    def _print_row(self, row, state):
        if self.options.quiet:
            return
        left = self.seconds_left()
        text = f" (about {format_time(left)} left in all)" if left else ""
        print(f"row {self.plan.rows.index(row) + 1} of {len(self.plan.rows)}: {row.name}{state}{text}",
              flush=True)

    def _print_progress(self):
        """Says now and then how far the trainings are.  A single one says so itself."""
        every = 60 if sys.stdout.isatty() else 600
        if self.options.jobs == 1 or self.options.quiet or time.monotonic() - self.reported < every:
            return
        parts = [f"row {self.plan.rows.index(row) + 1}: {100 * Run(self._directory(row)).done:.0f} %"
                 for row, _ in self.processes.values()]
        left = self.seconds_left()
        print(", ".join(parts) + (f"; about {format_time(left)} left in all" if left else ""), flush=True)
        self.reported = time.monotonic()

    # ---- the loop ----

    def _stops(self):
        if not self.signal and time_is_up(self.options):
            self.signal = signal.SIGALRM
        return self.signal

    def _wait(self):
        """Waits until a training has ended; returns its row and exit status."""
        while True:
            if self._stops() and not self.signalled:
                for _, process in self.processes.values():
                    process.send_signal(signal.SIGALRM)
                self.signalled = True
            if not self._stops():
                self._print_progress()
            for row, process in self.processes.values():
                if process.poll() is not None:
                    del self.processes[row.name]
                    return row, process.returncode
            time.sleep(0.02)

    def _end(self):
        row, status = self._wait()
        run = Run(self._directory(row))
        if run.ended and (status == 0 or run.status == study.DIVERGED):
            self.finished.add(row.name)
            if self.options.jobs > 1 or run.status == study.DIVERGED:
                self._print_row(row, ": trained" if status == 0 else ": diverged")
        elif not self._stops() and not (self._directory(row) / "run.h5").exists():
            self._give_up(row, status)
        elif not self._stops():
            self.failed += 1
            self._print_row(row, ": killed" if status < 0 else ": failed")
        try:
            self.write_table()
        except Refused:
            self._stop_all()
            raise

    def _stop_all(self):
        """Ends all trainings, which save first."""
        self.signal = signal.SIGALRM
        while self.processes:
            self._wait()

    def _give_up(self, row, status):
        """Ends the experiment where a training could not begin, since the others cannot either.  It has said why, unless
        it was killed."""
        self._stop_all()
        self.write_table()
        if status < 0:
            raise Refused(f"{row.name} was killed before it began; the same command continues")
        raise SystemExit(status)

    def run(self):
        """Returns the exit status.  While trainings run, signals are theirs."""
        handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
        for number, handler in handlers.items():
            if handler != signal.SIG_IGN:
                signal.signal(number, self._remember)
        try:
            return self._run()
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)

    def _run(self):
        for row in self.plan.rows:
            if row.name in self.finished and row not in self.left:
                self._print_row(row, ": done before")
        for row in self.left:
            if len(self.processes) == self.options.jobs:
                self._end()
            # The first one runs even if time is up already, so that every call makes progress.
            if self._stops() and (self.processes or row is not self.left[0]):
                break
            self._start(row)
        while self.processes:
            self._end()
        asked_to_stop = self.signal not in (0, signal.SIGALRM)
        if (self._stops() and len(self.finished) < len(self.plan.rows)) or asked_to_stop:
            print("stopped; the same command continues")
            return 128 + self.signal if asked_to_stop else TEMPORARY_FAILURE
        if self.failed:
            raise Refused(f"{self.failed} of {len(self.plan.rows)} rows failed")
        return 0


def relative_work(row):
    """Returns the work of a training up to a factor: samples, fewer operations for BCD."""
    flags = row.flags
    length = (trainings.number_of(flags, "epochs", 0.0) * 5e4
              or trainings.number_of(flags, "steps", 0) * trainings.number_of(flags, "batch", 128))
    if flags.get("limit") and "epochs" in flags:
        length *= min(1, trainings.number_of(flags, "limit", 0) / 5e4)
    return length * (0.5 + 0.5 / row.submodels if row.submodels > 1 else 1)


# ---- an experiment --------------------------------------------------------------------------------


def default_out(preset):
    """The directory of the results of a preset, unless --out is given."""
    return "results" if preset == "laptop" else f"results-{preset}"


def settings(options):
    """The flags that were given, for /settings."""
    own = {"preset": options.preset, "models": " ".join(options.models or []),
           "optimizers": ",".join(options.optimizers or []), "seeds": options.seeds, "multiplier": options.multiplier,
           "price": options.price, "out": options.out}
    chosen = {"preset": "laptop", "out": default_out(options.preset)}
    return {name: str(value) for name, value in (own | options.flags).items()
            if value not in ("", None, chosen.get(name))}


def train(name, options):
    """Trains the rows of an experiment of trainings.toml, and writes its table; long ones are only estimated without
    --yes.  Returns the exit status."""
    plan = trainings.Plan(name, options)
    folder = pathlib.Path(options.out)
    path = folder / f"{name}.h5"
    had = study.read_if_there(path)
    finished = finished_rows(plan, folder, {row["row"]: row for row in had}, path)
    rows = [row for row in plan.rows if row.name not in finished]
    for row in rows:
        row.check_files()
    # One that has begun already has printed its estimate.
    if plan.long and not (options.yes and (folder / "rows").exists()):
        print(f"{len(rows)} trainings" + (f", and {len(finished)} done before" if finished else ""), end="; ")
        tables = estimate.estimate(plan, rows, options.price)
        folder.mkdir(parents=True, exist_ok=True)
        tables.write(folder / f"{name}-{options.preset}-estimate.h5", settings(options))
    if plan.long and not options.yes:
        return 0
    if plan.replaced and not options.quiet:
        print("; ".join(f"{data} is missing, {other} replaces it" for data, other in plan.replaced)
              + " (data/fetch downloads the data sets)")
    folder.mkdir(parents=True, exist_ok=True)
    if finished:  # a session that ended in between may not have written all of them
        write_table(plan, folder, path)
    status = Pool(plan, options, finished, lambda: write_table(plan, folder, path)).run()
    if status == 0 and not options.quiet:
        print()
        printing.print_tables(sys.stdout, report.tables_of([path]))
        print(f"table: {path}; as a page: bcd report {shlex.quote(str(path))}")
    return status


def write_table(plan, folder, path):
    """Rewrites the table: rows of the plan first, in its order, and all others as they are in the table.  Two experiments
    that write the same one wait for each other."""
    with store.changing(path):
        rows = rows_of(plan, folder, path)
        compare.converge(rows)
        study.write(path, rows)


def rows_of(plan, folder, path):
    had = {row["row"]: row for row in study.read_if_there(path)}
    rows = []
    for row in plan.rows:
        file = folder / "rows" / row.name / "run.h5"
        training = study.read_run(file) if file.exists() else None
        if training and training["status"] in study.ENDED:
            had.pop(row.name, None)
            training.row["experiment"] = plan.name
            rows.append(training.thinned(LONG_CURVE_ROW) if plan.hours else training)
        elif row.name in had:
            rows.append(had.pop(row.name))
    return rows + list(had.values())
