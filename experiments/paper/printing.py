"""Tables as text for a terminal, and as Markdown."""
import os
import textwrap

from tables import MARKS, TEXT, legend, printed

WIDTH, WIDTH_OF_TEXT = 100, 98  # characters of a table, of its title and notes


def print_tables(out, tables, markdown=False):
    for table in tables:
        (print_markdown if markdown else print_terminal)(out, table)


# ---- terminal -----------------------------------------------------------------------------------

def wrapped(text):
    return textwrap.fill(text, WIDTH_OF_TEXT, break_on_hyphens=False)


def print_terminal(out, table):
    """Prints the title, aligned columns with a mark behind each number, the legend of the marks, and the notes.
    Columns that do not fit follow in a block below, with the labels again.  Of a timeline, which the page draws,
    there are only the title and the notes."""
    print(wrapped(table.title), file=out)
    if table.figure != "timeline":
        columns = [column_lines(table, place) for place in range(len(table.columns))]
        columns = [lines for lines in columns if any(lines[2:])] or columns  # an empty one says nothing
        widths, labels = [width_of(lines) for lines in columns], table.labels
        if len(blocks(width_of([table.head, *labels]), widths)) > 1:
            shared, labels = without_shared_words(labels)
            if shared:
                print(wrapped(f"All rows: {shared}"), file=out)
        labels = [table.head, "", *labels]
        for block in blocks(width_of(labels), widths):
            print_block(out, labels, [columns[place] for place in block])
        if legend(table):
            print("\n" + legend(table), file=out)
    for note in table.notes:
        print(wrapped(note), file=out)
    print(file=out)


def without_shared_words(labels):
    """The words with which all labels begin, and the labels without them; each keeps a word."""
    words = [label.split(" ") for label in labels]
    shared = os.path.commonprefix([each[:-1] for each in words]) if len(words) > 1 else []
    return " ".join(shared), [" ".join(each[len(shared):]) for each in words]


def column_lines(table, place):
    """What each line has in a column: the head, what is below it, the cells with their marks."""
    column, cells = table.columns[place], [row[place] for row in table.rows]
    marked = any(cell.source for cell in cells)
    texts = [printed(column, cell) + (f"{MARKS[cell.source]:>2}" if marked else "") for cell in cells]
    return [column.head, column.below, *texts]


def width_of(lines):
    return max(map(len, lines))


def blocks(labels, widths, limit=WIDTH):
    """Divides the columns into blocks that fit next to the labels in `limit` characters, each of at least one."""
    found, used = [[]], labels
    for place, width in enumerate(widths):
        if found[-1] and used + 2 + width > limit:
            found.append([])
            used = labels
        found[-1].append(place)
        used += 2 + width
    return found


def print_block(out, labels, columns):
    widths = [width_of(lines) for lines in columns]

    def print_line(number):
        cells = (f"  {lines[number]:>{width}}" for lines, width in zip(columns, widths))
        print((f"{labels[number]:<{width_of(labels)}}" + "".join(cells)).rstrip(" "), file=out)

    print(file=out)
    print_line(0)
    if any(lines[1] for lines in columns):
        print_line(1)
    print("  ".join("-" * width for width in [width_of(labels), *widths]), file=out)
    for number in range(2, len(labels)):
        print_line(number)


# ---- Markdown -----------------------------------------------------------------------------------

def escaped(text):
    return text.replace("|", "\\|")


def print_markdown(out, table):
    """Prints the same as Markdown."""
    print(f"### {table.title}\n", file=out)
    if table.figure != "timeline":
        heads = [escaped(column.head) + (f" ({column.below})" if column.below else "") for column in table.columns]
        print_markdown_row(out, [escaped(table.head), *heads])
        print("|---" + "".join("|---" if column.kind == TEXT else "|---:" for column in table.columns) + "|", file=out)
        for label, row in zip(table.labels, table.rows):
            cells = (f"{escaped(printed(column, cell))} {MARKS[cell.source]}".rstrip(" ")
                     for column, cell in zip(table.columns, row))
            print_markdown_row(out, [escaped(label), *cells])
        if legend(table):
            print("\n" + legend(table), file=out)
        if table.notes:
            print(file=out)
    for note in table.notes:
        print(f"- {note}" if table.figure != "timeline" else wrapped(note), file=out)
    print(file=out)


def print_markdown_row(out, cells):
    print("| " + " | ".join(cells) + " |", file=out)
