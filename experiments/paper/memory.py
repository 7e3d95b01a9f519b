"""`bcd experiment memory`: bytes, published, closed form, planned, and measured here."""
import time

import figure05
import memory_measured
import results
import table08
import tables09_11_memory


def run(options):
    started = time.time()
    found = [table08.table8(), table08.activations(), figure05.figure(), tables09_11_memory.table()]
    measured, provenance = memory_measured.measure(options, len(found))
    return results.finish(options, "memory", found + measured, started, provenance)
