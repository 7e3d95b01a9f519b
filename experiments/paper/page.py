"""The page of `bcd report`: tables, figures, and all settings of the trainings."""
import math
import os

import jinja2
import matplotlib
import numpy as np

import figures
import store
import tables
from curves import RULE
from study import UNITS

WIDTH = 125  # characters of a table: wider ones are continued below, so that none leaves the page
CASES_DRAWN = 16  # a report of hundreds opens on a phone, and is made in seconds


# ---- tables -------------------------------------------------------------------------------------

class ShownColumn:
    """A column: values for figures (None in one of texts), and texts[row], the cells as printed."""

    def __init__(self, column, cells):
        self.name, self.head, self.kind, self.unit = column.name, column.head, column.kind, column.below
        self.sources = [cell.source for cell in cells]
        self.values = None if column.kind == tables.TEXT else np.array([cell.value for cell in cells], float)
        self.texts = [clean(tables.printed(column, cell)) for cell in cells]
        self.marked = any(self.sources)

    @property
    def width(self):
        return max(map(len, [self.head, self.unit, *self.texts])) + 2 * self.marked


class ShownTable:
    """A table; `blocks`: its columns, in blocks that fit next to the labels."""

    def __init__(self, table):
        self.name, self.title, self.head, self.figure, self.axis = (
            clean(text) for text in (table.name, table.title, table.head, table.figure, table.axis))
        self.notes, self.labels = [clean(note) for note in table.notes], [clean(label) for label in table.labels]
        self.columns = [ShownColumn(column, table.column(column.name)) for column in table.columns]
        self.legend = tables.legend(table)
        self.label_width = min(30, max(map(len, [self.head, *self.labels])))  # longer ones take two lines
        self.blocks = [[self.columns[place] for place in block] for block in
                       tables.blocks(self.label_width, [column.width for column in self.columns], WIDTH)]

    def column(self, name):
        return next((column for column in self.columns if column.name == name), None)

    def draw(self):
        if self.figure == "timeline":
            return figures.timeline(self)
        return figures.table(self) if self.figure else None


def clean(text):
    """A text without control characters."""
    return "".join(c if c >= " " or c == "\n" else "\ufffd" for c in text)


# ---- trainings ----------------------------------------------------------------------------------

def fields(training):
    """{name: text} of each column, setting and attribute of provenance, "" for an unknown one."""
    values = {**training.row, **{f"--{flag}": value for flag, value in training.settings.items()},
              **training.provenance, "specification": training.spec, "switches": reasons(training.switches)}
    return {clean(name): shown(value, UNITS.get(name, "")) for name, value in values.items()}


def shown(value, unit):
    if isinstance(value, float):
        value = f"{value:.6g}" if math.isfinite(value) else ""
    return clean(f"{value} {unit}".strip()) if value != "" else ""


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
        self.name, self.every, self.methods = clean(case.name), case.methods, case.methods[:len(figures.METHODS)]
        self.trainings = [t for method in case.methods for t in method.trainings]
        self.first = self.trainings[0]
        steps = sorted({int(t["steps"]) for t in self.trainings})
        self.steps = f"{steps[0]} to {steps[-1]}" if len(steps) > 1 else str(steps[0])
        every = [fields(t) for t in self.trainings]
        self.common = {name: value for name, value in every[0].items()
                       if all(other.get(name) == value for other in every)}
        labels = [f"{clean(method.name)}, seed {t['seed']}" for method in case.methods for t in method.trainings]
        self.own = [(label, {name: value for name, value in own.items() if value and name not in self.common})
                    for label, own in zip(labels, every)]


# ---- the page -----------------------------------------------------------------------------------

class Drawer:
    """Draws figures for the page, and as files of their own where a directory is given."""

    def __init__(self, directory):
        self.directory, self.count = directory, 0
        if directory:
            os.makedirs(directory, exist_ok=True)

    def __call__(self, name, figure):
        if figure is None:
            return ""
        self.count += 1
        if self.directory:
            path = os.path.join(self.directory, "".join(c if c.isalnum() else "-" for c in name))
            save(figure, path + ".svg")
            with store.replacing(path + ".pdf") as part:
                figure.savefig(part, format="pdf", metadata={"CreationDate": None})
        drawing = figures.svg(figure, f"f{self.count}")
        for number, colour in enumerate([figures.INK, figures.SOFT, figures.LINE, *figures.METHODS]):
            drawing = drawing.replace(colour, f"var(--d{number}, {colour})")
        return jinja2.utils.markupsafe.Markup(drawing)


def write_whole(path, text):
    with store.replacing(path) as part, open(part, "w", encoding="utf-8") as out:
        out.write(text)


def save(figure, path):
    """Saves a figure on white, as wide as a column of text.  It says what drew it, because another version
    places some letters elsewhere."""
    drawing = figures.svg(figure, "f")
    head, rest = drawing.split(">", 1)
    drawing = f'{head} width="700"><rect width="100%" height="100%" fill="#fff"/>{rest}'
    by = f"<!-- matplotlib {matplotlib.__version__} -->"
    write_whole(path, f'<?xml version="1.0" encoding="utf-8"?>\n{by}\n{drawing}')


def verdict_first(table, cases):
    """What the page begins with: of the first case, whose trainings have most seeds and are longest, the scores at the
    end of the full update and of each BCD, in sentences; none where they have too few evaluations."""
    if table is None or not cases:
        return []
    labels = {method.label for method in cases[0].every}
    found = []
    for label in table.labels:
        if label not in labels or math.isnan(table.value(label, "end_difference")):
            continue
        seeds, epochs, end, full, difference, low, high = (table.text(label, name) for name in (
            "seeds", "epochs", "end", "end_full", "end_difference", "end_low", "end_high"))
        interval = f" (95 %: {low} to {high})" if low else ""
        verdict = table.text(label, "end_verdict")
        found.append(f"{label}, {epochs} epochs, {seeds} seed{'s' if seeds != '1' else ''}: {end}, the full update {full}; "
                     f"difference {difference}{interval}{': ' + verdict if verdict else ''}.")
    return [clean(sentence) for sentence in found]


@matplotlib.rc_context(figures.STYLE)
def make(out, directory, report):
    """Writes the page of a report.Report, and into `directory`, unless it is None, each figure."""
    draw = Drawer(directory)
    cases = [ShownCase(case) for case in sorted(report.cases.cases, key=lambda case: case.weight, reverse=True)]
    sections = [([ShownTable(table) for table in section],
                 {name: clean(str(value)) for name, value in section.provenance.items()}) for section in report.sections]
    for number, case in enumerate(cases):
        made = figures.of_case(case) if number < CASES_DRAWN else ()
        drawn = [(draw(f"{number} {case.name} {name}", figure), caption) for name, figure, caption in made]
        case.figures = [figure for figure in drawn if figure[0]]
    for shown_tables, _ in sections:
        for table in shown_tables:
            table.drawing = draw(f"{table.name} {table.title}"[:80], table.draw())
    cycles = [draw("cycle", figures.cycle(shown_tables)) for shown_tables, _ in sections]
    templates = jinja2.FileSystemLoader(os.path.dirname(os.path.abspath(__file__)))
    template = jinja2.Environment(loader=templates, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    ends = next((table for table in report.sections[0] if table.name == "converged"), None)
    write_whole(out, template.get_template("page.html").render(
        sections=list(zip(sections, cycles)), cases=cases, marks=tables.MARKS, drawn=CASES_DRAWN, convergence=RULE,
        unfinished=clean(report.study.unfinished), first_words=verdict_first(ends, cases),
        answers=[table for table in sections[0][0] if table.name == "answer"]))
