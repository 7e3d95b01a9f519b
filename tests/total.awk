# Passes through what tests/run gathers: for each suite what it printed, the totals of its program,
# which had only this suite to run, and its exit status.  Ends with the totals of the programs and,
# in the last line, of all.
match($0, /^[a-z]+: [0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$/) {
    name = substr($1, 1, length($1) - 1)
    program_passed[name] += $2
    program_failed[name] += $4
    program_skipped[name] += $6
    told = 1
    failures = $4
    next
}
# One that ended without its totals has died; and a leak that is found at the end is a failure of a
# suite whose cases passed.
/^tests-[a-z]+ [a-z0-9_]+: exit status -?[0-9]+$/ {
    if (!told || ($NF != 0 && failures == 0)) {
        print "FAIL " $0
        program_failed[substr($1, 7)]++
    }
    told = 0
    next
}
{ print; fflush() }
END {
    count = split(programs, list)
    for (i = 1; i <= count; i++) {
        name = substr(list[i], 7)
        printf "%s: %d passed, %d failed, %d skipped\n", name, program_passed[name],
               program_failed[name], program_skipped[name]
        passed += program_passed[name]
        failed += program_failed[name]
        skipped += program_skipped[name]
    }
    if (passed + failed == 0) {
        print "FAIL no case was run"
        failed = 1
    }
    printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped
    exit failed > 0
}
