"""A step of each submodel over that of the full update on the same GPUs: in theory, and simulated."""
import published
import steps
from published import BCD, CACHED, FULL, Step
from tables import CLOSED_FORM, SIMULATED, Column, Table


def of_submodels(model, submodels, method, filled):
    """The steps of all submodels and their mean, over the full update's."""
    gpus = f"1/{published.models()[model]['gpus']}"
    setting = {"setting": steps.CALIBRATED, "micro_batches": steps.FILLED if filled else 1, "filled": filled}
    full_ms = steps.plan(Step(0, "rtx4090", model, gpus, FULL, 1), **setting)["plan"].column("step")[0].value
    answer = steps.plan(Step(0, "rtx4090", model, gpus, method, submodels), **setting)
    each = [cell.value for cell in answer["submodels"].column("step")]
    return [ms / full_ms for ms in [*each, answer["plan"].column("step")[0].value]]


def table():
    found = Table("submodels", "A step of each submodel, of a full update on the same GPUs", "UFP", [
        Column("theory", "theory", "/ full", 3, CLOSED_FORM), Column("theory_cached", "cached", "/ full", 3, CLOSED_FORM),
        Column("one", "G-1.6B, 1 GPU", "/ full", 3, SIMULATED), Column("one_cached", "cached", "/ full", 3, SIMULATED),
        Column("many", "G-10B, filled", "/ full", 3, SIMULATED), Column("many_cached", "cached", "/ full", 3, SIMULATED)])
    for submodels in (3, 4, 5):
        shares = [of_submodels(model, submodels, method, filled)
                  for model, filled in (("G-1.6B", False), ("G-10B", True)) for method in (BCD, CACHED)]
        for k, row in enumerate(zip(*shares), 1):
            is_mean = k > submodels
            theory = [steps.operations_ratio(0 if is_mean else k, submodels, cached) for cached in (False, True)]
            found.row(f"1/{submodels} {'mean' if is_mean else f'submodel {k}'}", *theory, *row)
    found.note(
        "Submodels contiguous in depth, from the input side.  Theory: forward 1, input gradients 1, weight gradients 1, of "
        "equal parts; cached: a prefix that is kept and reused often.  The simulated ones add embedding, head, optimizer "
        "and transfers.")
    return found
