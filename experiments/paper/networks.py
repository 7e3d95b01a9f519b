"""The networks that the experiments memory and timing measure: those of a preset, or of --models."""
from dataclasses import dataclass

from program import reads_tokens


@dataclass(frozen=True)
class Network:
    model: str
    data: str
    optimizer: str
    batch: int


def chosen(options, preset):
    """The networks of a preset, or those of --models: on generated images or on the project's text, with the batch of
    the preset's network for the same data (or of its last one)."""
    if not options.models:
        return preset
    return [of_model(model, preset) for model in options.models]


def of_model(model, preset):
    data, optimizer = ("text", "adam") if reads_tokens(model) else ("synthetic", "sgd")
    alike = [network for network in preset if network.data == data]
    return Network(model, data, optimizer, (alike or preset[-1:])[0].batch)


def flags(options, network, **more):
    """Flags of bcd trace and train: the network, 256 samples, and the device that was asked for.  Every block belongs to
    a submodel, and no gradient is clipped."""
    asked = {name: options.flags.get(name) for name in ("device", "precision")}
    return dict(model=network.model, data=network.data, optimizer=network.optimizer, batch=network.batch, limit=256,
                clip=0, always_active="none", **asked, **more)
