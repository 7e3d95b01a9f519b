#!/usr/bin/env python3
"""Times the training steps of build/bench in PyTorch:  peers.py BENCH [MODEL...] [OPTION...]

Both programs stay open and take turns, a few steps each, so that other work of the machine slows
both.  PyTorch runs with its fastest settings for a CPU: all vector instructions, images with the
channels last, an allocator that keeps its pages, no gradients of what does not train.

    --quick      small models and few steps, which show that everything works and measure little
    --rounds=N   the number of turns of each program
    --cpu-time   one thread each, and processor time, for a machine with other users
"""
import glob
import importlib.util
import os
import re
import statistics
import subprocess
import sys
import time

sys.dont_write_bytecode = True

# name: (our specification, optimizer, batch, rounds, steps a turn)
JOBS = {
    "gpt2": ("gpt2:context=64", "adamw", 4, 4, 3),
    "resnet20": ("resnet20", "sgd", 128, 6, 5),
    "resnet14": ("resnet14", "sgd", 128, 6, 5),
    "resnet8": ("resnet8", "sgd", 128, 6, 5),
    "smollm2": ("smollm2:context=128", "adamw", 4, 3, 2),
}
QUICK = {
    "gpt2": ("gpt:layers=3,width=192,heads=3,context=64,vocabulary=2000", "adamw", 4, 2, 2),
    "resnet8": ("resnet:depth=8,width=8,classes=10,size=32", "sgd", 16, 2, 2),
}
# The models of these names, in the words of tests/fixtures/networks.py.
SPELLED_OUT = {
    "gpt2:context=64": "gpt:layers=12,width=768,heads=12,context=64,vocabulary=50257",
    "resnet20": "resnet:depth=20,width=16,classes=10,size=32",
    "resnet14": "resnet:depth=14,width=16,classes=10,size=32",
    "resnet8": "resnet:depth=8,width=16,classes=10,size=32",
}
# SmolLM2 135M, which data/fetch smollm2 brings. PyTorch loads it into the model of transformers.
SMOLLM2 = os.path.join(os.environ.get("BCD_DATA", "datasets"), "smollm2")
SPELLED_OUT["smollm2:context=128"] = (
    "llama:layers=30,width=576,heads=9,groups=3,ffn=1536,context=128,vocabulary=49152,tied=1,"
    "rope_base=100000")
PARTS = ["full", "bottom third", "middle third", "top third"]


def best_environment():
    """The environment of the worker. Debian's OpenBLAS does not know every processor, and uses a
    slow kernel for one that it does not know. glibc returns large arrays to the system at every
    free, and the next step has to map the pages again."""
    environment = {key: value for key, value in os.environ.items()
                   if not key.startswith("OPENBLAS_")}  # variables that were set for other purposes
    environment["OMP_NUM_THREADS"] = str(threads())
    environment["MALLOC_MMAP_THRESHOLD_"] = environment["MALLOC_TRIM_THRESHOLD_"] = str(1 << 33)
    environment["MALLOC_TOP_PAD_"] = str(1 << 28)
    try:
        flags = open("/proc/cpuinfo").read()
    except OSError:
        flags = ""
    if "avx512f" in flags:
        environment["OPENBLAS_CORETYPE"] = "SkylakeX"
        environment["ATEN_CPU_CAPABILITY"] = "avx512"
    # OpenBLAS's own threads and PyTorch's wait for each other and take twice as long; the OpenBLAS
    # that uses OpenMP shares PyTorch's threads.
    for library in glob.glob("/usr/lib/*/openblas-openmp/libblas.so.3"):
        others = environment.get("LD_LIBRARY_PATH")
        environment["LD_LIBRARY_PATH"] = os.path.dirname(library) + (":" + others if others else "")
    return environment


def threads():
    if "--cpu-time" in sys.argv:
        return 1
    return int(os.environ.get("OMP_NUM_THREADS", len(os.sched_getaffinity(0))))


# ---- the worker: PyTorch, which reads commands on stdin as `bench serve` does
# ----------------------

def worker(spec, optimizer_name, batch):
    import torch
    from torch import nn
    from torch.nn import functional as F
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fixtures"))
    import networks

    torch.set_num_threads(threads())
    torch.manual_seed(1)

    class Attention(networks.Attention):
        """The same attention, with a mask that is made once and added in the product."""

        def forward(self, x):
            n, t, c = x.shape
            d = c // self.heads
            if not hasattr(self, "mask"):
                self.mask = torch.full((t, t), float("-inf")).triu(1)
            q, k, v = (part.view(n, t, self.heads, d).transpose(1, 2).reshape(-1, t, d)
                       for part in self.qkv(x).split(c, dim=2))
            p = torch.baddbmm(self.mask, q, k.transpose(1, 2), alpha=d ** -0.5).softmax(dim=2)
            y = torch.bmm(p, v).view(n, self.heads, t, d).transpose(1, 2)
            return self.out(y.reshape(n, t, c))

    class Pretrained(nn.Module):
        """The real model, cut into the blocks of ours."""

        def __init__(self):
            super().__init__()
            from transformers import AutoModelForCausalLM
            self.model = AutoModelForCausalLM.from_pretrained(SMOLLM2, dtype=torch.float32,
                                                              trust_remote_code=False)

        def blocks(self):
            inner = self.model.model
            parts = [inner.embed_tokens, *inner.layers,
                     nn.ModuleList([inner.norm, self.model.lm_head])]
            return list(enumerate(parts))

        def forward(self, tokens):
            return self.model(tokens, use_cache=False).logits

    networks.Attention = Attention
    real = spec.startswith("smollm2")
    net = Pretrained() if real else networks.build(SPELLED_OUT.get(spec, spec))
    settings = dict(p.split("=") for p in SPELLED_OUT.get(spec, spec).split(":")[1].split(","))
    if "context" in settings:
        shape, bound = (batch, int(settings["context"])), int(settings["vocabulary"])
        inputs, targets = torch.randint(bound, shape), torch.randint(bound, shape)
        for module in net.modules():
            if isinstance(module, nn.Embedding) and not real:
                nn.init.normal_(module.weight, std=0.02)
    else:
        net = net.to(memory_format=torch.channels_last)
        size = int(settings["size"])
        inputs = torch.randn(batch, 3, size, size).to(memory_format=torch.channels_last)
        targets = torch.randint(int(settings["classes"]), (batch,))
        for module in net.modules():
            if isinstance(module, nn.ReLU):
                module.inplace = True

    def activate(part):
        trained = networks.activate(net, part)
        if optimizer_name == "sgd":
            return torch.optim.SGD(trained, lr=1e-4, momentum=0.9, weight_decay=1e-5, foreach=True)
        return torch.optim.AdamW(trained, lr=1e-7, weight_decay=1e-5, foreach=False)

    clock = time.process_time if "--cpu-time" in sys.argv else time.perf_counter

    def step(optimizer):
        begin = clock()
        optimizer.zero_grad(set_to_none=True)
        logits = net(inputs)
        F.cross_entropy(logits.flatten(0, -2), targets.flatten()).backward()
        optimizer.step()
        return 1e3 * (clock() - begin)

    maps = open("/proc/self/maps").read() if os.path.exists("/proc/self/maps") else "openblas"
    if not any(word in maps for word in ("openblas", "mkl", "blis", "atlas")):
        print("peers: this PyTorch multiplies matrices with the plain reference BLAS, which takes "
              "twenty times as long: install libopenblas0-openmp", file=sys.stderr)
    print("ready", sum(p.numel() for p in net.parameters()), torch.__version__, flush=True)
    for line in sys.stdin:
        part, steps = (int(word) for word in line.split())
        optimizer = activate(part)
        for _ in range(3):  # steps are slow until the allocator has all its pages
            step(optimizer)
        print(*("%.3f" % step(optimizer) for _ in range(steps)), flush=True)


# ---- the comparison ------------------------------------------------------------------------------

class Peer:
    def __init__(self, command, environment=None):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        env=environment, text=True)
        ready = self.process.stdout.readline().split()
        if not ready or ready[0] != "ready":
            sys.exit("peers: %s did not start" % " ".join(command))
        self.parameters = int(ready[1])

    def turn(self, part, steps):
        self.process.stdin.write("%d %d\n" % (part, steps))
        self.process.stdin.flush()
        times = [float(word) for word in self.process.stdout.readline().split()]
        if len(times) != steps:
            sys.exit("peers: a program stopped")
        return times

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def progress(text):
    if sys.stderr.isatty():
        print("\r\033[K" + text, end="", file=sys.stderr, flush=True)


def spread(values):
    return "%8.3f (%.3f .. %.3f)" % (statistics.median(values), min(values), max(values))


def compare(bench, name, job):
    spec, optimizer, batch, rounds, steps = job
    rounds = next((int(word[9:]) for word in sys.argv if word.startswith("--rounds=")), rounds)
    arguments = [spec, optimizer, str(batch)] + ["--cpu-time"] * ("--cpu-time" in sys.argv)
    ours = Peer([bench, "serve", SPELLED_OUT.get(spec, spec)] + arguments[1:])
    torch = Peer([sys.executable, os.path.abspath(__file__), "--worker"] + arguments,
                 best_environment())
    if ours.parameters != torch.parameters:
        sys.exit("peers: %s: %d parameters here, %d in PyTorch"
                 % (spec, ours.parameters, torch.parameters))
    times = {(who, part): [] for who in "AB" for part in range(len(PARTS))}
    for turn in range(rounds):
        for part, what in enumerate(PARTS):
            progress("%s: round %d of %d, %s" % (name, turn + 1, rounds, what))
            times["A", part].append(ours.turn(part, steps))
            times["B", part].append(torch.turn(part, steps))
    progress("")
    ours.close()
    torch.close()

    print("\n%s, %d parameters, batch %d, %s; %d rounds of %d steps, by turns"
          % (spec, ours.parameters, batch, optimizer, rounds, steps))
    context = re.search(r"context=(\d+)", spec)
    print("%-13s %11s %11s   %-26s %-26s %s" % (
        "", "ours", "PyTorch", "ours / PyTorch (by round)", "part / full: ours", "PyTorch"))
    medians = {key: [statistics.median(turn) for turn in turns] for key, turns in times.items()}
    for part, what in enumerate(PARTS):
        a, b = medians["A", part], medians["B", part]
        line = "%-13s %8.1f ms %8.1f ms   %-26s" % (
            what, statistics.median(a), statistics.median(b),
            spread([x / y for x, y in zip(a, b)]))
        for who, part_times in (("A", a), ("B", b)):
            line += " %-26s" % (spread([x / y for x, y in zip(part_times, medians[who, 0])])
                                if part else "")
        if context:
            tokens = 1e3 * batch * int(context.group(1))
            line += "  tokens/s: %.0f, PyTorch %.0f" % (tokens / statistics.median(a),
                                                       tokens / statistics.median(b))
        print(line.rstrip(), flush=True)


def main():
    arguments = [word for word in sys.argv[1:] if not word.startswith("--") or word == "--worker"]
    jobs = QUICK if "--quick" in sys.argv else JOBS
    if arguments and arguments[0] == "--worker":
        return worker(arguments[1], arguments[2], int(arguments[3]))
    if not arguments:
        sys.exit("usage: peers.py BENCH [%s]... [--quick] [--rounds=N] [--cpu-time]"
                 % "|".join(jobs))
    try:
        import torch
    except ImportError:
        print("bench-peers: skipped, %s has no torch" % sys.executable)
        return None
    for name in arguments[1:]:
        if name not in jobs:
            sys.exit("peers: no model %s; there are %s" % (name, " ".join(jobs)))
    print("PyTorch %s next to %s, %d thread(s) each%s" % (
        torch.__version__, arguments[0], threads(),
        ", processor time" if "--cpu-time" in sys.argv else ""))
    for name in arguments[1:] or jobs:
        if name == "smollm2" and not os.path.isdir(SMOLLM2):
            print("\nsmollm2: skipped, there is no %s; data/fetch smollm2 brings it" % SMOLLM2)
            continue
        if name == "smollm2" and not importlib.util.find_spec("transformers"):
            print("\nsmollm2: skipped, %s has no transformers" % sys.executable)
            continue
        compare(arguments[0], name, jobs[name])
    return None


if __name__ == "__main__":
    main()
