"""The steps of Tables 3, 4, 15 and 16 and of Figures 4 and 6: published, and simulated."""
import math
import re

import published
import steps
from program import ask_once
from published import BCD, FULL
from tables import DEVIATION, NONE, PUBLISHED, RECOMPUTED, SIMULATED, TEXT, Column, Table


# ---- Tables 3 and 4, section 4.4.2: the optimizer offloaded, distributed, and BCD ---------------

def fill(table, number):
    """Adds a row for each step of a published table: "G-10B BCD-1/3", "G-10B full, A100 80GB"."""
    names = ask_once("info")["gpus"]
    methods = {FULL: "full", BCD: "BCD-1/3"}
    for step in published.steps():
        if step.table == number:
            where = "" if step.gpu == "rtx4090" else f", {names.value(step.gpu, 'name')}"
            table.row(f"{step.model} {methods.get(step.method, 'offload')}{where}", step.gpus,
                      *steps.cells(step), steps.filled_ms(step))
    return table


def columns():
    return [Column("gpus", "N/G", "", 0, kind=TEXT), *steps.columns(0), steps.filled_column(0)]


def llama_rates():
    """The published milliseconds per parameter of a LLaMA model over those of the GPT on as many GPUs, for full updates
    and BCD.  Memory of BCD stands for the parameters: it takes 8 bytes of each."""
    found = []
    for llama, gpt in (("L-6.0B", "G-5.4B"), ("L-11B", "G-10B"), ("L-23B", "G-20B")):
        size = published.models()[llama]["bcd_gib"] / published.models()[gpt]["bcd_gib"]
        found += [published.step(4, llama, m).ms / published.step(4, gpt, m).ms / size for m in (1, 3)]
    return found


def table4():
    table = fill(Table("table4", "Table 4 and section 4.4.2: a step", "step", columns()), 4)
    peak = ask_once("plan", *steps.flags(steps.calibration("a100")))["rates"].column("products")[0].value
    table.note(
        "The paper does not state its setting; its numbers fit one micro-batch of 1 x 1024 tokens, strict fp32, no "
        "overlap in the pipeline, attention scores in memory and a backward pass in one piece, as in Megatron-LM.  "
        f"\"roofline\": matrix products at {100 * peak:.0f} % of the peak.")
    reached = {gpu: 100 * steps.rates(gpu, steps.CALIBRATED)["efficiency"] for gpu in published.GPUS}
    table.note(
        f"\"calibrated\": at the fraction with which one published cell per GPU comes out: RTX 4090 {reached['rtx4090']:.1f} "
        f"% (G-1.6B BCD-1/3), A100 {reached['a100']:.1f} %, A800 {reached['a800']:.1f} % (G-1.6B full on one).  All other "
        "cells are predictions.")
    table.note(
        f"\"filled\": the calibrated machines with this program's zero-bubble schedule, fused attention and {steps.FILLED} "
        "micro-batches a step, BCD on virtual stages; whether it fits is not asked (bcd plan says it).")
    table.note(
        f"The published steps of L-6.0B and larger take {min(llama_rates()):.2f} to {max(llama_rates()):.2f} of the time "
        "per parameter of those of GPT, which the same work at the same rate does not allow.  L-8.0B is not in Table 8.")
    return table


def table3():
    table = fill(Table("table3", "Table 3: a step with the optimizer offloaded", "step", columns()), 3)
    offload = published.step(3, "G-1.6B", 1)
    rates = ask_once("plan", *steps.flags(offload))["rates"]
    table.note(
        "Adam in host memory: gradients go there during the backward pass, "
        f"{steps.rates(offload.gpu, steps.CALIBRATED)['host_rate']:.1f} GB/s per process (calibrated with G-1.6B), "
        f"{rates.column('host_node')[0].value:.0f} GB/s per node at most.  It is paid per step, whatever the number of its "
        f"micro-batches: {steps.FILLED} share it in the filled pipeline.")
    return table


# ---- Tables 15 and 16: BCD against UFP, the unfrozen part ---------------------------------------

def tables15and16():
    found = Table("tables15and16", "Tables 15 and 16: a step of BCD against UFP, the unfrozen part", "model, UFP", [
        *steps.columns(1), Column("cached", "cached", "ms", 1, SIMULATED), steps.filled_column(1),
        Column("flops", "FLOP model", "ms", 1, RECOMPUTED), Column("flops_deviation", "off", "", 1, NONE, DEVIATION)])
    for step in published.steps():
        if step.table in (15, 16):
            flops = steps.scaled_ms(step.model, step.submodels) if step.submodels > 3 else math.nan
            found.row(f"{step.model} 1/{step.submodels}", *steps.cells(step),
                      steps.milliseconds(steps.cached(step), steps.CALIBRATED), steps.filled_ms(step), flops,
                      flops / step.ms - 1)
    found.note(
        "Means over the submodels; settings as in Table 4.  \"cached\": with the outputs of the frozen prefix kept "
        "(pre-inference).  \"FLOP model\": the published time at 1/3, times (3/2 + 3/(2M)) / 2.")
    return found


# ---- figures of these tables --------------------------------------------------------------------

def figure4(multiplier):
    table = Table("figure4", "Figure 4: training time by method", "model", [
        Column("offload", "offload", "ms", 0, PUBLISHED), Column("offload_simulated", "offload, sim.", "ms", 0, SIMULATED),
        Column("distributed", "distributed", "ms", 0, PUBLISHED),
        Column("distributed_simulated", "distrib., sim.", "ms", 0, SIMULATED),
        Column("bcd", "BCD x B-F", "ms", 0, RECOMPUTED), Column("bcd_simulated", "BCD x B-F, sim.", "ms", 0, SIMULATED)],
        figure="bars", axis=f"ms a step, BCD x {multiplier:.3g}")
    for full, bcd in published.pairs(4):
        if full != published.step(4, full.model, 1):
            continue
        offload = published.step(3, full.model, 1)
        table.row(full.model, *(steps.pair(offload) if offload else [None, None]), *steps.pair(full),
                  *steps.pair(bcd, multiplier))
    table.note(
        "Pairs of published times (Tables 3 and 4) and simulated ones, calibrated as in Table 4.  BCD runs on half of the "
        f"GPUs; its steps times the B-F multiplier {multiplier:.3g} (--multiplier), so that the bars compare whole trainings.")
    return table


def figure6(number, name, title):
    """A step against UFP, of the models of Table 15 or 16."""
    models = [row["model"] for row in published.cells()[f"table{number}"]]
    heads = [Column("flops", "FLOP model", "ms", 0, RECOMPUTED)]
    for model in models:
        data = re.sub("[-.]", "_", model)
        heads += [Column(data, model, "ms", 0, PUBLISHED), Column(f"{data}_simulated", f"{model} sim.", "ms", 0, SIMULATED)]
    table = Table(name, title, "UFP", heads, figure="lines", axis="ms per iteration")
    for submodels in (3, 4, 5):
        times = [cell for model in models for cell in steps.pair(published.step(number, model, submodels))]
        table.row(f"1/{submodels}", steps.scaled_ms(models[-1], submodels), *times)
    table.note(f"\"FLOP model\": the published time of {models[-1]} at 1/3, scaled by operations alone.")
    return table


def figures6():
    return [figure6(15, "figure6", "Figure 6: a step against UFP, GPT"),
            figure6(16, "figure6_llama", "Figure 6: a step against UFP, LLaMA")]
