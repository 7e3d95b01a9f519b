"""The page of `bcd report` and its figures, from an HDF5 file by which the program hands over the
trainings with their order and names, and all tables (report.c).

    page.py OUT.html FIGURES FILE      FIGURES: a directory for each figure as SVG and PDF, or ""
    page.py OUT.svg cycle FILE         one BCD cycle, from the tables of `bcd trace`
"""
import os
import sys

try:
    import h5py
    import jinja2
    import numpy as np

    import figures
except ImportError as missing:
    print(missing, file=sys.stderr)
    sys.exit(3)

MARKS = {"measured": "m", "simulated": "s", "closed form": "c", "published": "p",
         "recomputed from published numbers": "r", "given (data sheet or command line)": "g"}
CASES_DRAWN = 16  # a report of hundreds opens on a phone, and is made in seconds


def text(value):
    """Returns a text without control characters."""
    value = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    return "".join(c if c >= " " or c == "\n" else "\ufffd" for c in value)


def texts(data):
    return [text(value) for value in data[:]]


# ---- tables -------------------------------------------------------------------------------------

class Column:
    """A column: values for figures (None in one of texts), and texts[row], the cells as printed."""

    def __init__(self, group, name):
        data, attributes = group[name], group[name].attrs
        self.name, self.head, self.kind = name, text(attributes["head"]), text(attributes["kind"])
        self.unit = text(attributes.get("below", attributes.get("unit", "")))
        self.sources = texts(group[name + "_source"])
        self.values = data[:] if self.kind != "text" else None
        self.texts = texts(group.get(name + "_text", data))
        self.marked = any(self.sources)


class Table:
    def __init__(self, group):
        self.name = group.name.split("/")[-1]
        self.title, self.head, self.figure, self.axis = (
            text(group.attrs[key]) for key in ("title", "head", "figure", "axis"))
        self.notes = [note for note in text(group.attrs["notes"]).split("\n") if note]
        self.labels = texts(group["row"])
        names = [name for name in group if "number" in group[name].attrs]
        self.columns = [Column(group, name)
                        for name in sorted(names, key=lambda name: group[name].attrs["number"])]
        used = {source for column in self.columns for source in column.sources}
        self.legend = ", ".join(f"{mark} {source}" for source, mark in MARKS.items() if source in used)

    def column(self, name):
        return next((column for column in self.columns if column.name == name), None)

    def draw(self):
        if self.figure == "timeline":
            return figures.timeline(self)
        return figures.table(self) if self.figure else None


def in_order(groups):
    return sorted(groups.values(), key=lambda group: group.attrs["number"])


def read_tables(file):
    return [Table(group) for group in in_order(file.get("tables", {}))]


# ---- trainings ----------------------------------------------------------------------------------

class Training(dict):
    """Every column of /table, /settings and /provenance under its name; and the curves."""

    def __init__(self, data, row):
        self.units = data["units"]
        super().__init__({name: values[row] for name, values in data["table"].items()})
        self.update({"--" + name: values[row] for name, values in data["settings"].items()})
        self.update({"provenance/" + name: values[row] for name, values in data["provenance"].items()})
        self.update({name: text(value) for name, value in self.items() if isinstance(value, bytes)})
        self.curve, self.evaluation, self.switches = (
            self.part(data, name, row) for name in ("training", "evaluation", "switches"))
        self["specification"] = text(data["curves"]["spec"][row])
        self["switches"] = self.reasons()

    @staticmethod
    def part(data, name, row):
        first, count = (int(data["curves"][f"{name}_{part}"][row]) for part in ("first", "rows"))
        return {column: values[first:first + count] for column, values in data[name].items()}

    def reasons(self):
        """Returns why phases ended, how often, and the two losses that were compared each time."""
        reasons, rows = texts(self.switches["reason"]), zip(*(
            self.switches[name] for name in ("step", "earlier_loss", "window_loss")))
        counts = [f"{reason} {reasons.count(reason)}" for reason in dict.fromkeys(reasons)]
        return ", ".join(counts + [f"after update {step} (loss {before:.4g}, then {then:.4g})"
                                   for step, before, then in rows if np.isfinite(before + then)])

    def fields(self):
        """Yields the name and the value of each column, "" for an unknown one."""
        for name, value in self.items():
            if isinstance(value, np.floating):
                value = f"{value:.6g}" if np.isfinite(value) else ""
            unit = self.units.get(name, "") if text(value) else ""
            yield name.replace("provenance/", ""), f"{text(value)} {unit}".strip()


class Method:
    def __init__(self, name, trainings):
        self.name, self.trainings = name, trainings


class Case:
    """A network, data set and optimizer, with all methods it was trained by."""

    def __init__(self, name, every):
        self.name, self.every, self.methods = name, every, every[:len(figures.METHODS)]
        self.trainings = [t for method in every for t in method.trainings]
        self.first = self.trainings[0]
        steps = sorted({int(t["steps"]) for t in self.trainings})
        self.steps = f"{steps[0]} to {steps[-1]}" if len(steps) > 1 else str(steps[0])
        fields = [dict(t.fields()) for t in self.trainings]
        self.common = {name: value for name, value in fields[0].items()
                       if all(other.get(name) == value for other in fields)}
        self.own = [(f"{method.name}, seed {t['seed']}",
                     {name: value for name, value in t.fields() if value and name not in self.common})
                    for method in every for t in method.trainings]


def read_cases(file):
    groups = ("table", "curves", "training", "evaluation", "switches", "settings", "provenance")
    data = {group: {name: values[:] for name, values in file[group].items()} for group in groups}
    data["units"] = {name: text(values.attrs.get("unit", "")) for name, values in file["table"].items()}
    names = zip(*(texts(file["order/" + name]) for name in ("case", "method")))
    cases = {}
    for (case, method), row in zip(names, file["order/training"][:]):
        cases.setdefault(case, {}).setdefault(method, []).append(Training(data, int(row)))
    return [Case(name.split("\n")[0], [Method(m, t) for m, t in methods.items()])
            for name, methods in cases.items()]


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
            figure.savefig(path + ".pdf", metadata={"CreationDate": None})
        drawing = figures.svg(figure, f"f{self.count}")
        for number, colour in enumerate([figures.INK, figures.SOFT, figures.LINE, *figures.METHODS]):
            drawing = drawing.replace(colour, f"var(--d{number}, {colour})")
        return jinja2.utils.markupsafe.Markup(drawing)


def write_whole(path, data):
    """Replaces a regular file (following links) atomically; writes directly to anything else."""
    path = os.path.realpath(path)
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, "wb") as out:
            out.write(data)
        return
    part = f"{path}.{os.getpid()}.part"
    try:
        with open(part, "wb") as out:
            out.write(data)
        os.replace(part, path)
    except OSError:
        if os.path.exists(part):
            os.remove(part)
        raise


def save(figure, path):
    """Saves a figure on white, as wide as a column of text.  It says what drew it, because another version
    places some letters elsewhere."""
    drawing = figures.svg(figure, "f")
    head, rest = drawing.split(">", 1)
    drawing = f'{head} width="700"><rect width="100%" height="100%" fill="#fff"/>{rest}'
    by = f"<!-- matplotlib {figures.matplotlib.__version__} -->"
    write_whole(path, f'<?xml version="1.0" encoding="utf-8"?>\n{by}\n{drawing}'.encode())


def make_page(out, directory, path):
    draw = Drawer(directory)
    with h5py.File(path, "r") as file:
        about = {key: text(value) for key, value in file.attrs.items()}
        cases = read_cases(file) if "order" in file else []
        sections = [(read_tables(group),
                     {key: text(value) for key, value in group["provenance"].attrs.items()})
                    for group in in_order(file["files"])]
    for number, case in enumerate(cases):
        made = figures.of_case(case) if number < CASES_DRAWN else ()
        drawn = [(draw(f"{number} {case.name} {name}", figure), caption)
                 for name, figure, caption in made]
        case.figures = [figure for figure in drawn if figure[0]]
    for tables, _ in sections:
        for table in tables:
            table.drawing = draw(f"{table.name} {table.title}"[:80], table.draw())
    cycles = [draw("cycle", figures.cycle(tables)) for tables, _ in sections]
    templates = jinja2.FileSystemLoader(os.path.dirname(os.path.abspath(__file__)))
    page = jinja2.Environment(loader=templates, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    answers = [table for table in sections[0][0] if cases and table.name == "answer"]
    write_whole(out, page.get_template("page.html").render(
        sections=list(zip(sections, cycles)), cases=cases, about=about, marks=MARKS, answers=answers,
        drawn=CASES_DRAWN).encode())


def make_cycle(out, path):
    with h5py.File(path, "r") as file:
        figure = figures.cycle(read_tables(file))
    if figure is None:
        raise ValueError("no blocks of submodels to draw")
    save(figure, out)


if __name__ == "__main__":
    try:
        if sys.argv[2] == "cycle":
            make_cycle(sys.argv[1], sys.argv[3])
        else:
            make_page(*sys.argv[1:])
    except OSError as error:
        sys.exit(f"{error.filename or sys.argv[1]} cannot be written: {error.strerror}")
    except (KeyError, ValueError, TypeError, IndexError) as error:
        sys.exit(f"{sys.argv[1]}: {error}")
