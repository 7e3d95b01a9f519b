"""Simulates the steps whose times the paper publishes, by `bcd plan`.

The paper does not state its setting.  Its times fit one micro-batch of 1 x 1024 tokens in strict fp32, without overlap
in the pipeline, one rank per GPU and BCD on virtual stages of submodels of equal work.  It uses Megatron-LM, so
attention scores go through memory, and the backward pass of a chunk is one task.  The fraction of the peak that matrix
products reach is unknown: ROOFLINE takes what cuBLAS reaches on other GPUs; CALIBRATED takes the fraction with which
the published time of G-1.6B on one GPU of that kind, which has no communication, comes out.  All other times are then
predictions."""
import dataclasses
import functools
import math

import published
from program import ask_once, flags_of
from published import BCD, CACHED, FULL, OFFLOAD, gpus_of
from tables import DEVIATION, NONE, PUBLISHED, RECOMPUTED, SIMULATED, Cell, Column

ROOFLINE, CALIBRATED = "roofline", "calibrated"
FILLED = 64  # micro-batches that fill a pipeline


def calibration(gpu):
    """The published step that a GPU is calibrated with."""
    method = BCD if gpu == "rtx4090" else FULL
    return next(s for s in published.steps() if (s.gpu, s.model, s.method) == (gpu, "G-1.6B", method))


def flags(step, micro_batches=1, filled=False):
    """What bcd plan is asked: the setting of a step, all of it; filled: with this program's zero-bubble schedule and
    fused attention."""
    nodes, per_node = step.gpus.split("/")
    is_bcd = step.method in (BCD, CACHED)
    return flags_of(
        model=step.model, gpu=step.gpu, nodes=nodes, per_node=per_node, network=50.0, batch=micro_batches, precision="fp32",
        optimizer="adam", pipeline=gpus_of(step.gpus), replicas=1, micro_batches=micro_batches,
        pipeline_schedule="zero-bubble" if filled else "1f1b", method="bcd" if is_bcd else step.method,
        placement="virtual" if is_bcd else "plain", submodels=step.submodels if is_bcd else None,
        cache=step.method == CACHED, equal_work=is_bcd, unfused_attention=not filled, no_recompute=True,
        ignore_memory=True)


def calibrate(step, **rates):
    """Asks for the rates with which a published step comes out."""
    return ask_once("plan", *flags(step), *flags_of(step_ms=float(step.ms), **rates))["rates"]


@functools.cache
def rates(gpu, setting):
    """The rates of a GPU in a setting: flags of bcd plan by name.  The processes of offloaded steps on RTX 4090 are
    calibrated with G-1.6B too."""
    if setting == ROOFLINE:
        return {}
    found = {"efficiency": calibrate(calibration(gpu)).value(gpu, "products")}
    offload = published.step(3, "G-1.6B", 1)
    if offload.gpu == gpu:
        found["host_rate"] = calibrate(offload, **found).value(gpu, "host_process")
    return found


def plan(step, setting, micro_batches=1, filled=False):
    """The answer of bcd plan to a step in a setting."""
    taken = {name: rate for name, rate in rates(step.gpu, setting).items() if step.method == OFFLOAD or name != "host_rate"}
    return ask_once("plan", *flags(step, micro_batches, filled), *flags_of(**taken))


def milliseconds(step, setting, micro_batches=1, filled=False):
    """The simulated milliseconds of 1024 tokens in a step, the mean over the submodels; NaN for a model that Table 8 does
    not describe."""
    if step.model not in published.models():
        return math.nan
    return plan(step, setting, micro_batches, filled)["plan"].column("step")[0].value / micro_batches


def filled_ms(step):
    """The same in a filled pipeline."""
    return milliseconds(step, CALIBRATED, FILLED, filled=True)


def source_of(step):
    """PUBLISHED for the steps that are calibrated with, because simulating them gives the published time again."""
    used = calibration(step.gpu)
    is_used = step.model == used.model and gpus_of(step.gpus) == 1 and (
        step.method == OFFLOAD or (step.method, step.submodels) == (used.method, used.submodels))
    return PUBLISHED if is_used else SIMULATED


def filled_column(decimals):
    return Column("filled", "filled", "ms/1k tok.", decimals, SIMULATED)


# ---- columns --------------------------------------------------------------------------------------


def columns(decimals):
    return [Column("published", "published", "ms", decimals, PUBLISHED),
            Column("roofline", "roofline", "ms", decimals, SIMULATED),
            Column("roofline_deviation", "off", "", 1, NONE, DEVIATION),
            Column("calibrated", "calibrated", "ms", decimals, SIMULATED),
            Column("calibrated_deviation", "off", "", 1, NONE, DEVIATION)]


def cells(step):
    roofline, calibrated = (milliseconds(step, setting) for setting in (ROOFLINE, CALIBRATED))
    return [step.ms, roofline, roofline / step.ms - 1, Cell(calibrated, source_of(step)), calibrated / step.ms - 1]


def pair(step, factor=1):
    """Two cells: the published milliseconds and the simulated ones, calibrated, both times a factor."""
    ms, source = milliseconds(step, CALIBRATED), source_of(step)
    printed = PUBLISHED if factor == 1 else RECOMPUTED
    return [Cell(step.ms * factor, printed), Cell(ms * factor, printed if source == PUBLISHED else source)]


# ---- operations -----------------------------------------------------------------------------------


def operations_ratio(k, submodels, cached=False):
    """The operations of a step of submodel k over those of a full update, for equal submodels that are contiguous in
    depth, k = 1 at the input; k = 0: the mean over the submodels.  Forward, input gradients and weight gradients count 1
    each: forward of all blocks (cached: from submodel k up), input gradients down to submodel k, weight gradients of
    submodel k."""
    if k == 0:
        return sum(operations_ratio(k, submodels, cached) for k in range(1, submodels + 1)) / submodels
    up = (submodels - k + 1) / submodels
    return ((up if cached else 1) + up + 1 / submodels) / 3


def scaled_ms(model, submodels):
    """The published milliseconds at 1/3, scaled by operations alone."""
    return published.bcd_ms(model) * (operations_ratio(0, submodels) / operations_ratio(0, 3))


def cached(step):
    """The same step with the outputs of the frozen prefix kept."""
    return dataclasses.replace(step, method=CACHED)
