# Passes the output of the test programs through, and ends with one line for all of them, of which
# there should be `expected` (awk -v).  A program that ended without its own totals has died, which is a failure.
{ print; fflush() }
/^(float|double|simt|cuda): [0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$/ {
    passed += $2
    failed += $4
    skipped += $6
    programs++
}
/^(float|double|simt|cuda): / { ran = $2 > 0; reported = $4 > 0 }
# A suite of ref/ is in both programs, others in one: a program may have nothing to do when suites
# were selected by name.  But a leak found at the end fails a program whose tests passed.
/^tests-[a-z]+: exit status/ { if (ran && !reported) failed++ }
END {
    failed += expected - programs
    if (passed + failed == 0) failed++
    printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped
    exit failed > 0
}
