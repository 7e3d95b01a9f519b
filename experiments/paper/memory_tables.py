"""The memory of the paper's Tables 4 and 8 to 11 and of its Figure 5: published, by closed form, and planned."""
import math

import program
import published
from program import ask_once
from tables import CLOSED_FORM, DEVIATION, GIB, MIB, NONE, PERCENT, PUBLISHED, RECOMPUTED, Column, Table

UNDESCRIBED = "L-8.0B"  # in Table 4, but not in Table 8


def plan(model, optimizer="adam", submodels=1, recompute=False):
    """The memory of a training of one sample in fp32."""
    return program.memory(optimizer, submodels, model=model, batch=1, recompute=recompute)


def parameters(model):
    blocks = ask_once("info", "--model", model, "--optimizer", "adam")["blocks"]
    return sum(cell.value for cell in blocks.column("parameters"))


def table8():
    table = Table("table8", "Tables 8 and 4: parameters, gradients and Adam's state, fp32", "model", [
        Column("parameters", "parameters", "", 0, CLOSED_FORM), Column("full_published", "full", "GiB", 3, PUBLISHED),
        Column("full_recomputed", "2 x BCD", "GiB", 3, RECOMPUTED),
        Column("full_closed_form", "full, 16 N", "GiB", 3, CLOSED_FORM),
        Column("full_deviation", "off", "", 2, NONE, DEVIATION), Column("bcd3_published", "BCD-1/3", "GiB", 3, PUBLISHED),
        Column("bcd3_closed_form", "8 N", "GiB", 3, CLOSED_FORM), Column("bcd3_deviation", "off", "", 2, NONE, DEVIATION),
        Column("bcd3_plan", "planned", "GiB", 3, CLOSED_FORM)])
    for model, row in published.models().items():
        full, bcd = plan(model), plan(model, submodels=3)
        table.row(model, parameters(model), row["gib"], 2 * row["bcd_gib"], full["equal_parts"] / GIB,
                  full["equal_parts"] / GIB / row["gib"] - 1, row["bcd_gib"], bcd["equal_parts"] / GIB,
                  bcd["equal_parts"] / GIB / row["bcd_gib"] - 1, bcd["trained"] / GIB)
    contradicting = published.models()["L-1.5B"]
    table.note(
        "The published columns are the closed form W (1 + 3/M), W = 4 N bytes: 16 N for a full update, 8 N for thirds of "
        "equal size.  \"planned\": the largest of three balanced submodels of whole blocks, as this program would allocate "
        "it.")
    table.note(
        f"L-1.5B contradicts itself: the published {contradicting['gib']:.3f} is not twice the published "
        f"{contradicting['bcd_gib']:.3f}, which is what the closed form gives.")
    printed = next(row for row in published.cells()["table4"] if row["model"] == UNDESCRIBED)
    table.row(UNDESCRIBED, math.nan, printed["full_gib"], 2 * printed["bcd_gib"], bcd3_published=printed["bcd_gib"])
    table.note(
        f"{UNDESCRIBED} is not in Table 8: its memory would take {layers(printed['full_gib']):.2f} layers like "
        "those of L-6.0B, so the paper does not determine it.")
    return table


def layers(gib):
    """How many layers like those of L-6.0B and L-11B, which differ in nothing else, take the memory of a full update."""
    low, high = (published.models()[model] for model in ("L-6.0B", "L-11B"))
    of_low, of_high = parameters("L-6.0B"), parameters("L-11B")
    return low["layers"] + (gib * GIB / 16 - of_low) / ((of_high - of_low) / (high["layers"] - low["layers"]))


def activations():
    """What the published memory leaves out."""
    heads = [("full", "full", "P+G+S"), ("full_activations", "full", "activat."),
             ("full_activations_of_w", "full", "act. / W"), ("full_recompute", "full", "recomp."),
             ("bcd3", "BCD-1/3", "P+G+S"), ("bcd3_activations", "BCD-1/3", "activat."),
             ("bcd3_recompute", "BCD-1/3", "recomp."), ("bcd3_all", "BCD-1/3", "all"), ("bcd3_per_gpu", "BCD-1/3", "per GPU")]
    table = Table("activations", "What the published memory leaves out: one sequence of 1024 tokens, GiB, fp32", "model",
                  [Column(*head, 2, CLOSED_FORM) for head in heads], unit="GiB")
    for model, row in published.models().items():
        full, bcd = plan(model), plan(model, submodels=3)
        full_again, bcd_again = plan(model, recompute=True), plan(model, submodels=3, recompute=True)
        table.row(model, full["trained"] / GIB, full["activations"] / GIB,
                  full["activations"] / (4 * parameters(model)), full_again["activations"] / GIB,
                  bcd["trained"] / GIB, bcd["activations"] / GIB, bcd_again["activations"] / GIB, bcd["all"] / GIB,
                  bcd["all"] / row["gpus"] / GIB)
    table.note(
        "The plan of this program for the whole model, with the submodel that needs most. P+G+S: parameters, gradients and "
        "state.  recomp.: activations when only block inputs are kept.  all: with workspace; per GPU: divided by the GPUs "
        "of Table 8.  The paper speaks of activations of about 0.7 W.")
    return table


def figure5():
    """Memory against UFP, the unfrozen part."""
    models = list(published.models())
    table = Table("figure5", "Figure 5: memory against UFP, the unfrozen part", "UFP",
                  [Column("equal_parts", "equal parts", "", 1, CLOSED_FORM, PERCENT)]
                  + [Column(model, model, "", 1, CLOSED_FORM, PERCENT) for model in models],
                  figure="bars", axis="parameters, gradients, state: % of a full update's")
    for submodels in range(1, 6):
        table.row("1" if submodels == 1 else f"1/{submodels}", (1 + 3 / submodels) / 4,
                  *(plan(model, submodels=submodels)["trained"] / plan(model)["equal_parts"]
                    for model in models))
    table.note(
        "Fractions of a full update's bytes.  \"equal parts\": the closed form (1 + 3/M) / 4, the same for all models; the "
        "others: planned with the largest balanced submodel of whole blocks.  The paper prints no numbers with its Figure 5.")
    return table


def tables9to11():
    """Of GPT-2 of 0.15B parameters, and ResNet-14."""
    title = "Tables 9 to 11: parameters, gradients and state of GPT-2 0.15B and ResNet-14"
    found = Table("tables9to11", title, "table: row", [
        Column("published", "published", "MiB", 2, PUBLISHED), Column("recomputed", "from its W", "MiB", 2, RECOMPUTED),
        Column("recomputed_deviation", "off", "", 2, NONE, DEVIATION),
        Column("closed_form", "our model", "MiB", 2, CLOSED_FORM),
        Column("closed_form_deviation", "off", "", 2, NONE, DEVIATION), Column("plan", "planned", "MiB", 2, CLOSED_FORM)])
    for row in (row for number in (9, 10, 11) for row in published.trainings(number)):
        k = 3 if row.optimizer == "adam" else 2  # gradients and vectors of state
        recomputed = row.full.mib / (1 + k) * (1 + k / row.submodels) if row.full else math.nan
        planned = plan(row.model, row.optimizer, row.submodels)
        ours = planned["equal_parts"] / MIB
        found.row(f"{row.table}: {row.row}", row.mib, recomputed, recomputed / row.mib - 1, ours, ours / row.mib - 1,
                  planned["trained"] / MIB)
    found.note("\"from its W\": W (1 + (1 + k)/M) with the W that the table's own full update implies, k = 2 for Adam, 1 for "
               "SGD with momentum.")
    found.note("No usual configuration of GPT-2 has the W of the 0.15B one; 16 layers of width 768 stand in for it.  "
               "\"planned\": with the largest balanced submodel.")
    return found
