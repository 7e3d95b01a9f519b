/* `bcd export`: a trained model as Hugging Face's transformers library reads it. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../data/file.h"
#include "../../ref/base/error.h"
#include "../cli/commands.h"
#include "../convert/convert.h"
#include "../store/rundir.h"
#include "../train/open_model.h"

static int copy_file(const char *to, const char *from) {
    size_t bytes;
    unsigned char *data = file_read("export", from, "it belongs to the model", &bytes);
    int failed = data ? file_write(to, data, bytes) : -1;
    free(data);
    return failed;
}

/* The files of a tokenizer, and how it writes. */
static const char *const kept_files[] = {
    "tokenizer.json", "tokenizer.model",         "tokenizer_config.json",
    "vocab.json",     "special_tokens_map.json", "added_tokens.json",
    "merges.txt",     "chat_template.jinja",     "generation_config.json"};
enum { KEPT_FILES = sizeof kept_files / sizeof *kept_files };
static const char templates[] = "additional_chat_templates"; /* a directory of more of them */

/* Licences ask to be handed on with weights that were trained further. */
static bool is_licence(const char *name) {
    return strncmp(name, "LICENSE", 7) == 0 || strncmp(name, "NOTICE", 6) == 0 ||
           strncmp(name, "USE_POLICY", 10) == 0;
}

static bool is_template(const char *name) { return strstr(name, ".jinja") != NULL; }

static bool is_file(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

/* Copies the files whose names are such; a directory may have such a name, too. */
static int copy_those(const char *target, const char *source, bool (*is_such)(const char *name)) {
    char from[PATH_BYTES], to[PATH_BYTES];
    DIR *open = opendir(source);
    const struct dirent *entry;
    if (!open) return error_set("export: %s: %s", source, strerror(errno));
    int failed = 0;
    while (!failed && (entry = readdir(open)))
        if (is_such(entry->d_name))
            failed = path_join(from, source, entry->d_name) ||
                     path_join(to, target, entry->d_name) || (is_file(from) && copy_file(to, from));
    closedir(open);
    return failed ? -1 : 0;
}

/* Copies the chat templates that have names of their own. */
static int copy_templates(const char *dir, const char *init) {
    char source[PATH_BYTES], target[PATH_BYTES];
    if (!dir_has(init, templates)) return 0;
    if (path_join(source, init, templates) || path_join(target, dir, templates)) return -1;
    if (mkdir(target, 0777) && errno != EEXIST)
        return error_set("export: %s: %s", target, strerror(errno));
    return copy_those(target, source, is_template);
}

/* Copies the tokenizer's files of a model's directory, if there is one, and its licences; appends
 * the names of the former to `list`. */
static int copy_tokenizer(const char *dir, const char *init, Text *list) {
    char from[PATH_BYTES], to[PATH_BYTES];
    if (!*init) return 0;
    for (int i = 0; i < KEPT_FILES; i++) {
        const char *name = kept_files[i];
        if (!dir_has(init, name)) continue;
        if (path_join(from, init, name) || path_join(to, dir, name) || copy_file(to, from))
            return -1;
        text_add(list, ", %s", name);
    }
    if (copy_templates(dir, init)) return -1;
    if (dir_has(init, templates)) text_add(list, ", %s", templates);
    return copy_those(dir, init, is_licence);
}

/* Returns true if the directory's tokenizer made the tokens that the run was trained on. */
static bool has_own_tokenizer(const char *dir, const Setup *setup) {
    char name[TOKENIZER_NAME];
    return tokenizer_of_model(name, dir) == 0 && strcmp(name, setup->tokenizer) == 0;
}

/* Returns true for a file of another model that a reader of the directory would take for a part of
 * this one. */
static bool is_stale(const char *name, const char *init, bool own_tokenizer) {
    bool kept = strcmp(name, templates) == 0;
    for (int i = 0; i < KEPT_FILES; i++) kept = kept || strcmp(name, kept_files[i]) == 0;
    if (kept) return !dir_has(init, name) && (*init || !own_tokenizer);
    /* An export that was interrupted leaves a .tmp, which the next one writes anew. */
    return strcmp(name, "model.safetensors") && strcmp(name, "model.safetensors.tmp") &&
           (strstr(name, ".safetensors") || strncmp(name, "pytorch_model", 13) == 0 ||
            strncmp(name, "adapter_", 8) == 0);
}

/* Refuses a directory with such a file. */
static int check_stale(const char *dir, const char *init, const Setup *setup) {
    const bool own_tokenizer = has_own_tokenizer(dir, setup);
    const struct dirent *entry;
    DIR *open = opendir(dir);
    int failed = 0;
    while (open && !failed && (entry = readdir(open)))
        if (is_stale(entry->d_name, init, own_tokenizer))
            failed = error_set(
                "--out %s: holds %s, which is not of this model; remove it, or give another name",
                dir, entry->d_name);
    if (open) closedir(open);
    return failed;
}

/* Finds the directory that the training started from: the stored one, or the one that was asked
 * for, if it has been moved.  A file of tensors has neither settings nor a tokenizer. */
static int find_init(char init[PATH_BYTES], const Setup *setup, const Options *asked) {
    const char *stored = *setup->init ? setup->init : setup->options.init;
    if (*asked->init && !*stored)
        return error_set("--init %s: the run began with no model", asked->init);
    strcpy(init, *asked->init ? asked->init : stored);
    if (convert_is_tensors(init)) *init = 0;
    if (!*init || dir_has(init, "config.json")) return 0;
    return error_set(
        "%s: the run began with the model there, which is gone; its settings and its "
        "tokenizer belong to the export: --init DIR says where it is now",
        init);
}

/* Writes the model of a training, see model_open_run, with the files of its tokenizer, in
 * `numbers`; NUMBER_OTHER: in those of the model that it started from.  Files that are there are
 * replaced, unless the training started from them.  -1 and an error, also if the
 * directory that it started from is gone, or `dir` has files of another model that would stay. */
static int export_model(const char *place, const char *dir, const Options *asked,
                        NumberKind numbers) {
    Setup setup;
    Text copied = {""};
    char init[PATH_BYTES] = "";
    bool same = false;
    const bool made_here = access(dir, F_OK) != 0;
    const bool old = access(rundir_path(dir, "config.json").text, F_OK) == 0;
    int failed = model_open_run(&setup, place, asked) || find_init(init, &setup, asked);
    if (numbers == NUMBER_OTHER) failed = failed || convert_numbers(&numbers, init);
    if (!failed && file_same(dir, init))
        failed = error_set("--out %s: the run began with the model there; give another name", dir);
    failed = failed || (*init && tokenizer_check(init, setup.tokenizer)) ||
             check_stale(dir, init, &setup) ||
             convert_save(dir, setup.engine, init, numbers, &same) ||
             copy_tokenizer(dir, init, &copied);
    setup_free(&setup);
    if (failed && made_here) rmdir(dir); /* which fails where a file is in it */
    if (!failed && !asked->quiet)
        printf("%s: config.json%s, model.safetensors%s%s%s\n", dir,
               *init && !same ? " (written anew: the model is not that of --init)" : "",
               numbers == NUMBER_BF16 ? " (rounded to bf16)" : "", copied.text,
               old ? "; files that were there are replaced" : "");
    return failed ? -1 : 0;
}

int command_export(const CommandLine *line) {
    if (!*line->options.out) {
        error_set("bcd export needs --out DIR");
        return -WRONG_USE;
    }
    static const NumberKind kinds[] = {NUMBER_OTHER, NUMBER_F32, NUMBER_BF16}; /* export_names */
    return export_model(line->positional[0], line->options.out, &line->options,
                        kinds[line->options.export_numbers]);
}
