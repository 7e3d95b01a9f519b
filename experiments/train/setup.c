#include "setup.h"

#include <math.h>
#include <string.h>

#include "../../ref/base/error.h"
#include "../../ref/stage_device.h"
#include "../convert/convert.h"
#include "fit.h"
#include "pipeline.h"

/* Says that the model reads what the data set does not hold. */
static int refuse_kind(const Options *o, bool model_tokens) {
    const char *slash = strrchr(o->init, '/');
    const Text dir = slash ? text_of("%.*s", (int)(slash - o->init), o->init) : text_of(".");
    /* Such a file is that of a directory more often than one under our names. */
    if (*o->init && !options_given(o, "model") && dir_has(dir.text, "config.json"))
        return error_set(
            "--init %s: the model is that of the config.json beside it; give the directory: "
            "--init %s",
            o->init, quoted(dir.text).text);
    return error_set("the model %s reads %s, the data set %s holds %s", o->model,
                     model_tokens ? "tokens" : "images", o->data,
                     model_tokens ? "images" : "tokens");
}

/* Refuses flags that are not for this model or data, or that exclude each other. */
static int check_flags(const Options *o, const Model *model, bool tokens) {
    if (model->tokens != tokens) return refuse_kind(o, model->tokens);
    if (*o->init && !convert_is_tensors(o->init) && !convert_knows(model))
        return error_set("--init DIR is for models that transformers has, not for %s", o->model);
    if (o->augment && tokens) return error_set("--augment is for images; %s holds tokens", o->data);
    if (o->augment && (o->cache || o->device_cache))
        return error_set(
            "--augment changes the images in each epoch, so --cache would keep outputs of other "
            "images; drop one of them");
    if (*o->valid && !tokens)
        return error_set("--valid is for language models; %s holds images", o->data);
    if (o->accumulate > o->batch)
        return error_set("--accumulate %d: a batch has only %d samples", o->accumulate, o->batch);
    return setup_check_optimizer(o) || setup_check_device(o) || pipeline_check(o) ? -1 : 0;
}

static void resolve_batch(Options *o, const Model *model) {
    if (!o->batch) o->batch = model->tokens ? 8 : 128;
}

/* Creates a draft of model and partition, and checks what needs no data. */
static int open_draft(Setup *setup) {
    Options *o = &setup->options;
    Partition *partition = &setup->bcd.partition;
    const int tokens = data_is_tokens(o->data);
    /* A directory to start from names its model in config.json; a file of tensors does not. */
    const bool named = !*o->init || convert_is_tensors(o->init) || options_given(o, "model");
    if (tokens < 0 || (!named && (setup_default_context(o, &setup->model_context) ||
                                  convert_spec(o->model, o->init, o->context))))
        return -1;
    setup_resolve_optimizer(o);
    setup->model = setup_model(o->model, 0, o->context);
    if (!setup->model) return -1;
    resolve_batch(o, setup->model);
    if (check_flags(o, setup->model, tokens) || setup_partition(partition, setup->model, o))
        return -1;
    /* A run that has begun so goes on. */
    if ((o->cache || o->device_cache) && !*o->resume && partition->of_block[0] == ALWAYS_ACTIVE)
        return error_set(
            "--cache keeps outputs of frozen blocks at the input, and the first block is always "
            "active: give --always-active none");
    if (o->method != METHOD_OFFLOAD || partition->submodels == 1) return 0;
    return error_set(
        "--method offload updates all parameters at each step; it needs one submodel, not %d",
        partition->submodels);
}

int setup_check(const Options *options) {
    Setup setup = {.options = *options};
    const bool asks = options_given(options, "frozen-norm") && !*options->like;
    int failed = open_draft(&setup);
    if (!failed && asks && !setup_has_batch_norm(setup.model))
        failed = error_set("--frozen-norm: %s has no batch norm", setup.options.model);
    setup_free(&setup);
    return failed;
}

/* Checks that the schedule, the switch rule and BCD itself read the flags that are for them. */
static int check_read(const Options *o) {
    const LrKind schedule = setup_optimizer(o).schedule;
    const bool automatic = o->switch_rule.kind == SWITCH_AUTO;
    /* A single submodel that was asked for may have flags that are idle then. */
    const bool cut = o->command != COMMAND_TRAIN || options_given(o, "submodels") || *o->partition;
    const struct {
        const char *reader;
        bool there;
        const char *flags[8];
    } rows[] = {{"submodels M",
                 cut,
                 {"switch-every", "order", "keep-state", "always-active", "frozen-norm",
                  "correct-above", "switch-warmup"}},
                {"schedule cosine", schedule == LR_COSINE, {"final-lr"}},
                {"schedule step", schedule == LR_STEP, {"step-every", "step-factor"}},
                {"switch-every auto",
                 automatic,
                 {"auto-window", "auto-tolerance", "auto-min", "auto-max"}}};
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        for (int i = 0; !rows[r].there && rows[r].flags[i]; i++)
            if (options_given(o, rows[r].flags[i]))
                return error_set("--%s is for --%s", rows[r].flags[i], rows[r].reader);
    return 0;
}

int setup_check_idle(const Options *o) {
    const SwitchRule *rule = &o->switch_rule;
    if (rule->kind == SWITCH_AUTO && options_given(o, "auto-min") &&
        rule->min_steps > rule->max_steps)
        return error_set("--auto-min %d: it is above --auto-max %d", rule->min_steps,
                         rule->max_steps);
    if (rule->kind == SWITCH_AUTO && 2 * (long long)rule->window > rule->max_steps)
        return error_set(
            "--auto-window %d: two of them are more than --auto-max %d, so that no phase could end "
            "before it",
            rule->window, rule->max_steps);
    /* Those of an earlier run may stay when another schedule is asked for. */
    if (!*o->like && (check_read(o) || pipeline_check_idle(o, o))) return -1;
    if (o->batch && o->limit && o->batch > o->limit)
        return error_set("--batch %d: --limit leaves only %d samples", o->batch, o->limit);
    const bool uncut = o->command != COMMAND_TRACE || options_given(o, "submodels");
    if ((o->cache || o->device_cache) && o->submodels < 2 && !*o->partition && uncut)
        return error_set(
            "--cache keeps outputs of frozen blocks; with one submodel there are none: give "
            "--submodels, or leave it out");
    return 0;
}

uint64_t setup_steps(const Options *o, double steps_per_epoch) {
    if (o->epochs > 0) return (uint64_t)fmax(1, ceil(o->epochs * steps_per_epoch - 1e-9));
    return o->steps;
}

/* Fills in the defaults, so that a run stores what it really used. */
static void resolve(Setup *setup) {
    Options *o = &setup->options;
    if (setup->model->tokens) o->context = setup->model->input.w;
    o->submodels = setup->bcd.partition.submodels;
    const int used = sampler_used(setup->train->samples, o->fraction);
    setup->steps_per_epoch = (double)used / o->batch;
    o->steps = setup_steps(o, setup->steps_per_epoch);
    setup_resolve_phase(o);
    setup_resolve_optimizer(o);
}

static StageSettings stage_settings(const Options *o) {
    return (StageSettings){.batch = (o->batch + o->accumulate - 1) / o->accumulate,
                           .recompute = o->recompute,
                           .keep_state = o->keep_state,
                           .correct_factor = o->correct_above,
                           .frozen_norm = (FrozenNorm)o->frozen_norm,
                           .optimizer = o->optimizer,
                           .plain = o->device == DEVICE_PLAIN,
                           .seed = o->seed,
                           .precision = (Precision)o->precision,
                           .offload = o->method == METHOD_OFFLOAD};
}

/* The context of the data comes from the draft of the model; its vocabulary or classes, and with
 * them the partition, from the data. */
static int open_data(Setup *setup) {
    const Options *o = &setup->options;
    setup->train = setup_data(o, setup->model, SPLIT_TRAIN);
    if (!setup->train) return -1;
    model_free(setup->model);
    partition_free(&setup->bcd.partition);
    setup->model = setup_model(o->model, setup->train->classes, o->context);
    if (!setup->model || setup_check_data(setup, setup->train)) return -1;
    strcpy(setup->tokenizer, setup->train->tokenizer);
    setup->valid = setup_data(o, setup->model, SPLIT_VALID);
    if (!setup->valid || setup_check_data(setup, setup->valid)) return -1;
    return setup_partition(&setup->bcd.partition, setup->model, o);
}

int setup_open(Setup *setup, const Options *options) {
    *setup = (Setup){.options = *options};
    Options *o = &setup->options;
    BcdSettings *bcd = &setup->bcd;
    if (open_draft(setup) || setup_device(&setup->device, o) || open_data(setup)) return -1;
    resolve(setup);
    bcd->optimizer = o->optimizer;
    bcd->order = (Order)o->order;
    bcd->rule = o->switch_rule;
    bcd->switch_warmup = o->switch_warmup;
    bcd->batch = o->batch;
    bcd->steps = o->steps;
    bcd->fraction = o->fraction;
    bcd->seed = o->seed;
    setup->stage_settings = stage_settings(o);
    if (pipeline_place(setup)) return -1;
    bcd->pre_infer = setup->ranks > 0 && o->pre_infer;
    if (setup->device && !setup->ranks)
        setup->stage_settings.image_bytes =
            dataset_resident_bytes(setup->train) + dataset_resident_bytes(setup->valid);
    if (fit_check_here(setup)) return -1;
    return 0;
}

/* ---- engine ---------------------------------------------------------------------------------- */

int setup_engine(Setup *setup, const char *cache_dir, BlockTimes *times, double *update_ms) {
    const Options *o = &setup->options;
    if (setup->ranks) return pipeline_engine(setup, cache_dir);
    EngineSettings settings = {.micro_batches = o->accumulate,
                               .cache_device_bytes = o->device_cache,
                               .cache_bytes = o->cache,
                               .cache_dir = cache_dir,
                               .times = times,
                               .update_ms = update_ms};
    Stage *stage = setup->device ? setup->device->stage_create(setup->model, setup->stage_settings)
                                 : stage_ref_create(setup->model, setup->stage_settings);
    if (!stage) return -1;
    /* Images are copied to a device once; in a pipeline they are sent with each batch instead. */
    const bool kept =
        !setup->stage_settings.image_bytes ||
        (!stage_keep_images(stage, setup->train) && !stage_keep_images(stage, setup->valid));
    if (kept) setup->engine = engine_single_create(stage, settings, setup->train);
    if (setup->engine)
        setup->stage = stage;
    else
        stage_free(stage);
    return setup->engine ? 0 : -1;
}

int setup_engine_for_evaluation(Setup *setup) {
    Options *o = &setup->options;
    o->cache = o->device_cache = 0;
    resolve_batch(o, setup->model);
    if (o->accumulate > o->batch) o->accumulate = 1;
    setup->stage_settings = stage_settings(o);
    setup->stage_settings.skip_init = true;
    if (setup_device(&setup->device, o) || fit_check_evaluation_here(setup)) return -1;
    return setup_engine(setup, NULL, NULL, NULL);
}

void setup_free_engine(Setup *setup) {
    if (setup->engine) engine_free(setup->engine);
    setup->engine = NULL;
    setup->stage = NULL;
}

void setup_free(Setup *setup) {
    setup_free_engine(setup);
    placement_free(&setup->placement);
    partition_free(&setup->bcd.partition);
    dataset_free(setup->train);
    dataset_free(setup->valid);
    model_free(setup->model);
    memset(setup, 0, sizeof *setup);
}
