/* What `bcd train` prints before and after the training. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../../data/tokens.h"
#include "../../dist/coordinator.h"
#include "../../ref/memory.h"
#include "../convert/convert.h"
#include "fit.h"
#include "train_parts.h"

static void print_data(const Setup *s) {
    const Options *o = &s->options;
    printf("%s, %s parameters in %d blocks\n", s->model->name,
           format_count((double)s->model->param_count).text, s->model->blocks);
    if (s->model->tokens)
        printf("%s: %d training and %d validation sequences of %d tokens, vocabulary %d\n",
               s->train->name, s->train->samples, s->valid->samples, s->model->input.w,
               s->model->outputs);
    else
        printf("%s: %d training and %d validation images%s\n", s->train->name, s->train->samples,
               s->valid->samples, o->augment ? ", cropped and flipped at random" : "");
    if (s->model_context)
        printf("the model reads up to %d tokens; it trains on %d, as --context does not say more\n",
               s->model_context, s->model->input.w);
    if (o->fraction < 1) printf("dataset reduction: each submodel sees %g of them\n", o->fraction);
}

static void print_submodels(const Setup *s) {
    const Partition *partition = &s->bcd.partition;
    if (partition->submodels == 1) {
        printf("ordinary training, the whole network at once%s\n",
               s->stage_settings.offload ? "; optimizer state and update in host memory" : "");
        return;
    }
    printf("BCD, %d submodels of", partition->submodels);
    for (int m = 0; m < partition->submodels && m < 12; m++)
        printf("%s %s", m ? "," : "", format_count((double)partition->params[m]).text);
    printf("%s parameters (the largest %.1f %% over the mean)",
           partition->submodels > 12 ? ", ..." : "", 100 * partition->imbalance);
    if (partition->always_params)
        printf(", and %s that are always active",
               format_count((double)partition->always_params).text);
    printf(", %s order, the next one %s\n", order_names[s->bcd.order],
           switch_words(&s->bcd.rule).text);
}

/* Returns how many updates a phase takes, at least. */
static double phase_updates(const Setup *s) {
    return (double)bcd_shortest_phase(&s->bcd, s->train->samples);
}

/* Prints a line if the training ends before every submodel has had its turn. */
static void print_turns(const Setup *s) {
    const int submodels = s->bcd.partition.submodels;
    const double steps = (double)s->bcd.steps, turns = ceil(steps / phase_updates(s));
    if (turns >= submodels) return;
    printf("%.0f update%s train only %.0f of %d submodels", steps, steps > 1 ? "s" : "", turns,
           submodels);
    if (steps >= submodels)
        printf(", as a phase takes %.0f; --switch-every %.0f gives each a turn", phase_updates(s),
               floor(steps / submodels));
    printf("\n");
}

static void print_rate(const Setup *s, double part) {
    const double rate = s->stage_settings.optimizer.lr;
    printf(": the rate reaches %.3g of %g\n", part * rate, rate);
}

/* Prints a line where the default of a ResNet, that its ends are always active, does not hold. */
static void print_ends(const Setup *s) {
    const Options *o = &s->options;
    const bool cached = o->cache || o->device_cache, figure2 = o->placement == PLACEMENT_FIGURE2;
    if (s->model->tokens || s->bcd.partition.submodels < 2 || *o->always_active ||
        options_given(o, "always-active") || *o->partition)
        return;
    printf("no block is always active, as both ends are otherwise: %s\n",
           cached    ? "--cache keeps outputs of frozen blocks"
           : figure2 ? "--placement figure2 puts every block into a submodel"
                     : "the blocks between them are fewer than the submodels");
}

/* Prints a line where an export would be refused, of a model that could have had one. */
static void print_export(const Setup *s) {
    const char *init = convert_is_tensors(s->options.init) ? "" : s->options.init;
    bool kept;
    if (!convert_is_refused(s->model)) return;
    if (convert_keeps_config(&kept, s->model, init) || kept)
        return; /* it may be gone, on a resume */
    printf(
        "bcd export will refuse this model: transformers needs a width that is a multiple of the "
        "heads\n");
}

void train_print_doubts(const Training *t) {
    const Setup *s = &t->setup;
    const Options *o = &s->options;
    const double steps = (double)s->bcd.steps, phase = phase_updates(s);
    const int warmup = o->optimizer.warmup_steps;
    if (!s->bcd.steps) return;
    print_turns(s);
    print_ends(s);
    print_export(s);
    if (warmup > steps) {
        printf("the warm-up takes %d updates, and the training %.0f", warmup, steps);
        print_rate(s, steps / warmup);
    }
    if (s->bcd.partition.submodels > 1 && o->switch_warmup > phase) {
        printf("a phase takes %.0f updates, and its warm-up %d", phase, o->switch_warmup);
        print_rate(s, phase / o->switch_warmup);
    }
    if (o->cache && !o->pre_infer && s->bcd.rule.kind != SWITCH_AUTO &&
        phase * o->batch <= o->fraction * s->train->samples)
        printf(
            "a phase of %.0f updates is at most an epoch: it sees few samples twice, and --cache "
            "saves little\n",
            phase);
    if (*o->valid && tokens_same(o->data, o->valid))
        printf("--valid has the tokens of --data: validation is on what is trained on\n");
}

/* "4 ranks (threads), virtual placement, 1f1b, 8 parts" */
static void print_ranks(const Setup *s) {
    const Options *o = &s->options;
    if (!s->ranks) return;
    printf("%d rank%s (%s)", s->ranks, s->ranks == 1 ? "" : "s",
           o->world ? o->pipeline : "threads");
    if (o->replicas > 1) printf(", %d replicas", o->replicas);
    printf(", %s placement, %s, %d part%s\n", placement_names[s->placement.kind],
           schedule_names[s->pipeline.kind], o->accumulate, o->accumulate == 1 ? "" : "s");
    const int infer = s->pipeline.infer_ranks;
    if (s->bcd.pre_infer && infer < s->placement.ranks && infer)
        printf("pre-inference by the first %d of %d ranks: the next has no room for the prefix\n",
               infer, s->placement.ranks);
    if (s->bcd.pre_infer && !infer)
        printf("pre-inference by all ranks together: the first has no room for the whole prefix\n");
    const bool tied = placement_splits_tied(&s->placement, s->model);
    if (tied || o->replicas > 1)
        printf("%s are added up over ranks, so this differs from one device by rounding\n",
               o->replicas > 1 ? "gradients of replicas" : "the gradients of a tied embedding");
    if (o->replicas > 1 && setup_has_batch_norm(s->model))
        printf("batch norms see %d sample%s at a time, of a replica, which changes the result\n",
               s->stage_settings.batch, s->stage_settings.batch == 1 ? "" : "s");
}

/* "2 threads", or "NVIDIA H200, bf16". */
static Text format_computer(const Provenance *p) {
    return *p->accelerator ? text_of("%s, %s", p->accelerator, p->precision)
                           : text_of("%d thread%s", p->threads, p->threads == 1 ? "" : "s");
}

/* "cosine, warm-up 20 steps, clipped at 1" */
static Text format_schedule(const Options *o) {
    Text text = text_of("%s", lr_names[o->optimizer.schedule]);
    if (o->optimizer.warmup_steps) text_add(&text, ", warm-up %d steps", o->optimizer.warmup_steps);
    if (o->optimizer.clip_norm > 0) text_add(&text, ", clipped at %g", o->optimizer.clip_norm);
    return text;
}

/* Says how much of the model the largest block is, where it alone decides how small the largest
 * submodel can be. */
static void print_largest_block(const Setup *s) {
    const Model *m = s->model;
    double largest = 0, sum = 0;
    int at = 0;
    for (int b = 0; b < m->blocks; b++) {
        const double params = (double)block_params(m, b);
        sum += params;
        if (params > largest) largest = params, at = b;
    }
    const int enough = (int)ceil(sum / largest);
    if (s->bcd.partition.submodels < enough) return;
    printf("the largest block, %s%s has %s of %s parameters: more than %d submodels save no more\n",
           m->block[at].name, at == 0 && m->transformer.tied ? ", which the head shares," : "",
           format_count(largest).text, format_count(sum).text, enough);
}

/* "--submodels 6: 1.9 GiB" */
static void add_choice(Text *text, const Setup *s, FitChoice choice, const char *flags) {
    FitBytes bytes;
    if (fit_plan_choice(&bytes, s, &choice)) return;
    text_add(text, "%s%s: %s", *text->text ? ", " : "", flags,
             format_bytes((double)bytes.device[MEM_ROLES]).text);
}

/* What other settings would make of the plan. */
static Text list_choices(const Setup *s) {
    static const int submodels[] = {1, 3, 6};
    const FitChoice now = fit_choice(s);
    Text text = {""};
    for (int i = 0; i < 3 && !s->stage_settings.offload; i++) {
        FitChoice choice = now;
        choice.submodels = submodels[i];
        if (choice.submodels != now.submodels && choice.submodels <= s->model->blocks)
            add_choice(&text, s, choice, text_of("--submodels %d", submodels[i]).text);
    }
    FitChoice recompute = now, accumulate = now, lion = now;
    recompute.recompute = true;
    accumulate.accumulate = s->options.batch;
    lion.optimizer = OPTIMIZER_LION;
    if (!now.recompute) add_choice(&text, s, recompute, "--recompute");
    if (now.accumulate < s->options.batch && !setup_has_batch_norm(s->model))
        add_choice(&text, s, accumulate, text_of("--accumulate %d", s->options.batch).text);
    if (optimizer_state_vectors(&s->stage_settings.optimizer, &(Param){0}) > 1)
        add_choice(&text, s, lion, "--optimizer lion");
    return text;
}

static void print_plan(const Setup *s) {
    FitBytes bytes;
    if (fit_plan_all(&bytes, s)) return;
    printf("memory planned: %s%s (%s)\n", format_bytes((double)bytes.device[MEM_ROLES]).text,
           s->ranks ? " for all ranks" : "", fit_list_roles(bytes.device).text);
    if (s->options.cache)
        printf("and up to %s of --cache%s\n",
               format_bytes((double)(fit_cache_bytes(s) + fit_cache_batch_bytes(s))).text,
               s->ranks && s->options.replicas > 1 ? " for each replica" : "");
    if (bytes.host[MEM_ROLES])
        printf("and %s of host memory\n", format_bytes((double)bytes.host[MEM_ROLES]).text);
    if (s->ranks) return;
    const Text choices = list_choices(s);
    if (*choices.text) printf("instead with %s\n", choices.text);
    print_largest_block(s);
}

void train_print_start(const Training *t) {
    const Setup *s = &t->setup;
    const Options *o = &s->options;
    print_data(s);
    print_submodels(s);
    print_ranks(s);
    printf("%s, rate %g (%s), batch %d, %llu step%s (%.3g epochs), seed %llu, %s\n",
           optimizer_names[o->optimizer.kind], o->optimizer.lr, format_schedule(o).text, o->batch,
           (unsigned long long)s->bcd.steps, s->bcd.steps == 1 ? "" : "s",
           (double)s->bcd.steps / s->steps_per_epoch, (unsigned long long)o->seed,
           format_computer(&t->run.provenance).text);
    print_plan(s);
    if (s->model->tokens && o->optimizer.kind == OPTIMIZER_SGD && !*o->init)
        printf("sgd trains language models badly from scratch; the default is adamw\n");
    if (runfile_moved(&t->run)) {
        const SessionRow *now = &t->run.sessions[t->run.session_rows - 1], *before = now - 1;
        printf("so far trained on %s in %s, now on %s in %s, which rounds differently\n",
               before->device, before->precision, now->device, now->precision);
    }
    if (t->resumed)
        printf("continuing in %s after %llu steps\n", t->dir, (unsigned long long)t->state.step);
    else
        printf("results go to %s\n", t->dir);
    fflush(stdout);
}

/* Host memory next to a device: masters of frozen parameters in bf16, optimizer state with offload,
 * buffers for transfers. */
static void print_host_memory(const Setup *s) {
    FitBytes planned;
    if (!s->device || fit_plan_all(&planned, s)) return;
    printf("planned in host memory: %s (parameters %s, state %s)\n",
           format_bytes((double)planned.host[MEM_ROLES]).text,
           format_bytes((double)planned.host[MEM_PARAMETERS]).text,
           format_bytes((double)planned.host[MEM_STATE]).text);
}

/* Prints what the fullest of the ranks needs. */
static void print_fullest_rank(const Setup *s) {
    FitBytes planned;
    const MemCount *each = coordinator_counts(s->engine);
    int fullest = 0;
    for (int r = 1; r < s->ranks; r++)
        if (each[r].total_peak > each[fullest].total_peak) fullest = r;
    if (fit_plan(&planned, s, fullest)) return;
    printf("fullest rank %d: %s, planned %s\n", fullest,
           format_bytes((double)each[fullest].total_peak).text,
           format_bytes((double)planned.device[MEM_ROLES]).text);
}

static void print_memory(const Training *t) {
    if (t->setup.ranks) printf("\n%d ranks together:", t->setup.ranks);
    printf("\nmemory           peak      planned\n");
    for (int role = 0; role <= MEM_ROLES; role++) {
        const MemoryRow *row = &t->run.memory[role];
        if (row->peak)
            printf("%-12s %9s %12s\n", row->role, format_bytes((double)row->peak).text,
                   format_bytes((double)row->planned).text);
    }
    printf("resident in this process: %s\n", format_bytes((double)t->run.resident).text);
    if (t->setup.ranks) print_fullest_rank(&t->setup);
    print_host_memory(&t->setup);
    const Setup *s = &t->setup;
    const MemoryRow *m = t->run.memory;
    const OptimizerSettings *optimizer = &s->bcd.optimizer;
    Precision precision = s->stage_settings.precision;
    double held = (double)(m[MEM_PARAMETERS].peak + m[MEM_GRADIENTS].peak + m[MEM_STATE].peak);
    char form[48];
    double parts = 1 / partition_share(&s->bcd.partition, s->model);
    /* The closed form counts the active submodel's optimizer state in the memory that computes, and
     * ranks have their peaks at different times. */
    if (s->stage_settings.offload || s->stage_settings.keep_state || s->ranks) return;
    printf("parameters, gradients and state %s; closed form %s %s, for equal submodels%s\n",
           format_bytes(held).text,
           memory_closed_form_text(form, optimizer, precision, text_of("%.3g", parts).text),
           format_bytes(memory_closed_form(s->model, optimizer, precision, parts)).text,
           parts < s->bcd.partition.submodels - 1e-9
               ? text_of(" (%.3g is %d, with what is always active)", parts,
                         s->bcd.partition.submodels)
                     .text
               : "");
}

void train_print_end(const Training *t, bool interrupted) {
    const RunFile *run = &t->run;
    const unsigned long long steps = t->state.step;
    const bool brief = t->setup.options.brief, tokens = t->setup.model->tokens;
    if (interrupted) {
        if (brief) return;
        printf("stopped after step %llu; continue with: bcd train --resume %s\n", steps,
               quoted(t->dir).text);
        return;
    }
    const Text score = eval_format(&run->evaluations[run->evaluation_rows - 1], tokens);
    Text time = format_time(t->seconds), loss = format_loss(0);
    if (run->curve_rows) /* a tenth of an epoch, and at least ten updates */
        loss = format_loss(runfile_smooth(run, run->curve_rows - 1,
                                          (size_t)fmax(10, t->setup.steps_per_epoch / 10)));
    if (!steps) {
        printf("%snothing trained: validation %s\n", brief ? "  " : "\n", score.text);
    } else if (brief) {
        if (t->seconds < 10) time = text_of("%.1f s", t->seconds);
        printf("  %llu steps in %s: training loss %s, validation %s\n", steps, time.text, loss.text,
               score.text);
    } else {
        printf("\n%llu step%s, %.3g epochs, %s of training: training loss %s, validation %s\n",
               steps, steps == 1 ? "" : "s", (double)steps / t->setup.steps_per_epoch, time.text,
               loss.text, score.text);
    }
    if (brief) return;
    print_memory(t);
    printf("\nresults are in %s; see them with: bcd report %s\n", t->dir,
           quoted(t->run_path.text).text);
    /* Of a token file by a tokenizer that the run does not know, it cannot. */
    const char *made = t->setup.tokenizer;
    const bool known = !strcmp(made, "bytes") || !strncmp(made, "gpt2", 4) || *t->setup.init;
    if (tokens && known) printf("sample from it with: bcd sample %s\n", quoted(t->dir).text);
}
