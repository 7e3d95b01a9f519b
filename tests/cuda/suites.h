/* What runs on a device, whichever it is. */
SUITE(device_cases)
SUITE(loss)
SUITE(rows)
SUITE(device_update)
SUITE(stage)
SUITE(stage_exact)
SUITE(stage_memory)
SUITE(stage_fixtures)
