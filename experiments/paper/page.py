"""The page of `bcd report`: tables, figures, and all settings of the trainings."""
import io
import math
import os

import jinja2
import markupsafe
import matplotlib
import numpy as np

import figures
import figures_of_cases
import figures_of_tables
import printing
import registered
import schema
import store
import study
import tables
from curves import RULE

WIDTH = 125  # characters of a table: wider ones are continued below, so that none leaves the page
CASES_DRAWN = 16  # a report of hundreds opens on a phone, and is made in seconds


# ---- tables -------------------------------------------------------------------------------------

def blocks(table):
    """The places of its columns, in blocks that fit next to the labels; longer labels take two lines."""
    labels = min(30, printing.width_of([table.head, *table.labels]))
    columns = [printing.column_lines(table, place) for place in range(len(table.columns))]
    return printing.blocks(labels, list(map(printing.width_of, columns)), WIDTH)


def marked_columns(table):
    """Of each column, whether a cell of it has a source."""
    return [any(cell.source for cell in cells) for cells in zip(*table.rows)]


def finalized(value):
    """What is printed on the page, without control characters; a drawing as it is."""
    return value if not isinstance(value, str) or hasattr(value, "__html__") else figures.clean(value)


# ---- trainings ----------------------------------------------------------------------------------

def fields(training):
    """{name: text} of each column, setting and attribute of provenance, "" for an unknown one."""
    values = {**training.row, **{f"--{flag}": value for flag, value in training.settings.items()},
              **training.provenance, "specification": training.spec, "switches": reasons(training.switches)}
    return {name: shown(value, schema.UNITS.get(name, "")) for name, value in values.items()}


def shown(value, unit):
    if isinstance(value, float):
        value = f"{value:.6g}" if math.isfinite(value) else ""
    return f"{value} {unit}".strip() if value != "" else ""


def reasons(switches):
    """Why phases ended, how often, and the two losses that were compared each time."""
    texts = list(switches["reason"])
    counts = [f"{reason} {texts.count(reason)}" for reason in dict.fromkeys(texts)]
    rows = zip(*(switches[name] for name in ("step", "earlier_loss", "window_loss")))
    return ", ".join(counts + [f"after update {step} (loss {before:.4g}, then {then:.4g})"
                               for step, before, then in rows if np.isfinite(before + then)])


class ShownCase:
    """A network, data set and optimizer, with all methods it was trained by; of `methods` there are figures."""

    def __init__(self, case):
        self.name, self.every, self.methods = case.name, case.methods, case.methods[:len(figures.METHODS)]
        self.trainings = [t for method in case.methods for t in method.trainings]
        self.first = self.trainings[0]
        steps = sorted({int(t["steps"]) for t in self.trainings})
        self.steps = f"{steps[0]} to {steps[-1]}" if len(steps) > 1 else str(steps[0])
        every = [fields(t) for t in self.trainings]
        self.common = {name: value for name, value in every[0].items()
                       if all(other.get(name) == value for other in every)}
        labels = [f"{method.name}, seed {t['seed']}" for method in case.methods for t in method.trainings]
        self.own = [(label, {name: value for name, value in own.items() if value and name not in self.common})
                    for label, own in zip(labels, every)]


# ---- the page -----------------------------------------------------------------------------------

class Drawer:
    """Draws figures for the page, and as files of their own where a directory is given."""

    def __init__(self, directory):
        self.directory, self.count, self.names = directory, 0, []
        if directory:
            os.makedirs(directory, exist_ok=True)

    def __call__(self, name, figure):
        if figure is None:
            return ""
        self.count += 1
        if self.directory:
            path = os.path.join(self.directory, self.file_name(name))
            save(figure, path + ".svg")
            drawing = io.BytesIO()  # its writer has errors of its own where a disk is full
            figure.savefig(drawing, format="pdf", metadata={"CreationDate": None})
            store.write_bytes(path + ".pdf", drawing.getvalue())
        drawing = figures.svg(figure, f"f{self.count}")
        for number, colour in enumerate([figures.INK, figures.SOFT, figures.LINE, *figures.METHODS]):
            drawing = drawing.replace(colour, f"var(--d{number}, {colour})")
        return markupsafe.Markup(drawing)

    def file_name(self, name):
        """What is safe in a name of a file; with a number where it is not the first, as of equal tables of two files."""
        safe = "".join(c if c.isalnum() else "-" for c in name)
        self.names.append(safe)
        number = self.names.count(safe)
        return safe if number == 1 else f"{safe}-{number}"


def save(figure, path):
    """Saves a figure on white, as wide as a column of text.  It says what drew it, because another version
    places some letters elsewhere."""
    drawing = figures.svg(figure, "f")
    head, rest = drawing.split(">", 1)
    drawing = f'{head} width="700"><rect width="100%" height="100%" fill="#fff"/>{rest}'
    by = f"<!-- matplotlib {matplotlib.__version__} -->"
    store.write_text(path, f'<?xml version="1.0" encoding="utf-8"?>\n{by}\n{drawing}')


def verdict_first(table, shown, cases):
    """What the page begins with: of the first case shown, whose trainings have most seeds and are longest, the scores at
    the end of the full update and of each BCD, in sentences; none where they have too few evaluations."""
    if table is None or not shown:
        return []
    labels = {method.label for method in shown[0].every}
    registered_answers = {made.method.label: answer for made, _, _, answer in registered.judged(cases) if not made.reading}
    found = []
    for label in table.labels:
        if label not in labels or math.isnan(table.value(label, "end_difference")):
            continue
        seeds, epochs, end, full, difference, low, high = (table.text(label, name) for name in (
            "seeds", "epochs", "end", "end_full", "end_difference", "end_low", "end_high"))
        interval = f" (95 %: {low} to {high})" if low else ""
        verdict = table.text(label, "end_verdict")
        if not verdict and registered_answers.get(label):
            verdict = f"as good, by the test that was registered: {registered_answers[label]}"
        found.append(f"{label}, {epochs} epochs, {seeds} seed{'s' if seeds != '1' else ''}: {end}, the full update {full}; "
                     f"difference {difference}{interval}{': ' + verdict if verdict else ''}.")
    return found


@matplotlib.rc_context(figures.STYLE)
def make(out, directory, report):
    """Writes the page of a report.Report, and into `directory`, unless it is None, each figure."""
    draw = Drawer(directory)
    cases = [ShownCase(case) for case in sorted(report.cases.cases, key=lambda case: case.weight, reverse=True)]
    for number, case in enumerate(cases):
        made = figures_of_cases.of_case(case) if number < CASES_DRAWN else ()
        drawn = [(draw(f"{number} {case.name} {name}", figure), caption) for name, figure, caption in made]
        case.figures = [figure for figure in drawn if figure[0]]
    drawings = [{table.name: draw(f"{table.name} {table.title}"[:80], figures_of_tables.of_table(table))
                 for table in section} for section in report.sections]
    cycles = [draw("cycle", figures_of_tables.cycle(section)) for section in report.sections]
    templates = jinja2.FileSystemLoader(os.path.dirname(os.path.abspath(__file__)))
    template = jinja2.Environment(loader=templates, autoescape=True, trim_blocks=True, lstrip_blocks=True,
                                  finalize=finalized)
    ends = next((table for table in report.sections[0] if table.name == "converged"), None)
    store.write_text(out, template.get_template("page.html").render(
        sections=list(zip(report.sections, drawings, cycles)), cases=cases, tables=tables, blocks=blocks,
        marked_columns=marked_columns, drawn=CASES_DRAWN, convergence=RULE,
        unfinished=study.unfinished(report.trainings), first_words=verdict_first(ends, cases, report.cases),
        answers=[table for table in report.sections[0] if table.name == "answer"]))
