/* The JSON files of a model's directory: config.json and the list of its files. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>

/* Reads a file that holds one JSON object.  Returns it, for cJSON_Delete; NULL and an error that
 * names the line: the file is missing (the error ends in `hint`), is not JSON, or an object in it
 * has a key twice, which readers take differently. */
cJSON *json_read(const char *path, const char *hint);

/* Both change the text of a JSON object that json_read has accepted, *text from malloc, and leave
 * all else in it as it is written.  The first replaces the value of one of its own keys, which is
 * no object or list; it returns false if there is no such key.  The second puts an entry, with a
 * comma behind it, before the others. */
bool json_replace(char **text, const char *key, const char *value);
void json_insert(char **text, const char *entry);
