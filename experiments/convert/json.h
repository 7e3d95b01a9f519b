/* The JSON files of a model's directory: config.json and the list of its files. */
#pragma once

#include <cjson/cJSON.h>

/* Reads a file that holds one JSON object.  Returns it, for cJSON_Delete; NULL and an error that
 * names the line: the file is missing (the error ends in `hint`), is not JSON, or an object in it
 * has a key twice, which readers take differently. */
cJSON *json_read(const char *path, const char *hint);
