"""The published cells (published.toml), and what follows from them by arithmetic alone."""
import functools
import math
import pathlib
import statistics
import tomllib
from dataclasses import dataclass

GPUS = "rtx4090", "a100", "a800"  # as bcd plan --gpu has them
COST, HOURS = "cost", "GPU hours"
# The tables of what BCD saves, by GPU of the full update.
REDUCTIONS = {COST: dict(zip(GPUS, (5, 6, 7))), HOURS: dict(zip(GPUS, (12, 13, 14)))}


@functools.cache
def cells():
    """published.toml as it is."""
    return tomllib.loads(pathlib.Path(__file__).with_name("published.toml").read_text(encoding="utf-8"))


def gpus_of(layout):
    """The GPUs of all nodes of "N/G"."""
    nodes, per_node = layout.split("/")
    return int(nodes) * int(per_node)


# ---- models ---------------------------------------------------------------------------------------


@functools.cache
def models():
    """The rows of Table 8 by model, with the memory of BCD-1/3, which Table 4 has, as bcd_gib."""
    memory = {row["model"]: row["bcd_gib"] for row in cells()["table4"]}
    return {row["model"]: row | {"bcd_gib": memory[row["model"]]} for row in cells()["table8"]}


# ---- times of a step ------------------------------------------------------------------------------

FULL, BCD, CACHED, OFFLOAD = "full", "bcd", "cached", "offload"


@dataclass(frozen=True)
class Step:
    """A step of 1024 tokens whose time is published, or one like it.  CACHED: by BCD, with the outputs of the
    frozen prefix kept."""
    table: int  # 3, 4, 15 or 16; 4 for section 4.4.2 too
    gpu: str
    model: str
    gpus: str  # "N/G"
    method: str
    submodels: int  # of BCD; else 1
    ms: float = math.nan


@functools.cache
def steps():
    """All published steps once, those of a table in the order in which they are printed.  The steps of BCD in
    Table 3, and in the second row of G-10B in Table 4, are others of Table 4."""
    found = []
    for table in (15, 16):
        for row in cells()[f"table{table}"]:
            for submodels, ms in zip((3, 4, 5), row["ms"]):
                found.append(Step(table, "rtx4090", row["model"], f"1/{row['gpus']}", BCD, submodels, ms))
    for row in cells()["table4"]:
        found.append(Step(4, "rtx4090", row["model"], row["full_gpus"], FULL, 1, row["full_ms"]))
        bcd = Step(4, "rtx4090", row["model"], row["bcd_gpus"], BCD, 3, row["bcd_ms"])
        if bcd not in found:
            found.append(bcd)
    for gpu in ("a100", "a800"):
        layouts = {row["model"]: row["full_gpus"] for row in cells()[f"table{REDUCTIONS[COST][gpu]}"]}
        for model, ms in cells()["section4_4_2"][gpu].items():
            found.append(Step(4, gpu, model, layouts[model], FULL, 1, ms))
    for row in cells()["table3"]:
        found.append(Step(3, "rtx4090", row["model"], f"1/{row['gpus']}", OFFLOAD, 1, row["offload_ms"]))
    return tuple(found)


def step(table, model, submodels):
    """The first step of a table with this model and number of submodels; None when there is none."""
    return next((s for s in steps() if (s.table, s.model, s.submodels) == (table, model, submodels)), None)


def full_ms(gpu, model, layout):
    """Milliseconds of a full update on as many GPUs; NaN where the paper has no such time.  A step with these
    nodes is preferred to one with others: 2 x 4 GPUs are 1/8 in Table 5."""
    same = [s for s in steps() if (s.method, s.gpu, s.model) == (FULL, gpu, model) and gpus_of(s.gpus) == gpus_of(layout)]
    exact = [s for s in same if s.gpus.split("/")[0] == layout.split("/")[0]]
    return exact[0].ms if exact else same[-1].ms if same else math.nan


def bcd_ms(model):
    """Milliseconds of BCD-1/3 on RTX 4090, of Tables 15 and 16, which print more digits than Table 4, where they
    have the model; NaN where the paper has no such time."""
    return next((s.ms for s in steps() if s.submodels == 3 and s.model == model), math.nan)


def pairs(table):
    """The offloaded steps of Table 3, or the full updates of Table 4 on RTX 4090, each with BCD-1/3 of its model."""
    return [(s, step(4, s.model, 3)) for s in steps() if s.table == table and s.method != BCD and s.gpu == "rtx4090"]


# ---- what BCD saves -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Reduction:
    """What BCD-1/3 on RTX 4090 saves against a full update on `gpu`: a column of Tables 5 to 7 or 12 to 14."""
    what: str  # COST or HOURS
    gpu: str
    model: str
    full: str  # "N/G"
    bcd: str
    worst: float
    average: float

    @property
    def ratio(self):
        """A saving is 1 - multiplier x ratio: the GPU time of a BCD step over that of a full one, by the published
        times; for the cost times the price of an RTX 4090 over that of the other GPU (section 4.4.1)."""
        times = bcd_ms(self.model) * gpus_of(self.bcd) / (full_ms(self.gpu, self.model, self.full) * gpus_of(self.full))
        prices = section_prices()
        return times * (prices["rtx4090"] / prices[self.gpu]) if self.what == COST else times

    @property
    def multiplier(self):
        """The one that the average cell was computed with if the worst cell was computed with the worst one; times
        and prices cancel in it."""
        return cells()["text"]["multiplier_worst"] * (1 - self.average) / (1 - self.worst)


def section_prices():
    """Dollars per GPU and hour of section 4.4.1."""
    return {gpu: cells()["prices"][0][gpu] for gpu in GPUS}


@functools.cache
def reductions():
    """All of them, in the order of the tables."""
    layouts = {(gpu, row["model"]): row for gpu, table in REDUCTIONS[COST].items() for row in cells()[f"table{table}"]}
    return tuple(
        Reduction(what, gpu, row["model"], layouts[gpu, row["model"]]["full_gpus"],
                  layouts[gpu, row["model"]]["bcd_gpus"], row["worst"], row["average"])
        for what, tables in REDUCTIONS.items() for gpu, table in tables.items() for row in cells()[f"table{table}"])


def table_multiplier():
    """The multiplier behind the average cells: the median over all rows, which is not the printed average."""
    return statistics.median(row.multiplier for row in reductions())


# ---- trainings ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PublishedRow:
    """A row of Table 2, 9, 10 or 11: a model trained by one method."""
    table: int
    row: str  # as printed, with the optimizer
    model: str  # our preset of that model, or the one that stands in for it
    data: str
    optimizer: str  # sgd or adam
    submodels: int  # 1: full update
    fraction: float  # SR, the part of the data that each submodel sees
    duration: float  # to convergence: epochs, or iterations of the language models in Table 2
    printed: float  # the score: accuracy in per cent, perplexity, or as is_ten_perplexity
    loss: float
    mib: float = math.nan

    @property
    def is_images(self):
        return self.model.startswith("resnet")

    @property
    def is_ten_perplexity(self):
        """Printed as "Acc" in per cent, but it is 10 exp(loss), truncated in all rows but one."""
        return self.table in (9, 11)

    @property
    def score(self):
        """Accuracy in per cent, or perplexity."""
        return self.printed / 10 if self.is_ten_perplexity else self.printed

    @property
    def full(self):
        """The full update of the same table, model, data and optimizer, on all of the data; None when there is none."""
        same = [t for t in trainings(self.table) if t.submodels == 1 and t.fraction >= 1 and
                (t.model, t.data, t.optimizer) == (self.model, self.data, self.optimizer)]
        return same[0] if same else None

    @property
    def multiplier(self):
        """B-F: its duration over that of its full update; NaN of a full update, or when there is none."""
        return self.duration / self.full.duration if self.full and self.submodels > 1 else math.nan


@functools.cache
def trainings(table):
    """The rows of Table 2, 9, 10 or 11."""
    found = []
    for row in cells()[f"table{table}"]:
        gpt = table in (9, 11)
        unfrozen = f"1/{row['submodels']}" if row["submodels"] > 1 else "1"
        label = row.get("row") or " ".join(
            ([f"{row['fraction']:g}"] if "fraction" in row else []) + [unfrozen] + ([row["optimizer"].upper()
             if row["optimizer"] == "sgd" else "Adam"] if gpt else []))
        found.append(PublishedRow(
            table, label, row.get("model", "gpt2-0.15B" if gpt else "resnet14"),
            row.get("data", "wikitext2" if gpt else "cifar10"), row.get("optimizer", "sgd"), row["submodels"],
            row.get("fraction", 1.0), row["duration"], row["score"], row["loss"], row.get("mib", math.nan)))
    return tuple(found)


def with_lower_loss():
    """The BCD rows of Table 2 whose printed loss is below that of the full update, and how many BCD rows there are."""
    rows = [row for row in trainings(2) if row.submodels > 1]
    return [row for row in rows if row.loss < row.full.loss], len(rows)


def gaps(images):
    """The scores of BCD in Table 2 less those of the full update: in points of accuracy, or in per cent of perplexity."""
    rows = [row for row in trainings(2) if row.submodels > 1 and row.is_images == images]
    return [row.score - row.full.score if images else 100 * (row.score / row.full.score - 1) for row in rows]


def perplexity_over_full(optimizer):
    """By how many per cent the perplexities of Table 11, by the printed losses, lie above that of the full update: of
    BCD-1/2, 1/3 and 1/4."""
    return [100 * (math.exp(row.loss - row.full.loss) - 1) for row in trainings(11)
            if row.optimizer == optimizer and row.submodels > 1]


def largest_loss_difference():
    """The training by BCD of Table 2 whose printed loss differs most from that of its full update, and by how much."""
    found = [(row, abs(row.loss - row.full.loss)) for row in trainings(2) if row.submodels > 1]
    return max(found, key=lambda each: each[1])


def mean_multiplier(optimizer, images=None):
    """The mean multiplier over the BCD rows of Table 2 with this optimizer: of image models (True), language models
    (False), or both."""
    return statistics.fmean(
        t.multiplier for t in trainings(2)
        if t.submodels > 1 and t.optimizer == optimizer and images in (None, t.is_images))


def find(table, model, data, is_images, optimizer, submodels, fraction):
    """The row of a table that a training of ours is compared with, or None: one with the same kind of input, optimizer,
    number of submodels and fraction of the data, preferably the same model, then the same data; of equals the first.
    AdamW is compared with Adam."""
    kind = "adam" if optimizer == "adamw" else optimizer
    same = [t for t in trainings(table) if (t.is_images, t.optimizer, t.submodels) == (is_images, kind, submodels)
            and abs(t.fraction - fraction) < 1e-9]
    return max(same, key=lambda t: (t.model == model, t.data == data), default=None)
