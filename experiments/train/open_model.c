/* Opens a trained model for evaluation: a run, a checkpoint, or a directory of Hugging Face's. */
#include "open_model.h"

#include <string.h>

#include "../../data/data.h"
#include "../../data/file.h"
#include "../../ref/blocks/models.h"
#include "../convert/convert.h"
#include "../store/rundir.h"
#include "../store/settings.h"
#include "checkpoint.h"

/* Returns true if --data of an evaluation names a token file that the training did not have.
 * Nothing of it was trained on, so all of it is for evaluation. */
static bool is_held_out(const Options *stored, const Options *asked) {
    return options_given(asked, "data") && !options_given(asked, "split") && !*asked->valid &&
           data_is_file(asked->data) && !file_same(stored->data, asked->data);
}

/* The flags of an evaluation go over the settings of the training.  The device is never the stored
 * one: a model trained on a GPU can be evaluated anywhere. */
static void overlay(Options *stored, const Options *asked) {
    if (options_given(asked, "data-dir")) strcpy(stored->data_dir, asked->data_dir);
    if (options_given(asked, "batch") && asked->batch) stored->batch = asked->batch;
    const bool other = options_given(asked, "data") || *asked->valid;
    const bool held_out = is_held_out(stored, asked);
    /* The samples that the training evaluated on, unless others are asked for. */
    if (other || options_given(asked, "limit")) {
        stored->limit = asked->limit;
        stored->eval_samples = 0;
    }
    if (options_given(asked, "data")) strcpy(stored->data, asked->data);
    if (other) strcpy(stored->valid, held_out ? asked->data : asked->valid);
    /* Sampling computes one sequence at a time. */
    if (asked->command == COMMAND_SAMPLE) stored->batch = 1;
    if (options_given(asked, "batch") || stored->batch == 1) stored->accumulate = 1;
    stored->device = asked->device;
    stored->precision = asked->precision;
    stored->method = METHOD_BCD;
    stored->correct_above = 0; /* of training steps, which not every device has */
}

static int open_directory(Setup *setup, const Options *asked) {
    Options *o = &setup->options;
    memset(setup, 0, sizeof *setup);
    options_defaults(o, COMMAND_TRAIN);
    strcpy(o->init, asked->init);
    overlay(o, asked);
    if (convert_spec(o->model, o->init, asked->context)) return -1;
    setup->model = model_create(o->model);
    return !setup->model || convert_check(setup->model, o->init) ||
                   setup_engine_for_evaluation(setup) || convert_load(setup->engine, o->init)
               ? -1
               : 0;
}

int model_open_run(Setup *setup, const char *place, const Options *asked) {
    char spec[OPTION_TEXT];
    Text path;
    H5File file;
    memset(setup, 0, sizeof *setup);
    options_defaults(&setup->options, COMMAND_TRAIN);
    if (rundir_settings(place, &setup->options) || rundir_checkpoint(&path, place) ||
        checkpoint_open(&file, path.text))
        return -1;
    int failed = settings_read(&file, &setup->options) ||
                 h5_get_text(&file, "/model", "spec", spec, sizeof spec) ||
                 checkpoint_read_init(&file, setup) ||
                 (h5_has(&file, "/data", "tokenizer") &&
                  h5_get_text(&file, "/data", "tokenizer", setup->tokenizer, TOKENIZER_NAME));
    if (!failed) {
        overlay(&setup->options, asked);
        setup->model = model_create(spec);
        failed = !setup->model || setup_engine_for_evaluation(setup) ||
                 checkpoint_read_model(&file, setup->engine, false);
    }
    h5_close(&file);
    return failed ? -1 : 0;
}

int model_open(Setup *setup, const CommandLine *line) {
    const Options *asked = &line->options;
    return *asked->init ? open_directory(setup, asked)
                        : model_open_run(setup, line->positional[0], asked);
}
