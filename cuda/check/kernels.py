#!/usr/bin/env python3
"""kernels.py STEP CSV MS: what ncu saw of a training step, kernel by kernel, as one line each for the
benchmark's --add on stdout, the longest first; on stderr the first thirty, for people.  The step took
MS by itself (0: not known); ncu may have missed nodes of its graph, and then says less."""
import csv
import sys

SEEN = 0.8  # of a step at least, or kernels are missing
TIME, BYTES = "gpu__time_duration.sum", ("dram__bytes_read.sum", "dram__bytes_write.sum")
SHOWN = 30


def number(text):
    """0 for a counter that could not be read: ncu writes n/a."""
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return 0.0


def main():
    step, path, whole = sys.argv[1:]
    with open(path, newline="", errors="replace") as file:
        lines = [line for line in file if line.startswith('"')]
    rows = list(csv.DictReader(lines))
    kernels = {}
    for row in rows[1:]:  # the first holds the units: ns and bytes, as asked for
        kernel = kernels.setdefault(row["Kernel Name"], [0, 0.0, 0.0])
        kernel[0] += 1
        kernel[1] += number(row[TIME]) * 1e-6
        kernel[2] += sum(number(row[name]) for name in BYTES)
    if not kernels:
        sys.exit("kernels: %s has no kernel" % path)
    longest = sorted(kernels.items(), key=lambda kernel: -kernel[1][1])
    total = sum(kernel[1] for kernel in kernels.values())
    print("%d kernels, %d launches, %.3f ms in a step of %s" %
          (len(kernels), len(rows) - 1, total, step), file=sys.stderr)
    if total < SEEN * float(whole):
        print("WARNING: that is %.0f %% of the %s ms it takes: kernels are missing" %
              (100 * total / float(whole), whole), file=sys.stderr)
    for place, (name, (times, ms, moved)) in enumerate(longest):
        if place < SHOWN:
            print("%9.3f ms %4.0f%% %4d x %9.1f GB/s  %.110s" %
                  (ms, 100 * ms / total, times, moved / ms * 1e-6 if ms else 0, name),
                  file=sys.stderr)
        print("\t".join(["kernel", name.replace("\t", " ")[:127], "1", "-", step, "-", str(times)] +
                        ["%.6f" % ms] * 3 + [str(times), "%.0f" % moved, "-"]))


if __name__ == "__main__":
    main()
