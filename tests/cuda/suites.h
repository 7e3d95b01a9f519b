/* What runs on a device, whichever it is. */
SUITE(device_cases)
