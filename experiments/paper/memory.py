"""`bcd experiment memory`: bytes, published, closed form, planned; and the peaks that the allocator counts in
trainings of a few steps."""
import memory_tables
import networks
import program
import store
import study
from networks import Network
from tables import CLOSED_FORM, DEVIATION, MEASURED, MIB, NONE, Column, Table

PUBLISHED = 5, [Network("resnet14", "synthetic", "sgd", 128), Network("resnet50", "synthetic", "sgd", 128),
                Network("gpt2-0.15B:vocabulary=50257", "text", "adam", 1)]
PRESETS = {  # the largest number of submodels, and the networks
    "smoke": (3, [Network("resnet:depth=8,width=4", "synthetic", "sgd", 16),
                  Network("gpt:layers=2,width=32,heads=2,context=32", "text", "adam", 8)]),
    "laptop": (5, [Network("resnet14", "synthetic", "sgd", 128),
                   Network("gpt:layers=12,width=128,heads=4,context=64", "text", "adam", 8),
                   Network("llama:layers=12,width=128,heads=4,ffn=344,context=64", "text", "adam", 8)]),
    "gpu": PUBLISHED, "paper": PUBLISHED}


def columns():
    return [
        Column("closed_form", "equal parts", "P+G+S", 3, CLOSED_FORM),
        Column("trained_plan", "planned", "P+G+S", 3, CLOSED_FORM),
        Column("trained", "peak", "P+G+S", 3, MEASURED),
        Column("trained_deviation", "off", "", 1, NONE, DEVIATION),
        Column("activations", "peak", "activat.", 3, MEASURED),
        Column("all_plan", "planned", "all", 3, CLOSED_FORM),
        Column("all", "peak", "all", 3, MEASURED),
        Column("all_deviation", "off", "", 1, NONE, DEVIATION)]


def trained(options, network, submodels):
    """A training of a step with each submodel, the MiB that were planned for it by role, and its provenance."""
    with program.trained(**networks.flags(
            options, network, submodels=submodels, steps=submodels, switch_every=1 if submodels > 1 else None,
            schedule="constant", warmup=0, threads=options.flags.get("threads"),
            recompute=options.flags.get("recompute", False))) as file:
        planned = store.column(file["memory"], "planned") / MIB
        return (study.read_run(file.filename), dict(zip(store.column(file["memory"], "role"), planned.tolist())),
                store.attributes(file["provenance"]))


def table(options, network, number):
    """Returns the table of a network, and the provenance of its last training."""
    found = Table(
        f"measured{number}", f"Measured, MiB: {network.model[:80]}, {network.optimizer}, batch {network.batch}, a step "
        "with each submodel", "update", columns(), unit="MiB")
    for submodels in range(1, PRESETS[options.preset][0] + 1):
        made, plan, provenance = trained(options, network, submodels)
        planned = sum(plan[role] for role in study.TRAINED)
        found.row(program.way(submodels), made["closed_form"] / MIB, planned, made.trained_memory,
                  made.trained_memory / planned - 1, made["peak_activations"] / MIB, plan["total"], made.peak,
                  made.peak / plan["total"] - 1)
    found.note(
        f"Peaks of the allocator, in {provenance['precision']} on the {options.flags.get('device', 'cpu')}.  "
        "\"planned\" is computed from shapes before the training; \"equal parts\" is the closed form of submodels of "
        "equal size, which whole blocks reach only when they can be cut evenly.")
    return found, provenance


def measure(options, first_number):
    """Returns the tables of all networks, and the provenance of their trainings."""
    found, provenance = [], None
    for network in networks.chosen(options, PRESETS[options.preset][1]):
        one, provenance = table(options, network, first_number + len(found))
        found.append(one)
    return found, provenance


def make(options):
    found = [memory_tables.table8(), memory_tables.activations(), memory_tables.figure5(), memory_tables.tables9to11()]
    measured, provenance = measure(options, len(found))
    return found + measured, provenance
