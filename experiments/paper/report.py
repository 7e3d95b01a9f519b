"""bcd report FILE...: prints the tables of results, and writes a page with figures."""
import argparse
import os
import sys

import h5py

import answer
import beyond
import compare
import equal_memory
import errors
import printing
import registered
import scaling
import store
import study
import tables
import tables02_09_11
from cases import Cases
from errors import Refused
from tables import Tables

USAGE = "bcd report FILE... [FLAGS]"
ABOUT = """\
FILE is what an experiment wrote, or a run's directory.  Prints tables and writes one HTML
page with figures.  For your own runs it first says what BCD saves and costs compared with
the full update.

  bcd report runs/full runs/bcd --out both.html
  bcd report results/validity.h5 --figures figures      also each figure as SVG and PDF"""

PAGE_BEGINS = b"<!doctype html"  # in small letters


# ---- tables of trainings ------------------------------------------------------------------------

def make(trainings, paper=True, heaviest_first=False):
    """Computes what is known of trainings, and returns all tables that can be made of them, with those of the paper only
    if `paper`; and their Cases."""
    compare.converge(trainings)
    cases = Cases(trainings, heaviest_first)
    if not trainings:
        return [], cases
    made = [answer.table(cases), registered.answers(cases), registered.best_rates(cases), registered.plateaus(cases),
            scaling.lengths(cases), scaling.widths(cases), equal_memory.table(cases)]
    if paper:
        made += [table.make(cases) for table in tables02_09_11.COMPARISONS]
        made.append(tables02_09_11.multipliers(cases))
    made += [table.make(cases) for table in (beyond.CONVERGED, beyond.SAME_LOSS, beyond.PER_UPDATE, beyond.FINETUNE)]
    made.append(beyond.trainings(cases))
    return [table for table in made if table.rows], cases


class Report:
    """Files as read: `trainings`, their `cases`, and `sections`: the Tables made of these, then those of each file of
    tables."""

    def __init__(self, paths, paper=False):
        """paper: make the tables of the paper of runs, too."""
        formats = {path: store.format_of(path) for path in paths}
        of_tables = [path for path in paths if formats[path] == tables.FORMAT]
        of_trainings = [path for path in paths if path not in of_tables]
        self.trainings = study.read(of_trainings)
        only_runs = not paper and all(formats[path] == study.RUN_FORMAT for path in of_trainings)
        found, self.cases = make(self.trainings, not only_runs, len(of_trainings) > 1)
        self.sections = [Tables(found), *(tables.read(path) for path in of_tables)]
        if not self.trainings and not of_tables:
            raise Refused(f"report: {paths[0]}: no training has finished yet")

    def __iter__(self):
        return (table for section in self.sections for table in section)


def tables_of(paths):
    """The Tables of files: those made of all their trainings, with the paper's, then those of files of tables."""
    return Tables(Report(paths, paper=True))


# ---- the command --------------------------------------------------------------------------------

def parse(arguments):
    parser = errors.Parser(prog="bcd report", usage=USAGE, description=ABOUT, allow_abbrev=False, add_help=False,
                           formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="FILE", type=errors.name, help=argparse.SUPPRESS)
    flags = parser.add_argument_group("Flags")
    flags.add_argument("--help", action="help", help=argparse.SUPPRESS)
    flags.add_argument("--out", metavar="FILE", type=errors.name, help="HTML page to write [report.html next to the first "
                       "FILE]")
    flags.add_argument("--table", metavar="NAME", type=errors.name, help="print only this table, and write no page [all]")
    flags.add_argument("--study", metavar="FILE", type=errors.name, help="only write the trainings of all files into one "
                       "study, and compute again what follows from the curves [none]")
    flags.add_argument("--markdown", action="store_true", help="print Markdown, and write no page")
    flags.add_argument("--figures", metavar="DIR", type=errors.name, help="also write each figure of the page into DIR, as "
                       "SVG and PDF")
    parsed = parser.parse_args(arguments)
    parsed.files = [os.path.join(file, "run.h5") if os.path.isdir(file) else file for file in parsed.files]
    if parsed.study and (parsed.table or parsed.markdown or parsed.out or parsed.figures):
        parser.error("--study writes a file and prints nothing; ask for the rest apart")
    if (parsed.table or parsed.markdown) and (parsed.out or parsed.figures):
        parser.error("--table and --markdown make no page; ask for --out and --figures apart")
    if parsed.out and any(os.path.exists(file) and os.path.exists(parsed.out) and os.path.samefile(parsed.out, file)
                          for file in parsed.files):
        parser.error(f"--out {parsed.out}: it is one of the inputs")
    if not (parsed.study or parsed.table or parsed.markdown):
        parsed.out = parsed.out or os.path.join(os.path.dirname(parsed.files[0]), "report.html")
        check_replaced("--out", parsed.out, is_page)
    if parsed.study:
        check_replaced("--study", parsed.study, lambda path: h5py.is_hdf5(path) and store.format_of(path) == study.FORMAT)
    return parsed


def is_page(path):
    with open(path, "rb") as file:
        return file.read(len(PAGE_BEGINS)).lower() == PAGE_BEGINS


def check_replaced(flag, path, is_ours):
    """Refuses to replace a file that has something else, such as weights."""
    if os.path.isfile(path) and os.path.getsize(path) and not is_ours(path):
        raise Refused(f"{flag} {path}: it is there, and has something else; give another name", errors.WRONG_USE)


def main(arguments):
    asked = parse(arguments)
    report = Report(asked.files, paper=bool(asked.table))
    if study.unfinished(report.trainings):
        print(f"bcd: {study.unfinished(report.trainings)}", file=sys.stderr)
    if asked.study:
        if not report.trainings:
            raise Refused(f"report: --study {asked.study}: no trainings in these files")
        study.write(asked.study, report.trainings)
        return
    print_tables(report, asked)
    if not asked.table and not asked.markdown:
        import page  # matplotlib takes as long as all the rest
        page.make(asked.out, asked.figures, report)
        print(f"page: {store.text(os.fsencode(asked.out))}")


def print_tables(report, asked):
    chosen = [table for table in report if asked.table in (None, table.name)]
    if not chosen:
        raise Refused(f"report: --table {asked.table}: not in these files; they have "
                      + " ".join(table.name for table in report))
    printing.print_tables(sys.stdout, chosen, asked.markdown)
