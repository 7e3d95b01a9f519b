/* Opens a trained model for evaluation: a run, a checkpoint, or a directory of Hugging Face's. */
#include "open_model.h"

#include <string.h>
#include <unistd.h>

#include "../../data/data.h"
#include "../../ref/base/error.h"
#include "../../ref/blocks/models.h"
#include "../convert/convert.h"
#include "../store/rundir.h"
#include "../store/settings.h"
#include "checkpoint.h"

/* Overwrites *own with whether --data names the token file that was trained on, wherever that is by
 * now.  A part of it was held out then, or else -1 and an error: all of it was trained on. */
static int find_own_data(bool *own, const Setup *setup, const H5File *file, const Options *asked) {
    Options training = setup->options;
    uint64_t checksum;
    *own = false;
    if (!options_given(asked, "data") || *asked->valid || !data_is_file(asked->data)) return 0;
    if (h5_get(file, "/data", "checksum", H5_UINT64, &checksum)) return -1;
    strcpy(training.data, asked->data);
    Dataset *data = setup_data(&training, setup->model, SPLIT_TRAIN);
    /* What cannot be opened so is no data of the training; the evaluation says what is wrong. */
    *own = data && data->checksum == checksum;
    dataset_free(data);
    if (!*own || !*training.valid || asked->split == SPLIT_TRAIN) return 0;
    return error_set(
        "--data %s: all of it was trained on, and the run was evaluated on %s, as it is "
        "without --data; --split train evaluates on the training data",
        asked->data, training.valid);
}

/* The flags of an evaluation go over the settings of the training.  `own`: --data names what was
 * trained on.  The device is never the stored one: a model trained on a GPU can be evaluated
 * anywhere. */
static void overlay(Options *stored, const Options *asked, bool own) {
    if (options_given(asked, "data-dir")) strcpy(stored->data_dir, asked->data_dir);
    if (options_given(asked, "batch") && asked->batch) stored->batch = asked->batch;
    const bool other = (options_given(asked, "data") && !own) || *asked->valid;
    /* Of a token file that was not trained on all is for evaluation. */
    const bool held_out =
        other && !options_given(asked, "split") && !*asked->valid && data_is_file(asked->data);
    /* The samples that the training evaluated on, unless others are asked for. */
    if (other || options_given(asked, "limit")) {
        stored->limit = asked->limit;
        stored->eval_samples = 0;
    }
    if (options_given(asked, "data")) strcpy(stored->data, asked->data);
    if (other) strcpy(stored->valid, held_out ? asked->data : asked->valid);
    /* Sampling computes one sequence at a time, and an export none. */
    if (asked->command == COMMAND_SAMPLE || asked->command == COMMAND_EXPORT) stored->batch = 1;
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
    overlay(o, asked, false);
    setup->generates = asked->command == COMMAND_SAMPLE;
    if (convert_spec(o->model, o->init, asked->context)) return -1;
    setup->model = model_create(o->model);
    return !setup->model || convert_check(setup->model, o->init) ||
                   setup_engine_for_evaluation(setup) || convert_load(setup->engine, o->init)
               ? -1
               : 0;
}

/* Checks that the checkpoint is of the run whose run.h5 is beside it. */
static int check_same_run(const H5File *checkpoint, const char *place, const Options *of_run) {
    const Text path = rundir_run(place);
    Options own;
    H5File run;
    uint64_t trained, evaluated;
    options_defaults(&own, COMMAND_TRAIN);
    if (access(path.text, F_OK)) return 0;
    if (settings_read(checkpoint, &own) || settings_compare(of_run, &own, place) ||
        h5_open(&run, path.text))
        return -1;
    int failed = h5_get(checkpoint, "/data", "checksum", H5_UINT64, &trained) ||
                 h5_get(&run, "/data", "checksum", H5_UINT64, &evaluated);
    h5_close(&run);
    if (!failed && trained != evaluated)
        failed =
            error_set("%s: %s is of another run: it was trained on other data", place, path.text);
    return failed ? -1 : 0;
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
    bool own;
    int failed = check_same_run(&file, place, &setup->options) ||
                 settings_read(&file, &setup->options) ||
                 h5_get_text(&file, "/model", "spec", spec, sizeof spec) ||
                 checkpoint_read_init(&file, setup) ||
                 (h5_has(&file, "/data", "tokenizer") &&
                  h5_get_text(&file, "/data", "tokenizer", setup->tokenizer, TOKENIZER_NAME));
    if (!failed) {
        setup->model = model_create(spec);
        failed = !setup->model || find_own_data(&own, setup, &file, asked);
    }
    if (!failed) {
        overlay(&setup->options, asked, own);
        setup->generates = asked->command == COMMAND_SAMPLE;
        failed = setup_engine_for_evaluation(setup) ||
                 checkpoint_read_model(&file, setup->engine, false);
    }
    h5_close(&file);
    return failed ? -1 : 0;
}

int model_check_given(const CommandLine *line) {
    const Options *o = &line->options;
    if (!*o->init == !line->positionals)
        return error_set("give a run's directory, or --init DIR with a model");
    if (!*o->init && o->context)
        return error_set("--context goes with --init; a run has the context it was trained with");
    return 0;
}

int model_open(Setup *setup, const CommandLine *line) {
    const Options *asked = &line->options;
    return *asked->init ? open_directory(setup, asked)
                        : model_open_run(setup, line->positional[0], asked);
}
