# Passes the output of the test programs through, and ends with one line for all of them.  A
# program that ended without its own totals has died, which is a failure.
{ print; fflush() }
/^(float|double): [0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$/ {
    passed += $2
    failed += $4
    skipped += $6
    programs++
}
/^tests-[a-z]+: exit status/ { bad = 1 }
END {
    if (programs != 2) failed += 2 - programs
    if (bad && !failed) failed = 1
    printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped
    exit failed > 0
}
