#!/usr/bin/env python3
"""Times the training steps of bench-cuda in PyTorch, with its fastest settings: fused optimizers,
FlashAttention, channels last for images; eager, compiled, and as CUDA graphs.

    --out FILE     adds a line for each time; what the file already has is not measured again
    --device D     cuda; simt: a dry run on the CPU, with the PyTorch that is installed
    --tiny         small models, which show that everything works and measure nothing
    --seconds S    starts nothing more after this time

The exit status is 1 when a mode failed, and 75 when the time was too short for everything.

A line has these fields, separated by tabs: "peer", model, samples, precision, which blocks train,
mode, 1, median, minimum and maximum ms, repeats, 0, "-"; of a mode that failed zeros and the error.
bf16 is autocast, whose weights are float like our masters.  PyTorch's inputs are on the device
before the clock starts; ours are not.
"""
import argparse
import contextlib
import os
import statistics
import sys
import time

sys.dont_write_bytecode = True
START = time.perf_counter()
TRY_AGAIN = 75

# PyTorch is faster with 50,304 rows, a multiple of 64, for the 50,257 tokens.
GPT2 = "gpt:layers=12,width=768,heads=12,context=1024,vocabulary=50304"
G16 = "gpt:layers=30,width=2048,heads=16,context=1024,vocabulary=50304"
TOKENS = 50257
RESNET = "resnet:depth=%d,width=16,classes=10,size=32"
TINY_GPT = "gpt:layers=3,width=16,heads=2,context=8,vocabulary=40"
PARTS = ["full", "bottom third", "middle third", "top third"]

FULL, THIRDS = [0], [1, 2, 3]
EVERY = FULL + THIRDS

# name, specification, optimizer, samples, precision, parts.  The most important come first: KEY.
JOBS = [("gpt2", GPT2, "adamw", 32, "bf16", FULL),
        ("resnet20", RESNET % 20, "sgd", 1024, "tf32", FULL),
        ("G-1.6B", G16, "adamw", 8, "bf16", THIRDS)]
KEY = len(JOBS)
JOBS += [("gpt2", GPT2, "adamw", 32, "bf16", EVERY)]
JOBS += [("resnet20", RESNET % 20, "sgd", n, "tf32", EVERY) for n in (128, 1024)]
JOBS += [("gpt2", GPT2, "adamw", 32, "tf32", EVERY)]
JOBS += [("G-1.6B", G16, "adamw", n, "bf16", EVERY) for n in (8, 1, 4, 16)]
JOBS += [("resnet%d" % depth, RESNET % depth, "sgd", n, precision, EVERY)
         for precision in ("bf16", "tf32", "fp32") for depth in (20, 8, 14) for n in (128, 1024)
         if (precision, depth) != ("tf32", 20)]
JOBS += [("gpt2", GPT2, "adamw", 32, "fp32", EVERY)]
TINY = [(TINY_GPT, TINY_GPT, "adamw", 2, "bf16", EVERY),
        ("resnet:depth=8,width=4,size=8", "resnet:depth=8,width=4,classes=10,size=8", "sgd", 2,
         "tf32", EVERY)]


def set_precision(torch, precision):
    allowed = precision != "fp32"
    torch.backends.cuda.matmul.allow_tf32 = allowed
    torch.backends.cudnn.allow_tf32 = allowed
    torch.backends.cudnn.benchmark = True


def build(torch, spec):
    """The network of the fixtures, with the attention that is fastest in PyTorch."""
    from torch import nn
    from torch.nn import functional as F
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fixtures"))
    import networks
    plain = networks.Attention

    class Attention(plain):
        def forward(self, x):
            if self.rope or not hasattr(F, "scaled_dot_product_attention"):
                return super().forward(x)
            n, t, c = x.shape
            q, k, v = (part.view(n, t, self.heads, c // self.heads).transpose(1, 2)
                       for part in self.qkv(x).split(c, dim=2))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.out(y.transpose(1, 2).reshape(n, t, c))

    networks.Attention = Attention
    try:
        net = networks.build(spec)
    finally:
        networks.Attention = plain
    for module in net.modules():
        if isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, std=0.02)
        if isinstance(module, nn.ReLU):
            module.inplace = True
    return net


class Training:
    """One model on the device, its inputs, and a step of some of its blocks."""

    def __init__(self, torch, device, job):
        self.torch, self.device = torch, device
        self.name, spec, self.optimizer_name, self.n, self.precision, _ = job
        settings = dict(pair.split("=") for pair in spec.split(":")[1].split(","))
        set_precision(torch, self.precision)
        torch.manual_seed(1)
        with torch.device(device):  # on the CPU G-1.6B takes minutes to initialise
            self.net = build(torch, spec).to(device)
        if "context" in settings:
            shape, bound = (self.n, int(settings["context"])), min(int(settings["vocabulary"]), TOKENS)
            self.inputs = torch.randint(bound, shape, device=device)
            self.targets = torch.randint(bound, shape, device=device)
        else:
            size = int(settings["size"])
            self.net = self.net.to(memory_format=torch.channels_last)
            self.inputs = torch.randn(self.n, 3, size, size, device=device).to(
                memory_format=torch.channels_last)
            self.targets = torch.randint(int(settings["classes"]), (self.n,), device=device)

    def activate(self, part, capturable):
        import networks
        trained = networks.activate(self.net, part)
        fused = {"fused": True} if self.device == "cuda" else {}
        if self.optimizer_name == "sgd":
            return self.torch.optim.SGD(trained, lr=1e-4, momentum=0.9, weight_decay=1e-5, **fused)
        if capturable:
            fused["capturable"] = True
        return self.torch.optim.AdamW(trained, lr=1e-7, weight_decay=1e-5, **fused)

    def loss(self, net):
        from torch.nn import functional as F
        cast = contextlib.nullcontext()
        if self.precision == "bf16":
            cast = self.torch.autocast(self.device, self.torch.bfloat16, cache_enabled=False)
        with cast:
            logits = net(self.inputs)
            return F.cross_entropy(logits.flatten(0, -2), self.targets.flatten())

    def stepper(self, part, mode):
        """Returns a function that does one step."""
        torch = self.torch
        optimizer = self.activate(part, mode == "graphs")
        net = torch.compile(self.net) if mode == "compiled" else self.net

        def step():
            optimizer.zero_grad(set_to_none=True)
            self.loss(net).backward()
            optimizer.step()

        if mode != "graphs":
            return step
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                step()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step()

        def replay(_owner=step):  # its optimizer has states that the graph writes
            graph.replay()

        return replay

    def wait(self):
        if self.device == "cuda":
            self.torch.cuda.synchronize()


def measure(training, step, enough):
    """Returns the milliseconds of steps.  Each ends when the device is done, as ours do."""
    for _ in range(3):
        step()
    training.wait()
    times = []
    while len(times) < 3 or (sum(times) < enough and len(times) < 256):
        begin = time.perf_counter()
        step()
        training.wait()
        times.append(1e3 * (time.perf_counter() - begin))
    return times


def key_of(job, part, mode):
    """Returns the fields that identify a line: the first ones."""
    return ("peer", job[0], str(job[3]), job[4], PARTS[part], mode)


def add_line(out, key, times, error="-"):
    figures = (statistics.median(times), min(times), max(times)) if times else (0, 0, 0)
    with open(out, "a") as lines:
        lines.write("\t".join((*key, "1", *("%.4f" % figure for figure in figures),
                               str(len(times)), "0", error)) + "\n")


def run_job(torch, options, job, done, modes):
    todo = [(mode, part) for mode in modes for part in job[5]
            if (mode != "compiled" or part == 0) and key_of(job, part, mode) not in done]
    training, skipped, failed = None, 0, 0
    for mode, part in todo:
        what = "%s, %d samples, %s, %s, %s" % (job[0], job[3], job[4], mode, PARTS[part])
        if time.perf_counter() - START > options.seconds:
            print("skipped, no time left: PyTorch's " + what)
            skipped += 1
            continue
        try:
            training = training or Training(torch, options.torch_device, job)
            times = measure(training, training.stepper(part, mode), 0 if options.tiny else 500)
            add_line(options.out, key_of(job, part, mode), times)
        except Exception as error:  # one mode that fails must not hide the others
            why = " ".join(str(error).split())[:120] or repr(error)
            print("PyTorch's %s: %s" % (what, why))
            add_line(options.out, key_of(job, part, mode), [], why)
            training = None
            failed += 1
        done.add(key_of(job, part, mode))
        release(torch, options, training)
    del training
    release(torch, options, None)
    return skipped, failed


def release(torch, options, training):
    """Gives back what the last mode has left: gradients, and what the allocator keeps of graphs."""
    if training:
        training.net.zero_grad(set_to_none=True)
    if options.torch_device == "cuda":
        torch.cuda.empty_cache()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="peers.tsv")
    parser.add_argument("--device", default="cuda", choices=["cuda", "simt"])
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--tiny", action="store_true")
    options = parser.parse_args()
    try:
        import torch
    except ImportError:
        print("peers: skipped, %s has no torch" % sys.executable)
        return
    options.torch_device = "cuda" if options.device == "cuda" else "cpu"
    if options.device == "cuda" and not torch.cuda.is_available():
        print("peers: skipped, this torch (%s) sees no GPU" % torch.__version__)
        return
    print("PyTorch %s on %s" % (torch.__version__, options.torch_device))
    done = set()
    if os.path.exists(options.out):
        with open(options.out) as lines:
            done = {tuple(line.split("\t")[:6]) for line in lines}
    # Compiling takes longest, so it comes behind the other modes; but those of all jobs take more
    # time than there is, and the key jobs are compiled before.
    passes = [["eager", "graphs"], ["compiled"]] if options.device == "cuda" else [["eager"]]
    jobs = TINY if options.tiny else JOBS
    ends = [run_job(torch, options, job, done, modes) for some in (jobs[:KEY], jobs[KEY:])
            for modes in passes for job in some]
    if any(failed for _, failed in ends):
        sys.exit(1)
    sys.exit(TRY_AGAIN if any(skipped for skipped, _ in ends) else 0)


if __name__ == "__main__":
    main()
