"""What a file of trainings has ("bcd study" in experiments/results/README.md): columns, curves, provenance and flags."""
import numpy as np

NATS = "nats per target"
TEXT, INTEGER, REAL = "text", np.int64, np.float64
ROLES = "parameters", "buffers", "gradients", "state", "activations", "cache", "workspace", "total"

# The columns of /table: name, kind, unit, what it is.
COLUMNS = [
    ("row", TEXT, "", "name of the training"),
    ("model", TEXT, "", "preset or specification"),
    ("input", TEXT, "", "images or tokens"),
    ("data", TEXT, "", "data set"),
    ("optimizer", TEXT, "", "its name, as --optimizer has it"),
    ("method", TEXT, "", "full: every parameter at each step; BCD: one submodel; offload: full, with the optimizer in "
     "host memory; otherwise how another program trained, such as LoRA"),
    ("submodels", INTEGER, "", "M"),
    ("imbalance", REAL, "", "the largest submodel over the mean, minus 1"),
    ("order", TEXT, "", "in which the submodels take turns"),
    ("switching", TEXT, "", "when: after K steps, Ee epochs, or auto"),
    ("parameters", INTEGER, "", "trained numbers of the model"),
    ("batch", INTEGER, "samples", "in a step"),
    ("lr", REAL, "", "learning rate"),
    ("weight_decay", REAL, "", "weight decay"),
    ("fraction", REAL, "", "SR: part of the data each submodel sees"),
    ("steps", INTEGER, "steps", "updates done; of one that diverged, those that were asked for"),
    ("epochs", REAL, "epochs", "passes over the data, whichever submodel was active"),
    ("steps_to_converge", REAL, "steps", "updates until the smoothed training loss was at `level`"),
    ("epochs_to_converge", REAL, "epochs", "the same in epochs"),
    ("level", REAL, NATS, "the smoothed training loss at which it is compared with its full update"),
    ("multiplier", REAL, "", "B-F: steps_to_converge over that of the full update"),
    ("valid_steps", REAL, "steps", "updates until the validation loss was at `valid_level`"),
    ("valid_level", REAL, NATS, "the validation loss at which they are compared"),
    ("valid_multiplier", REAL, "", "valid_steps over those of the full update"),
    ("accuracy", REAL, "", "0 to 1, on the validation split at the end"),
    ("perplexity", REAL, "", "exp(valid_loss)"),
    ("valid_loss", REAL, NATS, "on the validation split at the end"),
    ("train_loss", REAL, NATS, "smoothed, at the end"),
    ("plateau_steps", REAL, "steps", "updates to its own convergence; NaN: not by this rule"),
    ("plateau_epochs", REAL, "epochs", "the same in epochs"),
    ("plateau_score", REAL, "", "there: mean of five evaluations, per cent or perplexity"),
    ("plateau_spread", REAL, "", "their standard deviation"),
    ("end_score", REAL, "", "mean of the last five evaluations, per cent or perplexity"),
    ("end_spread", REAL, "", "their standard deviation"),
    *((f"peak_{role}", REAL, "bytes", "measured: " + what) for role, what in zip(ROLES, [
        "weights, active or frozen", "running statistics", "of the active submodel", "optimizer state",
        "kept for the backward pass", "outputs of the frozen prefix", "scratch", "all roles together"])),
    ("resident", REAL, "bytes", "measured: the most that the process held, mapped files included"),
    ("closed_form", REAL, "bytes", "W (1 + (1 + k)/M): parameters, gradients and k vectors of state, as the paper "
     "counts; in bf16 W (1/2 + (2 + k)/M)"),
    ("seconds", REAL, "s", "of training, evaluations left out"),
    ("wall", REAL, "s", "of everything: evaluations and saving too"),
    ("rate", REAL, "1/s", "images or tokens trained on per second"),
    ("seed", INTEGER, "", "of parameters and order of the data"),
    ("threads", INTEGER, "", "OpenMP threads"),
    ("device", TEXT, "", "where it ran"),
    ("cpu", TEXT, "", "which processor, or which ones, \"A then B\", of a training that went on on another computer, or with "
     "other threads or ranks"),
    ("precision", TEXT, "", "of the arithmetic"),
    ("checksum", TEXT, "", "of the training data as loaded"),
    ("commit", TEXT, "", "of the program, or of the programs, \"A then B\""),
    ("started", TEXT, "", "UTC"),
    ("status", TEXT, "", "as that of a run; of bcd experiment finished, or diverged: its loss is not finite, and its curves "
     "end before"),
    ("experiment", TEXT, "", "that trained it; empty of others, and in older files"),
]
UNITS = {name: unit for name, _, unit, _ in COLUMNS}

# The curves: group in a study; group in a run, and attribute of a study.Training; kind and unit of each column.
COUNT, LOSS = (np.uint64, ""), (REAL, NATS)
PARTS = [
    ("training", "curve", {"step": COUNT, "samples": COUNT, "loss": LOSS, "lr": (REAL, ""), "submodel": (np.int32, ""),
                           "seconds": (REAL, "s")}),
    ("evaluation", "evaluation", {"step": COUNT, "loss": LOSS, "accuracy": (REAL, ""), "perplexity": (REAL, ""),
                                  "seconds": (REAL, "s")}),
    ("switches", "switches", {"step": COUNT, "submodel": (np.int32, ""), "phase": COUNT, "reason": (TEXT, ""),
                              "earlier_loss": LOSS, "window_loss": LOSS}),
]
PROVENANCE = {  # the attributes of a run, and how a study stores them
    "commit": TEXT, "command": TEXT, "compiler": TEXT, "flags": TEXT, "cpu": TEXT, "device": TEXT, "precision": TEXT,
    "started": TEXT, "accelerator": TEXT, "runtime": TEXT, "driver": TEXT, "libraries": TEXT, "threads": np.int32,
    "ranks": np.int32, "seed": np.uint64, "wall": REAL}
OPTIONAL = {"accelerator", "runtime", "driver", "libraries", "ranks"}

# Flags that were added after the first files, with what a training did without them.
ADDED_FLAGS = {"always-active": "", "beta1": 0.9, "beta2": 0.999, "correct-above": 0.0, "eps": 1e-8, "submodel-lr": "",
               "switch-warmup": 0, "valid": ""}
# Flags whose values are texts; those of all others are numbers.  Files are read without the program, so this is not asked.
TEXT_FLAGS = {"always-active", "data", "data-dir", "decay", "device", "frozen-norm", "init", "method", "model", "optimizer",
              "order", "partition", "pipeline", "pipeline-schedule", "placement", "precision", "schedule", "submodel-lr",
              "switch-every", "valid"}
# Settings that every training has, and that are computed with.
NEEDED = "model", "data", "optimizer", "lr", "batch", "momentum"
