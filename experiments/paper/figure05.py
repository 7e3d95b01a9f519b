"""Figure 5: memory against UFP, the unfrozen part."""
import published
from table08 import plan
from tables import CLOSED_FORM, PERCENT, Column, Table


def figure():
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
