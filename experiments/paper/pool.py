"""Trains rows, so many at a time, a process of bcd train for each; passes signals on, and says how far they are."""
import ctypes
import os
import pathlib
import signal
import subprocess
import sys
import time

import program
import study
import trainings
from errors import Refused
from estimate import format_time
from trained import LENGTH, Run

TEMPORARY_FAILURE = 75  # EX_TEMPFAIL of sysexits.h: time is up, the same command goes on
PR_SET_PDEATHSIG = 1


def time_is_up(options):
    return options.deadline is not None and time.monotonic() > options.deadline


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
        known.  A training's length is its share of the work."""
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
    """Returns the work of a training up to a factor: samples, and fewer operations for BCD, as of submodels of equal work.
    All networks count alike: what one has of operations depends on the data's vocabulary, too."""
    flags = row.flags
    length = (trainings.number_of(flags, "epochs", 0.0) * 5e4
              or trainings.number_of(flags, "steps", 0) * trainings.number_of(flags, "batch", 128))
    if flags.get("limit") and "epochs" in flags:
        length *= min(1, trainings.number_of(flags, "limit", 0) / 5e4)
    if "epochs" in flags:  # of the part of the data that a submodel uses
        length *= trainings.number_of(flags, "fraction", 1.0)
    return length * (0.5 + 0.5 / row.submodels if row.submodels > 1 else 1)
