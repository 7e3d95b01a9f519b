/* What people have in place of a model's directory, and what to type. */
#include <dirent.h>
#include <string.h>
#include <unistd.h>

#include "../../data/file.h"
#include "../../ref/base/error.h"
#include "convert.h"

/* A file that tells what a directory is. */
static const struct {
    const char *begin, *end; /* of the file's name */
    const char *what;        /* and what to do */
} foreign[] = {
    {"adapter_config", ".json",
     "has a LoRA adapter, which belongs into the weights of its model; type: pip install torch "
     "transformers peft, then python3 -c "
     "\"from peft import AutoPeftModelForCausalLM as M; from transformers import AutoTokenizer as "
     "T; M.from_pretrained('DIR').merge_and_unload().save_pretrained('NEW'); "
     "T.from_pretrained('DIR').save_pretrained('NEW')\""},
    {"pytorch_model", ".bin",
     "has its weights in pytorch_model.bin; type: pip install torch transformers, then python3 -c "
     "\"from transformers import AutoModelForCausalLM as M, AutoTokenizer as T; "
     "[A.from_pretrained('DIR').save_pretrained('NEW') for A in (M, T)]\""},
    {"", ".gguf",
     "has its weights in GGUF; get the model that they were made from or, for a LLaMA with "
     "SmolLM's tokenizer, type: pip install gguf safetensors tokenizers, then python3 "
     "data/from_gguf.py NAME.gguf NEW"},
    {"consolidated", ".pth", "is in Meta's format; get the model in that of transformers"},
};
enum { FOREIGN = sizeof foreign / sizeof *foreign };

/* Refuses `init` if the file `name`, in it or the same, is one of these. */
static int check_name(const char *init, const char *name) {
    for (int i = 0; i < FOREIGN; i++) {
        const size_t length = strlen(name), ending = strlen(foreign[i].end);
        if (length <= ending || strcmp(name + length - ending, foreign[i].end) != 0 ||
            strncmp(name, foreign[i].begin, strlen(foreign[i].begin)) != 0)
            continue;
        return error_set("%s: %s", init, foreign[i].what);
    }
    return 0;
}

int convert_check_foreign(const char *init) {
    const bool weights =
        dir_has(init, "model.safetensors") || dir_has(init, "model.safetensors.index.json");
    /* Also beside whole weights, where transformers would add it to them. */
    if (dir_has(init, "adapter_config.json")) return check_name(init, "adapter_config.json");
    if (weights && dir_has(init, "config.json")) return 0;
    const struct dirent *entry;
    DIR *open = opendir(init);
    const char *slash = strrchr(init, '/');
    if (!open) return access(init, F_OK) == 0 ? check_name(init, slash ? slash + 1 : init) : 0;
    int failed = 0;
    while (!failed && (entry = readdir(open))) failed = check_name(init, entry->d_name);
    closedir(open);
    return failed;
}
