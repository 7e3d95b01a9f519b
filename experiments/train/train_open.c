/* Opens a training, in a new directory or in that of a run to be resumed. */
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../ref/base/error.h"
#include "../convert/convert.h"
#include "../store/settings.h"
#include "checkpoint.h"
#include "pipeline.h"
#include "train_parts.h"

/* Adds to `own` the flags whose defaults depend on the submodels, where an earlier run has these
 * defaults: in fine-tuning the rate and the phases, and which blocks of a ResNet are always active.
 */
static void leave_defaults_of_parts(const char **own, int *count, const Options *run) {
    Options fresh = *run;
    fresh.given[options_find("lr", COMMAND_TRAIN)] = false;
    fresh.given[options_find("switch-every", COMMAND_TRAIN)] = false;
    setup_resolve_optimizer(&fresh);
    setup_resolve_phase(&fresh);
    const SwitchRule *was = &run->switch_rule, *is = &fresh.switch_rule;
    if (run->submodels == 1) own[(*count)++] = "always-active";
    if (!*run->init) return;
    if (fresh.optimizer.lr == run->optimizer.lr) own[(*count)++] = "lr";
    if (is->kind == was->kind && is->every == was->every) own[(*count)++] = "switch-every";
}

/* Adds to `own` the optimizer's own settings. */
static void leave_optimizer(const char **own, int *count) {
    const OptimizerSettings any = optimizer_defaults(OPTIMIZER_SGD);
    for (const Option *option = option_table; option->name; option++)
        if ((option->commands & COMMAND_TRAIN) && !isnan(option_of_optimizer(option, &any)))
            own[(*count)++] = option->name;
}

int train_like(Options *options) {
    static const struct {
        const char *given, *replaced[3]; /* flags of the earlier run */
    } rows[] = {{"steps", {"epochs"}},
                {"epochs", {"steps"}},
                {"submodels", {"partition", "submodel-lr"}},
                {"partition", {"submodels"}},
                {"model", {"init", "context"}},
                {"init", {"model", "context"}}};
    const char *own[OPTIONS_MAX + 32];
    int count = 0;
    Options like;
    if (*options->resume)
        return error_set("--like is for a new run; --resume takes the settings of its own");
    if (rundir_check(options->like)) return error_set("--like %s", error_message());
    options_defaults(&like, COMMAND_TRAIN);
    if (rundir_settings(options->like, &like)) return -1;
    for (int row = 0; option_table[row].name; row++)
        if (options->given[row]) own[count++] = option_table[row].name;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        for (int i = 0; options_given(options, rows[r].given) && rows[r].replaced[i]; i++)
            own[count++] = rows[r].replaced[i];
    if (options_given(options, "optimizer")) leave_optimizer(own, &count);
    /* The full update has no frozen blocks whose outputs a cache could keep, and no switches. */
    if (options_given(options, "submodels") && options->submodels == 1) {
        own[count++] = "cache";
        own[count++] = "device-cache";
        own[count++] = "pre-infer";
        own[count++] = "switch-warmup";
    }
    if (options_given(options, "submodels") || options_given(options, "partition"))
        leave_defaults_of_parts(own, &count, &like);
    own[count] = NULL;
    return options_take(options, &like, own, false);
}

/* A batch of more samples than there are would have some of them several times. */
static int check_batch(const Setup *s) {
    const Options *o = &s->options;
    const int used = sampler_used(s->train->samples, o->fraction);
    if (o->batch <= used) return 0;
    return error_set("--batch %d: %s has only %d samples%s", o->batch, s->train->name,
                     s->train->samples,
                     o->fraction < 1 ? text_of(", of which --fraction takes %d", used).text : "");
}

static int check_fresh(const char *dir) {
    if (!rundir_holds_run(dir)) return 0;
    return error_set(
        "%s: has a run already; continue it with bcd train --resume %s, or choose another --out",
        dir, quoted(dir).text);
}

/* Opens a new training.  The directory must not hold a run yet, and is created only after model and
 * data are open. */
static int open_new(Training *t, const Options *options) {
    Options *o = &t->setup.options;
    *o = *options;
    if (*o->out && check_fresh(o->out)) return -1;
    if (setup_default_ends(o) || setup_open(&t->setup, o) || check_batch(&t->setup)) return -1;
    strcpy(t->dir, o->out);
    t->made = !t->dir[0] || access(t->dir, F_OK) != 0;
    if (t->dir[0] ? rundir_make(t->dir) : rundir_make_fresh(t->dir, o)) return -1;
    /* Another training may have begun here, and even ended, while this one opened its data. */
    return (t->lock = rundir_lock(t->dir)) < 0 || check_fresh(t->dir) ? -1 : 0;
}

/* Reads the settings and curves so far.  run.h5 is written before the checkpoint, so it may be
 * ahead of it or, before any update, exist without one. */
static int read_past(Training *t) {
    Options stored;
    const bool saved = access(t->checkpoint_path.text, F_OK) == 0;
    options_defaults(&stored, COMMAND_TRAIN);
    if (saved && settings_read_file(t->checkpoint_path.text, &stored)) return -1;
    if (access(t->run_path.text, F_OK)) {
        t->run.settings = stored;
        t->lost_curves = saved;
        return 0;
    }
    if (runfile_read(&t->run, t->run_path.text))
        return error_set("%s" WITHOUT_CURVES, error_message());
    if (!saved && t->run.curve_rows)
        return error_set(
            "%s: checkpoint.h5 is missing, and run.h5 has %zu updates; put it back, or start again "
            "with bcd train --like %s",
            t->dir, t->run.curve_rows, quoted(t->dir).text);
    return saved ? settings_compare(&t->run.settings, &stored, t->dir) : 0;
}

/* Checks that the device is here; the error suggests how to resume the run on the CPU. */
static int check_device(const Training *t, const Options *asked) {
    const Options *o = &t->setup.options;
    const DeviceModule *device;
    if (setup_device(&device, o) == 0) return 0;
    if (options_given(asked, "device")) return -1;
    return error_set("%s; to continue here: bcd train --resume %s --device cpu%s", error_message(),
                     quoted(t->dir).text,
                     o->precision == PRECISION_FP32 ? "" : " --precision fp32");
}

/* Fills in setup->init.  -1 and an error. */
static int find_init(Setup *setup) {
    char *path = *setup->options.init ? realpath(setup->options.init, NULL) : NULL;
    snprintf(setup->init, sizeof setup->init, "%s", path ? path : setup->options.init);
    const bool cut = path && strlen(path) >= sizeof setup->init;
    free(path);
    return cut ? error_set("--init %.60s...: the path from the root on is longer than %zu bytes",
                           setup->init, sizeof setup->init - 1)
               : 0;
}

static int open_old(Training *t, const Options *options) {
    const char *dir = options->resume;
    strcpy(t->dir, dir);
    t->run_path = rundir_path(dir, "run.h5");
    t->checkpoint_path = rundir_path(dir, "checkpoint.h5");
    if (rundir_check(dir) || (t->lock = rundir_lock(dir)) < 0 || read_past(t)) return -1;
    t->started -= t->run.provenance.wall;
    Options *o = &t->setup.options;
    *o = t->run.settings;
    if (settings_resume(o, options) || pipeline_check_idle(o, options) || check_device(t, options))
        return -1;
    /* Other ranks may be too many for the placement of the run so far. */
    const bool other_ranks =
        options_given(options, "pipeline") || options_given(options, "replicas");
    if (other_ranks && !options_given(options, "placement")) o->placement = PLACEMENT_AUTO;
    return setup_open(&t->setup, o);
}

/* Checks that a longer training than first asked for does not change the steps that are done. */
static int check_extension(const Training *t) {
    const Options *o = &t->setup.options;
    /* Of a length in epochs a file has no steps. */
    const uint64_t end = setup_steps(&t->run.settings, t->setup.steps_per_epoch);
    if (o->steps < t->state.step)
        return error_set("%s: cannot end at step %llu: %llu steps are done already", t->dir,
                         (unsigned long long)o->steps, (unsigned long long)t->state.step);
    if (end && o->steps != end && o->optimizer.schedule == LR_COSINE)
        return error_set(
            "%s: cannot end at step %llu: its cosine schedule ends at step %llu; only a run with "
            "another --schedule can be extended",
            t->dir, (unsigned long long)o->steps, (unsigned long long)end);
    return 0;
}

static int replicas_of(const Options *o) {
    return strcmp(o->pipeline, "none") == 0 ? 1 : o->replicas;
}

/* Batch norms see the samples of a replica, so that another number of them trains otherwise.  A
 * checkpoint does not have --pipeline, and an older one not even their number. */
static int check_replicas(const Training *t) {
    const Options *stored = &t->run.settings;
    const int before = stored->replicas, now = replicas_of(&t->setup.options);
    if (before == now || !setup_has_batch_norm(t->setup.model)) return 0;
    if (!options_given(stored, "replicas")) return 0;
    return error_set(
        "--replicas %d: this run was started with %d, and its batch norms would see other batches; "
        "keep --replicas and --pipeline",
        now, before);
}

/* A save writes run.h5 before the checkpoint, so that one whose curves end before it is not that of
 * this checkpoint.  After a resume without run.h5 the first session says where they begin. */
static int check_curves(const Training *t) {
    const RunFile *run = &t->run;
    uint64_t end = run->curve_rows ? run->curve[run->curve_rows - 1].step : 0;
    if (run->session_rows && run->sessions[run->session_rows - 1].step > end)
        end = run->sessions[run->session_rows - 1].step;
    if (t->lost_curves || end >= t->state.step) return 0;
    return error_set(
        "%s: checkpoint.h5 is of step %llu, and the curves of run.h5 end at step "
        "%llu" WITHOUT_CURVES,
        t->dir, (unsigned long long)t->state.step, (unsigned long long)end);
}

static int restore(Training *t) {
    if (check_replicas(t)) return -1;
    if (access(t->checkpoint_path.text, F_OK) == 0 &&
        checkpoint_resume(t->checkpoint_path.text, &t->setup, &t->state))
        return -1;
    if (check_curves(t)) return -1;
    /* A resume may evaluate on more samples, or fewer. */
    t->other_samples = t->run.settings.eval_samples != t->setup.options.eval_samples;
    if ((!t->other_samples && eval_check_samples(&t->run, t->run_path.text, t->setup.valid)) ||
        check_extension(t))
        return -1;
    runfile_cut(&t->run, t->state.step);
    if (t->run.curve_rows) t->seconds = t->run.curve[t->run.curve_rows - 1].seconds;
    return 0;
}

/* Fills in what run.h5 holds next to the curves. */
static int describe(Training *t, int threads) {
    const Setup *s = &t->setup;
    RunFile *run = &t->run;
    const Partition *partition = &s->bcd.partition;
    const Provenance start = run->provenance;
    if (setup_provenance(&run->provenance, &s->options)) return -1;
    run->provenance.threads = threads;
    runfile_add_session(run, t->state.step, s->ranks);
    if (runfile_moved(run))
        memset(run->memory, 0, sizeof run->memory); /* the peaks were of another device */
    if (t->resumed && *start.command) {
        strcpy(run->provenance.command, start.command);
        strcpy(run->provenance.started, start.started);
    }
    strcpy(run->status, "running");
    run->settings = s->options;
    snprintf(run->spec, sizeof run->spec, "%s", s->model->spec);
    snprintf(run->data, sizeof run->data, "%s", s->train->name);
    run->parameters = s->model->param_count;
    run->samples = (uint64_t)s->train->samples;
    run->checksum = s->train->checksum;
    run->valid_checksum = s->valid->checksum;
    run->steps_per_epoch = s->steps_per_epoch;
    run->imbalance = partition->imbalance;
    run->submodels = partition->submodels;
    run->partition = partition;
    run->model = s->model;
    return 0;
}

int train_open(Training *t, const Options *options) {
    memset(t, 0, sizeof *t);
    t->lock = -1;
    t->started = clock_seconds();
    t->resumed = *options->resume;
    if (t->resumed && *options->out)
        return error_set("--resume continues in the run's own directory; leave out --out");
    if ((t->resumed ? open_old(t, options) : open_new(t, options)) || find_init(&t->setup))
        return -1;
    t->run_path = rundir_path(t->dir, "run.h5");
    t->checkpoint_path = rundir_path(t->dir, "checkpoint.h5");
    if (t->setup.options.threads) omp_set_num_threads(t->setup.options.threads);
    const int threads = omp_get_max_threads(); /* of all ranks in this process */
    const bool saved = access(t->checkpoint_path.text, F_OK) == 0;
    t->setup.stage_settings.skip_init = saved || *t->setup.options.init;
    const char *init = saved ? "" : t->setup.options.init;
    if ((*init && convert_check(t->setup.model, init)) ||
        setup_engine(&t->setup, t->dir, NULL, NULL) ||
        (*init && convert_load(t->setup.engine, init)))
        return -1;
    if (t->resumed && restore(t)) return -1;
    return describe(t, threads);
}

void train_close(Training *t) {
    train_log_close(t);
    setup_free(&t->setup);
    runfile_free(&t->run);
    if (t->lock < 0) return;
    rundir_give_up(t->dir, t->made); /* if the training never began */
    close(t->lock);
}
