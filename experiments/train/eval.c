/* `bcd eval`: loss and accuracy over a data set. */
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "../../data/tokens.h"
#include "../../ref/base/error.h"
#include "../cli/commands.h"
#include "../store/rundir.h"
#include "checkpoint.h"
#include "interrupt.h"
#include "open_model.h"
#include "train.h"

int eval_dataset(EvaluationRow *row, const Setup *setup, const Dataset *data, int (*stop)(void)) {
    Engine *engine = setup->engine;
    Loss sum = {0};
    Batch batch;
    const Options *o = &setup->options;
    /* As many micro-batches at a time as keep a pipeline busy. */
    int size = setup->stage_settings.batch * o->accumulate * o->replicas, failed = 0;
    if (batch_reserve(&batch, setup->model, size)) return -1;
    for (int first = 0; first < data->samples && !failed && !(stop && stop()); first += batch.n) {
        batch.n = data->samples - first > size ? size : data->samples - first;
        for (int i = 0; i < batch.n; i++) batch.ids[i] = first + i;
        data->fetch(data, &batch, 0);
        failed = engine_evaluate(engine, &batch, &sum);
    }
    batch_free(&batch);
    if (failed || (stop && stop())) return failed ? -1 : 1;
    if (!sum.count) return error_set("%s: no targets to evaluate", data->name);
    row->loss = loss_mean(&sum);
    row->accuracy = (double)sum.correct / (double)sum.count;
    row->perplexity = exp(row->loss);
    return 0;
}

Text eval_format(const EvaluationRow *row, bool tokens) {
    Text loss = format_loss(row->loss);
    if (!tokens) return text_of("loss %s, accuracy %.2f %%", loss.text, 100 * row->accuracy);
    return text_of(row->perplexity < 1e6 ? "loss %s, perplexity %.2f" : "loss %s, perplexity %.2g",
                   loss.text, row->perplexity);
}

int eval_check_samples(const RunFile *run, const char *path, const Dataset *data) {
    if (!run->valid_checksum || run->valid_checksum == data->checksum) return 0;
    return error_set(
        "%s: the data set %s is not the one this run was evaluated on (its checksum differs); put "
        "that one back",
        path, data->name);
}

static int check_trained_on(const char *place, const Dataset *data) {
    Text path;
    H5File file;
    if (rundir_checkpoint(&path, place) || checkpoint_open(&file, path.text)) return -1;
    const int failed = checkpoint_check_data(&file, data);
    h5_close(&file);
    return failed;
}

static int check_evaluated_on(const char *place, const Dataset *data) {
    const Text path = rundir_run(place);
    RunFile run;
    if (access(path.text, F_OK)) return 0; /* without curves nothing was evaluated */
    const int failed =
        runfile_read(&run, path.text) || eval_check_samples(&run, path.text, data) ? -1 : 0;
    runfile_free(&run);
    return failed;
}

/* Without flags for other data the samples are those of the training; of a test split nothing is
 * known.  -1 and an error. */
static int check_own_data(const CommandLine *line, const Dataset *data) {
    static const char *const others[] = {"init", "data", "valid", "limit", "context"};
    const char *place = line->positional[0];
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (options_given(&line->options, others[i])) return 0;
    if (line->options.split == SPLIT_TRAIN) return check_trained_on(place, data);
    return line->options.split == SPLIT_VALID ? check_evaluated_on(place, data) : 0;
}

/* Checks that the flags name a model and data. */
static int check_flags(const CommandLine *line) {
    const Options *o = &line->options;
    if (model_check_given(line)) return -1;
    if (*o->init && !*o->data && !*o->valid)
        return error_set("--init: --data says what to evaluate on");
    if (*o->valid && *o->data)
        return error_set("--valid is what is evaluated on; leave out --data");
    if (*o->valid && o->split == SPLIT_TRAIN)
        return error_set("--valid is what the valid split is; it goes with no --split train");
    return 0;
}

int command_eval(const CommandLine *line) {
    if (check_flags(line)) return -WRONG_USE;
    CommandLine sized = *line;
    const Options *options = &sized.options;
    Setup setup = {.model = NULL};
    EvaluationRow row;
    Dataset *data = NULL;
    int failed = setup_default_context(&sized.options, NULL) || model_open(&setup, &sized);
    setup.options.augment = false;
    interrupt_tell_bus_error();
    failed = failed ||
             !(data = setup_data(&setup.options, setup.model, (Split)line->options.split)) ||
             setup_check_data(&setup, data) || check_own_data(line, data) ||
             eval_dataset(&row, &setup, data, NULL) || tokens_unchanged(data);
    if (!failed && !isfinite(row.loss))
        failed = error_set("the loss on %s is %s", data->name, format_loss(row.loss).text);
    const bool whole = *setup.options.valid && line->options.split != SPLIT_TRAIN;
    if (!failed)
        printf("%s, %s%s (%d samples%s): %s\n",
               *options->init ? options->init : setup.options.model,
               whole ? "" : text_of("%s split of ", split_names[line->options.split]).text,
               data->name, data->samples,
               setup.model->tokens ? text_of(" of %d tokens", setup.model->input.w).text : "",
               eval_format(&row, setup.model->tokens).text);
    dataset_free(data);
    setup_free(&setup);
    return failed ? -1 : 0;
}
