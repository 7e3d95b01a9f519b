"""What BCD saves with each B-F multiplier: the columns that Tables 5 to 7, 12 to 14 and the claims share."""
import math
from dataclasses import dataclass, field

import published
from tables import GIVEN, PERCENT, PUBLISHED, RECOMPUTED, TEXT, Cell, Column

TOLERANCE = 0.015  # a cell that is farther off follows from none of the multipliers


@dataclass
class Multipliers:
    """The B-F multipliers that a saving is computed with, by name; `ours` (of --multiplier) may be missing."""
    published: dict = field(default_factory=lambda: {
        "tables": published.table_multiplier(),  # the one behind the published tables, recomputed
        "average": published.cells()["text"]["multiplier_average"],  # printed as the average
        "language": published.mean_multiplier("adam", False),  # mean over the language models, recomputed
        "worst": published.cells()["text"]["multiplier_worst"]})  # printed as the worst
    ours: float = math.nan
    is_measured: bool = False  # `ours`: from files of results, or a number that was given

    def items(self):
        yield from self.published.items()
        if not math.isnan(self.ours):
            yield "ours", self.ours


def columns(multipliers):
    """The published saving, the multiplier whose saving is nearest to it, how far that is off, and the saving with each
    multiplier."""
    ours = RECOMPUTED if multipliers.is_measured else GIVEN
    return [Column("published", "published", "", 1, PUBLISHED, PERCENT), Column("nearest", "nearest", "", 0, kind=TEXT),
            Column("off", "off", "points", 1)] + [
        Column(f"multiplier_{name}", f"{value:.4g}", name, 1, ours if name == "ours" else RECOMPUTED, PERCENT)
        for name, value in multipliers.items()]


def cells(printed, multipliers, saved):
    """Their cells; saved(multiplier) is what follows from the paper's own numbers."""
    with_each = {name: saved(multiplier) for name, multiplier in multipliers.items()}
    nearest = min(multipliers.published, key=lambda name: abs(with_each[name] - printed))
    off = with_each[nearest] - printed
    head = f"{multipliers.published[nearest]:.4g}" if abs(off) <= TOLERANCE else "none"
    return [printed, Cell(head), 100 * off, *with_each.values()]
