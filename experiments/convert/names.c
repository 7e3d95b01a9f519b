/* Hugging Face's names of our parameters. */
#include <stdio.h>
#include <string.h>

#include "families.h"

const char convert_positions[] = "transformer.wpe.weight";

/* Returns the row of a module of ours, or the end of the list. */
static const Module *find(const Module *list, const char *ours) {
    while (list->ours && strcmp(list->ours, ours)) list++;
    return list;
}

void convert_name(TheirName *theirs, const Model *model, int param) {
    const HfFamily *naming = hf_family_of(model);
    const Param *p = &model->param[param];
    const char *tensor = strrchr(p->name, '.'); /* ".weight" */
    Text prefix = {""};
    int layer, skip = 0;
    if (sscanf(p->name, "block%d.%n", &layer, &skip) == 1 && skip)
        prefix = text_of("%s.%d.", naming->layers, layer - 1);
    const Text ours = text_of("%.*s", (int)(tensor - p->name) - skip, p->name + skip);
    const Module *module = find(naming->renamed ? naming->renamed : naming->module, ours.text);
    if (!module->ours) module = find(naming->module, ours.text);
    *theirs = (TheirName){.transposed = naming->transposed && skip && p->rank == 2};
    for (int i = 0; i < PARAM_PARTS && module->theirs[i]; i++)
        snprintf(theirs->name[theirs->parts++], CONVERT_NAME, "%s%s%s", prefix.text,
                 module->theirs[i], tensor);
    theirs->columns = p->count / (size_t)p->dim[0];
    for (int i = 0; i < theirs->parts; i++)
        theirs->rows[i] = (size_t)(theirs->parts == 1 ? p->dim[0] : p->part_rows[i]);
}
