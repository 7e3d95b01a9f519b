/* `bcd train`: runs the BCD loop, and after each update keeps curves, evaluates and saves. */
#include "train.h"

#include <errno.h>
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../../data/tokens.h"
#include "../../ref/base/error.h"
#include "../cli/commands.h"
#include "../store/tensors.h"
#include "checkpoint.h"
#include "fit.h"
#include "interrupt.h"
#include "pipeline.h"
#include "progress.h"
#include "train_parts.h"

/* Fails if the tokens are no longer those that the run says it was trained on. */
static int check_data(const Training *t) {
    return tokens_unchanged(t->setup.train) || tokens_unchanged(t->setup.valid) ? -1 : 0;
}

/* Bytes that this process held in memory at most, files that are mapped included. */
static uint64_t resident_bytes(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return 1024 * (uint64_t)usage.ru_maxrss; /* it is in KiB */
}

/* Fills in run.memory from the engine and the plan.  -1 and an error. */
static int count_memory(Training *t) {
    const MemCount *counted = engine_memory(t->setup.engine);
    const bool has_cache = t->setup.options.cache || t->setup.options.device_cache;
    FitBytes planned;
    if (fit_plan_all(&planned, &t->setup)) return -1;
    for (int role = 0; role <= MEM_ROLES; role++) {
        MemoryRow *row = &t->run.memory[role];
        const bool total = role == MEM_ROLES;
        const size_t peak = total ? counted->total_peak : counted->peak[role];
        snprintf(row->role, sizeof row->role, "%s", total ? "total" : mem_role_names[role]);
        row->current = total ? counted->total_current : counted->current[role];
        /* An earlier session may have used more; if more than is planned now, its ranks or settings
         * were others.  The plan leaves a cache out. */
        const bool with_cache = has_cache && (total || role == MEM_CACHE);
        const bool others = row->peak > planned.device[role] && !with_cache;
        if (peak > row->peak || others) row->peak = peak;
        row->planned = planned.device[role];
    }
    const uint64_t resident = resident_bytes();
    if (resident > t->run.resident) t->run.resident = resident;
    return 0;
}

/* Writes run.h5 first: a resume drops rows beyond the checkpoint, but could not add missing
 * ones. */
static int save(Training *t) {
    double start = clock_seconds();
    const Options *o = &t->setup.options;
    t->run.provenance.wall = start - t->started;
    if (check_data(t)) return -1;
    t->save_failed = true;
    /* Of --log-samples a power cut must not take lines that the checkpoint counts. */
    if (t->samples && fsync(fileno(t->samples)) && errno != EINVAL && errno != EROFS)
        return error_set("--log-samples %s: %s", o->log_samples, strerror(errno));
    if (count_memory(t) || runfile_write(&t->run, t->run_path.text)) return -1;
    int written = checkpoint_write(t->checkpoint_path.text, &t->setup, &t->state);
    t->diverged = written == TENSORS_NOT_FINITE;
    t->save_failed = written != TENSORS_UNREAD; /* then a rank failed, and no file did */
    if (written || (o->keep_last && rundir_keep(t->dir, t->state.step, o->keep_last))) return -1;
    t->save_failed = false;
    t->saved = clock_seconds();
    t->save_cost = t->saved - start;
    return 0;
}

bool train_save_due(const Training *t) {
    const Options *o = &t->setup.options;
    if (o->save_every) return t->state.step % (uint64_t)o->save_every == 0;
    /* Loses at most a minute of work, but spends at most a twentieth of the time on saving. */
    return clock_seconds() - t->saved > fmax(60, 20 * t->save_cost);
}

/* Returns 1 if `stop` did, see eval_dataset. */
static int evaluate(Training *t, int (*stop)(void)) {
    const Setup *s = &t->setup;
    EvaluationRow row = {.step = t->state.step, .seconds = t->seconds};
    if (check_data(t)) return -1;
    const int stopped = eval_dataset(&row, s, s->valid, stop);
    if (stopped) return stopped;
    progress_note(&t->progress, "step %llu, epoch %.2f: validation %s",
                  (unsigned long long)row.step, (double)row.step / s->steps_per_epoch,
                  eval_format(&row, s->model->tokens).text);
    train_log_evaluation(t, &row);
    runfile_add(&t->run, RUN_EVALUATIONS, &row);
    return 0;
}

static bool is_evaluated(const Training *t) {
    const RunFile *run = &t->run;
    return run->evaluation_rows && run->evaluations[run->evaluation_rows - 1].step == t->state.step;
}

/* Computes the score of a model before it is fine-tuned or, in a resume, the one that a signal cut
 * off, or that is of other samples. */
static int evaluate_start(Training *t) {
    const uint64_t step = t->state.step;
    const bool due =
        step ? step % t->eval_every == 0 || step == t->setup.bcd.steps : *t->setup.options.init;
    if (!due || (is_evaluated(t) && !t->other_samples)) return 0;
    if (is_evaluated(t)) t->run.evaluation_rows--;
    if (evaluate(t, NULL)) return -1;
    if (step) return 0;
    const double loss = t->run.evaluations[0].loss;
    if (isfinite(loss)) return 0;
    return error_set("--init %s: the validation loss is %s before any update",
                     t->setup.options.init, format_loss(loss).text);
}

/* Says why a phase ended after so many updates. */
static Text switch_reason(const SwitchRule *rule, uint64_t length) {
    if (rule->kind != SWITCH_AUTO) return switch_words(rule);
    if (length >= (uint64_t)rule->max_steps)
        return text_of("after %d steps, the most allowed", rule->max_steps);
    return text_of("the loss stopped falling after %llu steps", (unsigned long long)length);
}

/* Records the submodel of the step just done, if a new phase began with it. */
static void note_switch(Training *t, const BcdState *state) {
    RunFile *run = &t->run;
    const SwitchRule *rule = &t->setup.bcd.rule;
    const SwitchRow *last = run->switch_rows ? &run->switches[run->switch_rows - 1] : NULL;
    SwitchRow row = {state->step - 1, state->submodel, bcd_phase_done(state), "start", NAN, NAN};
    if (last && last->phase == row.phase) return;
    if (last) strcpy(row.reason, switch_reason(rule, row.step - last->step).text);
    if (last && rule->kind == SWITCH_AUTO)
        runfile_windows(run, last->step, row.step, rule->window, &row.earlier_loss,
                        &row.window_loss);
    if (last && t->setup.bcd.partition.submodels > 1)
        progress_note(&t->progress, "step %llu: submodel %d of %d (%s)",
                      (unsigned long long)row.step, row.submodel + 1,
                      t->setup.bcd.partition.submodels, row.reason);
    runfile_add(run, RUN_SWITCHES, &row);
}

/* After each update. */
static int watch(void *context, const BcdState *state, const Loss *loss, double lr) {
    Training *t = context;
    t->watching = true;
    double step_seconds = clock_seconds() - t->mark, mean = loss_mean(loss);
    t->seconds += step_seconds;
    CurveRow row = {state->step, state->position, mean, lr, state->submodel, t->seconds};
    if (train_log_samples(t, state)) return -1;
    note_switch(t, state);
    runfile_add(&t->run, RUN_CURVE, &row);
    train_log_curve(t, &row);
    progress_step(&t->progress, state->step, mean, step_seconds, state->submodel,
                  t->setup.bcd.partition.submodels);
    if (state->step % t->eval_every == 0 && evaluate(t, interrupt_signal) < 0) return -1;
    const bool stop = interrupt_signal();
    if ((train_save_due(t) || stop) && save(t)) return -1;
    t->mark = clock_seconds();
    t->watching = false;
    return stop;
}

/* After each batch of a pre-inference. */
static int watch_inference(void *context, const BcdState *state, int done, int samples) {
    Training *t = context;
    const double now = clock_seconds();
    const bool stop = interrupt_signal();
    t->infer_seconds += now - t->mark;
    t->run.inference_seconds += now - t->mark;
    t->seconds += now - t->mark;
    progress_infer(&t->progress, done, samples, t->infer_seconds);
    if (done == samples)
        progress_note(&t->progress, "pre-inference for submodel %d: %d samples in %.3g s",
                      state->submodel + 1, samples, t->infer_seconds);
    if (done == samples || stop) t->infer_seconds = 0;
    if (stop && save(t)) return -1;
    t->mark = clock_seconds();
    return stop;
}

/* Evaluates and writes the files for the last time.  Returns 1 if a signal stopped it. */
static int finish(Training *t) {
    const RunFile *run = &t->run;
    const int stopped = is_evaluated(t) ? 0 : evaluate(t, interrupt_signal);
    if (stopped) return stopped < 0 || save(t) ? -1 : 1;
    double loss = run->evaluations[run->evaluation_rows - 1].loss;
    t->diverged = !isfinite(loss);
    if (t->diverged) return error_set("the validation loss is %s", format_loss(loss).text);
    if (save(t)) return -1;
    /* Written last: a reader of this status may rely on the checkpoint. */
    strcpy(t->run.status, "finished");
    t->save_failed = true; /* if this fails; the run itself is saved */
    return runfile_write(&t->run, t->run_path.text);
}

/* Writes the curves up to the failure and reports it.  The checkpoint holds the last finite state.
 * A step that failed is not counted, but one that left NaN or infinities is. */
static int note_failure(Training *t) {
    char cause[ERROR_BYTES];
    const bool diverged = t->diverged || error_is_diverged();
    snprintf(cause, sizeof cause, "%s", error_message());
    if (t->save_failed && !t->diverged) return -1;
    strcpy(t->run.status, diverged ? "diverged" : "failed");
    t->run.provenance.wall = clock_seconds() - t->started;
    setup_free_engine(&t->setup);            /* where memory has ended, HDF5 needs some of it */
    const bool reported = !*error_message(); /* by another rank */
    const int failed = runfile_write(&t->run, t->run_path.text);
    if (reported) return error_set("%s", "");
    return error_set("step %llu: %s; %s%s holds the last finite state",
                     (unsigned long long)t->state.step + !(t->diverged || t->watching), cause,
                     failed ? "the run could not be marked as failed; " : "",
                     t->checkpoint_path.text);
}

/* Returns 1 if a signal stopped it. */
static int train(Training *t) {
    Setup *s = &t->setup;
    const Options *o = &s->options;
    bool tokens = s->model->tokens;
    t->eval_every =
        o->eval_every ? (uint64_t)o->eval_every : (uint64_t)fmax(1, round(s->steps_per_epoch));
    if (!o->quiet) train_print_doubts(t);
    if (!o->quiet && !o->brief) train_print_start(t);
    t->progress = (Progress){.quiet = o->quiet,
                             .brief = o->brief,
                             .terminal = is_terminal(stdout),
                             .total = s->bcd.steps,
                             .per_step = (double)o->batch * (tokens ? s->model->targets : 1),
                             .unit = tokens ? "tokens" : "images"};
    interrupt_catch();
    if (evaluate_start(t) || train_log_open(t) || save(t)) return -1;
    s->bcd.inferred = watch_inference;
    t->mark = clock_seconds();
    int result = bcd_train(&t->state, &s->bcd, s->engine, s->train, watch, t);
    if (result == 0) result = finish(t);
    progress_end(&t->progress);
    if (result < 0) return note_failure(t);
    if (!o->quiet) train_print_end(t, result == 1);
    return result;
}

int train_run(const Options *options) {
    Training t;
    const int threads = omp_get_max_threads(); /* the run may have its own --threads */
    const int result = train_open(&t, options) ? -1 : train(&t);
    if (options->world && !t.setup.took_world) pipeline_abort(options->world, error_message());
    if (result >= 0) error_set("%s", ""); /* of what was tried in vain */
    train_close(&t);
    if (result >= 0 && *error_message())
        fprintf(stderr, "bcd: the run is saved, and a rank was lost after that: %s\n",
                error_message());
    omp_set_num_threads(threads);
    return result;
}

/* Overwrites the ranks of a resume that does not name them, and their device, with those of the run
 * so far.  Processes on other machines may not see its directory; there the user names the
 * pipeline. */
static int take_ranks(Options *options) {
    static const char *const flags[] = {"pipeline", "replicas", "timeout", "device", NULL};
    const char *missing[sizeof flags / sizeof *flags] = {NULL};
    Options stored;
    int count = 0;
    for (int i = 0; flags[i]; i++)
        if (!options_given(options, flags[i])) missing[count++] = flags[i];
    options_defaults(&stored, COMMAND_TRAIN);
    if (!*options->resume) return 0;
    if (access(rundir_path(options->resume, "run.h5").text, R_OK))
        return options_given(options, "pipeline") ? 0 : pipeline_check_alone(options->resume);
    if (rundir_settings(options->resume, &stored))
        return error_set("%s" WITHOUT_CURVES, error_message());
    return options_take(options, &stored, missing, true);
}

int command_train(const CommandLine *line) {
    Options options = line->options, ranks = options;
    if (take_ranks(&ranks) || pipeline_join(&options.world, &ranks)) return -1;
    if (options.world && options.world->rank > 0) {
        interrupt_ignore();
        return pipeline_worker(options.world);
    }
    const int result = train_run(&options);
    return result == 1 ? interrupt_status() : result;
}
