/* A trained model, wherever it is: a run, a checkpoint, or a directory in Hugging Face's format. */
#include <string.h>

#include "../../ref/error.h"
#include "../store/checkpoint.h"
#include "convert.h"

static int open_directory(Setup *setup, const Options *asked) {
    Options *o = &setup->options;
    memset(setup, 0, sizeof *setup);
    options_defaults(o, COMMAND_TRAIN);
    strcpy(o->init, asked->init);
    checkpoint_overlay(o, asked);
    if (convert_spec(o->model, o->init, asked->context)) return -1;
    setup->model = model_create(o->model);
    return !setup->model || setup_engine_for_evaluation(setup) ||
                   convert_load(setup->engine, o->init)
               ? -1
               : 0;
}

int convert_open(Setup *setup, const Options *asked) {
    memset(setup, 0, sizeof *setup);
    if (!*asked->init == !asked->positionals)
        return error_set("it takes a run's directory, or --init DIR with the model there");
    if (*asked->init) return open_directory(setup, asked);
    if (asked->context)
        return error_set("--context goes with --init; a run has the context it was trained with");
    return checkpoint_open(setup, asked->positional[0], asked);
}
