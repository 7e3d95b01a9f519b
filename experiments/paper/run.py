"""bcd experiment: trains what an experiment of trainings.toml asks for, a process for each training.

  DIR/rows/NAME/   one training each, as bcd train leaves it
  DIR/KIND.h5      the table so far (study.py), rewritten whole after each row

An interrupted experiment goes on with the same command: a row that has finished or diverged is not trained
again, another one goes on from its checkpoint.  A row of the table is finished even where its directory is gone."""

import pathlib
import shlex
import sys

import compare
import estimate
import printing
import report
import store
import study
import trainings
from pool import Pool
from trained import finished_rows

LONG_CURVE_ROW = 20  # updates of a row of a long training's stored curve: 120 epochs of CIFAR-10 are 46,920


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
    --yes, all with --estimate.  Returns the exit status."""
    plan = trainings.Plan(name, options)
    folder = pathlib.Path(options.out)
    path = folder / f"{name}.h5"
    had = study.read_if_there(path)
    finished = finished_rows(plan, folder, {row["row"]: row for row in had}, path)
    rows = [row for row in plan.rows if row.name not in finished]
    for row in rows:
        row.check_files()
    # One that has begun already has printed its estimate.
    if options.estimate or plan.long and not (options.yes and (folder / "rows").exists()):
        print(f"{len(rows)} trainings" + (f", and {len(finished)} done before" if finished else ""), end="; ")
        tables = estimate.estimate(plan, rows, options.price)
        folder.mkdir(parents=True, exist_ok=True)
        tables.write(folder / f"{name}-{options.preset}-estimate.h5", settings(options))
    if options.estimate or plan.long and not options.yes:
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
