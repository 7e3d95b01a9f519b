#!/usr/bin/env python3
"""Times the steps of a pipeline of two ranks, next to torch.distributed.pipelining:
pipeline_peers.py BCD [--quick] [--rounds=N]

Both are given the same network, batch, micro-batches and schedule (1F1B), and one thread a rank. Ours
runs as threads, and as processes with MPI where mpirun is; PyTorch's are processes with gloo. They
take turns of a few steps each, so that other work of the machine slows all of them.
"""
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

RANKS, MICRO_BATCHES, BATCH = 2, 8, 16
NETWORK = "llama:layers=6,width=256,heads=4,ffn=704,context=128,vocabulary=256"
QUICK = "llama:layers=4,width=64,heads=4,ffn=96,context=32,vocabulary=256"


# ---- a rank of PyTorch ---------------------------------------------------------------------------

def worker(spec, steps):
    """Prints the seconds of each step, on the last rank."""
    import time

    import torch
    import torch.distributed as dist
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B
    from torch.nn import functional as F
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fixtures"))
    import networks

    rank = int(os.environ["RANK"])
    torch.set_num_threads(1)
    torch.manual_seed(1)
    dist.init_process_group("gloo")
    blocks = [block for _, block in networks.build(spec).blocks()]
    half = len(blocks) // 2
    part = torch.nn.Sequential(*(blocks[half:] if rank else blocks[:half]))
    for parameter in part.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.02)
    stage = PipelineStage(part, rank, RANKS, torch.device("cpu"))
    schedule = Schedule1F1B(
        stage, MICRO_BATCHES,
        loss_fn=lambda logits, targets: F.cross_entropy(logits.flatten(0, 1), targets.flatten()))
    optimizer = torch.optim.AdamW(part.parameters(), lr=1e-7, foreach=False)
    context = int(re.search(r"context=(\d+)", spec).group(1))
    tokens = torch.randint(256, (BATCH, context))
    for number in range(steps):
        dist.barrier()
        begin = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        if rank:
            schedule.step(target=tokens, losses=[])
        else:
            schedule.step(tokens)
        optimizer.step()
        dist.barrier()
        if rank and number:  # the first step finds out the shapes
            print("%.6f" % (time.perf_counter() - begin), flush=True)
    dist.destroy_process_group()


# ---- turns ---------------------------------------------------------------------------------------

def torch_steps(spec, steps):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ranks = []
    for rank in range(RANKS):
        environment = dict(os.environ, RANK=str(rank), WORLD_SIZE=str(RANKS), OMP_NUM_THREADS="1",
                           MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port),
                           GLOO_SOCKET_IFNAME="lo")
        ranks.append(subprocess.Popen(
            [sys.executable, os.path.abspath(__file__), "--worker", spec, str(steps + 1)],
            env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    printed = [rank.communicate() for rank in ranks]
    if any(rank.returncode for rank in ranks):
        sys.exit("pipeline_peers: PyTorch's ranks failed: " + printed[0][1] + printed[1][1])
    return [float(line) for line in printed[1][0].split()]


def our_steps(bcd, spec, steps, submodels, processes):
    """With submodels, of a whole cycle, in which each trains for the same number of steps."""
    with tempfile.TemporaryDirectory() as directory:
        phase = (steps + submodels - 1) // submodels
        command = [bcd, "train", "--model", spec, "--data", "text", "--batch", str(BATCH),
                   "--accumulate", str(MICRO_BATCHES), "--submodels", str(submodels),
                   "--switch-every", str(phase), "--steps", str(phase * submodels),
                   "--limit", str(BATCH * 4), "--optimizer", "adamw", "--clip", "0",
                   "--placement", "plain" if submodels == 1 else "virtual", "--threads", "1",
                   "--eval-every", "1000000", "--quiet", "--out", directory + "/run"]
        command += ["--pipeline", "mpi" if processes else "local:%d" % RANKS]
        if processes:
            command = ["mpirun", "--bind-to", "none", "-n", str(RANKS)] + command
        environment = dict(os.environ, OMP_NUM_THREADS="1", OMPI_ALLOW_RUN_AS_ROOT="1",
                           OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                           OMPI_MCA_rmaps_base_oversubscribe="1",
                           PRTE_MCA_rmaps_default_mapping_policy=":oversubscribe")
        subprocess.run(command, env=environment, check=True)
        printed = subprocess.run(["h5dump", "-y", "-w", "1", "-m", "%.9g", "-d", "/curve/seconds",
                                  directory + "/run/run.h5"], check=True, capture_output=True,
                                 text=True).stdout
    ends = [0.0] + [float(number) for number in re.findall(r"^\s+([0-9.e+-]+),?$", printed, re.M)]
    return [end - begin for begin, end in zip(ends, ends[1:])]


def main():
    if sys.argv[1:2] == ["--worker"]:
        return worker(sys.argv[2], int(sys.argv[3]))
    quick = "--quick" in sys.argv
    rounds = next((int(word[9:]) for word in sys.argv if word.startswith("--rounds=")),
                  1 if quick else 4)
    try:
        import torch
        import torch.distributed.pipelining  # noqa: F401
    except ImportError:
        print("bench-peers: pipelines skipped, %s has no torch.distributed.pipelining"
              % sys.executable)
        return None
    bcd, spec, steps = sys.argv[1], QUICK if quick else NETWORK, 3 if quick else 6
    mpi = subprocess.run("command -v mpirun && ls %s/libbcd-mpi.so" % os.path.dirname(bcd),
                         shell=True, capture_output=True).returncode == 0
    rows = {"PyTorch %s, gloo, full" % torch.__version__: lambda: torch_steps(spec, steps),
            "ours, threads, full": lambda: our_steps(bcd, spec, steps, 1, False),
            "ours, threads, BCD-1/3": lambda: our_steps(bcd, spec, steps, 3, False)}
    if mpi:
        rows["ours, MPI, full"] = lambda: our_steps(bcd, spec, steps, 1, True)
        rows["ours, MPI, BCD-1/3"] = lambda: our_steps(bcd, spec, steps, 3, True)
    times = {name: [] for name in rows}
    for _ in range(rounds):
        for name, run in rows.items():
            times[name].append(statistics.median(run()))
    print("\n%s, batch %d in %d micro-batches, %d ranks of one thread; medians of %d rounds of %d "
          "steps, by turns" % (spec, BATCH, MICRO_BATCHES, RANKS, rounds, steps))
    for name, seconds in times.items():
        print("%-32s %7.3f s (%.3f .. %.3f)" % (name, statistics.median(seconds), min(seconds),
                                               max(seconds)))
    return None


if __name__ == "__main__":
    main()
