"""`bcd experiment savings`: what saves memory, BCD next to cheaper means.

Each way trains for six updates, BCD in phases of one, so that every submodel trains; the program measures the peak of
its memory.  Of the largest network it is only asked for the plan."""
import program
import study
from tables import CLOSED_FORM, MEASURED, MIB, Column, Table

STEPS = {"optimizer": "adam", "steps": 6, "eval-samples": 16, "threads": 1}
THIRDS = {"submodels": 3, "switch-every": 1}
# A network, what it trains on, and the ways to train it: the name of each, and its flags.
NETWORKS = {
    "gpt": ("GPT 4x128", {"model": "gpt:layers=4,width=128,heads=4,context=64", "data": "wikitext2:2048",
                          "batch": 16}, [
        ("full update", {}),
        ("BCD-1/3", THIRDS),
        ("full, 2 micro-batches", {"accumulate": 2}),
        ("full, activations recomputed", {"recompute": True}),
        ("full, batch of 11", {"batch": 11}),
        ("full, 16 micro-batches", {"accumulate": 16}),
        ("BCD-1/3, 16 micro-batches", {"accumulate": 16, **THIRDS})]),
    "resnet8": ("ResNet-8", {"model": "resnet8", "data": "synthetic", "limit": 1000, "batch": 128}, [
        ("full update", {}),
        ("BCD-1/3", THIRDS),
        ("full, batch of 108", {"batch": 108})]),
    "wide": ("GPT 8x192", {"model": "gpt:layers=8,width=192,heads=4,context=64", "data": "wikitext2:2048", "batch": 1,
                           "recompute": True}, [
        ("full update", {}),
        ("BCD-1/3", THIRDS),
        ("full, Lion", {"optimizer": "lion"}),
        ("full, plain SGD", {"optimizer": "sgd", "momentum": 0})]),
}
# The shape of SmolLM2-135M.
LARGE = "llama:layers=30,width=576,heads=9,groups=3,ffn=1536,tied=1,vocabulary=49152,context=128"
LARGE_NAME = "LLaMA of 135M, 2 x 128 tokens"


def measured(networks):
    table = Table("savings", "What saves memory: peaks of a training", "network, way", [
        Column("all", "all memory", "MiB", 1, MEASURED),
        Column("ratio", "all memory", "/ full", 2, MEASURED),
        Column("parameters", "P+G+S", "MiB", 2, MEASURED),
        Column("activations", "activations", "MiB", 2, MEASURED),
        Column("workspace", "workspace", "MiB", 2, MEASURED)])
    provenance = None
    for name, network, ways in networks.values():
        full = None
        for way, flags in ways:
            with program.trained(**STEPS | network | flags) as file:
                made = study.read_run(file.filename)
            provenance, full = made.provenance, full or made.peak
            table.row(f"{name}: {way}", made.peak, made.peak / full, made.trained_memory, made["peak_activations"] / MIB,
                      made["peak_workspace"] / MIB)
    table.note("By the allocator, in fp32. P+G+S: parameters, gradients and optimizer state. Micro-batches and "
               "recomputed activations make the same update as the full one.")
    return table, provenance


def planned():
    """The memory of the largest network, from its shapes."""
    table = Table("large", f"What a larger network takes: {LARGE_NAME}, Adam", "way", [
        Column("all", "all memory", "MiB", 0, CLOSED_FORM), Column("ratio", "all memory", "/ full", 2, CLOSED_FORM)])
    memory = program.ask("info", "--model", LARGE, "--batch", "2", "--optimizer", "adam")["memory"]
    full = memory.value("adam full", "all")
    for label in memory.labels:
        table.row(label.removeprefix("adam "), memory.value(label, "all"), memory.value(label, "all") / full)
    table.note("Planned from the shapes; the peaks of trainings equal such plans to the byte.")
    return table


def make(options):
    networks = NETWORKS if options.preset != "smoke" else {"resnet8": NETWORKS["resnet8"]}
    table, provenance = measured(networks)
    return [table, planned()], provenance
