/* The names of choices that others print, too. */
#include "../../data/data.h"
#include "command_line.h"

const char *const split_names[3] = {
    [SPLIT_TRAIN] = "train", [SPLIT_VALID] = "valid", [SPLIT_TEST] = "test"};
const char *const mode_names[2] = {[MODE_EVALUATE] = "eval", [MODE_TRAIN] = "train"};
const char *const export_names[3] = {"auto", "fp32", "bf16"};
const char *const device_names[DEVICE_KINDS] = {"cpu", "plain", "cuda", "simt"};
const char *const method_names[METHOD_KINDS] = {"bcd", "offload"};
