"""`bcd experiment finetune`: a pretrained model, and what full update and BCD make of it on other data."""
import copy
import pathlib

import program
import run as trainer
import trainings
from errors import Refused

# What holds for the pretraining of finetune, too.
SHARED = ("context", "device", "precision", "threads", "data-dir")
NO_PRETRAINING = ("text1", "text2")  # halves of the project's own text


def run(options):
    """Fine-tunes a pretrained model on other data by full update and by BCD.  Without --init it first pretrains a model
    by full update and exports it to DIR/pretrained, so that all trainings start from the same files."""
    init = options.flags.get("init")
    if options.preset == "paper":
        print("finetune: the published settings are not known; --preset gpu has our own")
        return 0
    if init and "data" not in options.flags:
        raise Refused(f"--init {init}: give --data, to fine-tune on")
    if init and options.models:
        raise Refused(f"--init {init}: the model comes from there; leave out --models and --model")
    if len(options.models or []) > 1:
        raise Refused(f"--models {' '.join(options.models)}: one model is pretrained and then fine-tuned")
    options = copy.deepcopy(options)
    if not init:
        before = copy.deepcopy(options)
        before.seeds, before.optimizers = 1, None
        before.flags = {name: value for name, value in options.flags.items() if name in SHARED}
        choose_data(before, options)
        status = trainer.train("pretraining", before)
        plan = trainings.Plan("pretraining", before)
        if status or options.estimate or (plan.long and not options.yes):
            return status
        folder = pathlib.Path(options.out)
        init = str(folder / "pretrained")
        program.run("export", str(folder / "rows" / plan.rows[0].name), "--out", init)
        options.flags["init"], options.models = init, None
    return trainer.train("finetune", options)


def choose_data(before, after):
    """Takes the two halves of the project's own text when one of the data sets is missing."""
    known = trainings.experiments()
    first, then = (known[name][after.preset][0]["data"] for name in ("pretraining", "finetune"))
    folder, given = trainings.data_dir(after.flags.get("data-dir")), "data" in after.flags
    if trainings.is_present(first, folder) and (given or trainings.is_present(then, folder)):
        return
    if not after.quiet:
        print(f"{first} or {then} is missing; text1 and text2 replace both")
    before.flags["data"] = NO_PRETRAINING[0]
    after.flags.setdefault("data", NO_PRETRAINING[1])
