#include "study_sample.h"
#include "../../experiments/study/converge.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

StudyRow *sample_training(Study *study, const char *model, bool images, int submodels,
                          double rate) {
    StudyRow *row = study_add(study);
    snprintf(row->name, sizeof row->name, "%s-%d", images ? "images" : "text", submodels);
    snprintf(row->model, sizeof row->model, "%s", model);
    snprintf(row->input, sizeof row->input, "%s", images ? "images" : "tokens");
    snprintf(row->data, sizeof row->data, "%s", images ? "synthetic" : "text");
    snprintf(row->optimizer, sizeof row->optimizer, "sgd");
    snprintf(row->method, sizeof row->method, "%s", submodels > 1 ? "BCD" : "full");
    snprintf(row->spec, sizeof row->spec, "resnet:depth=8");
    provenance_fill(&row->provenance, 1);
    strcpy(row->provenance.command, "bcd train --note \"<script>&\"");
    row->provenance.wall = submodels > 1 ? 24 : 33;
    options_defaults(&row->settings);
    row->settings.steps = 1; /* as if resolved */
    row->settings.context = row->settings.batch = 1;
    snprintf(row->order, sizeof row->order, "cyclic");
    snprintf(row->switching, sizeof row->switching, "20");
    row->submodels = submodels;
    row->parameters = 77850;
    row->batch = 32;
    row->steps = SAMPLE_STEPS;
    row->seed = 1;
    row->settings.optimizer.lr = 0.1;
    row->settings.optimizer.weight_decay = 1e-5;
    row->settings.fraction = 1;
    row->imbalance = submodels > 1 ? 0.25 : 0;
    row->epochs = 4;
    row->valid_loss = 0.71;
    row->accuracy = 0.7251;
    row->perplexity = exp(0.71);
    row->seconds = submodels > 1 ? 20 : 30;
    row->rate = SAMPLE_STEPS * 32 / row->seconds;
    double mib = 1024 * 1024, w = 3 * mib;
    row->peak[MEM_PARAMETERS] = w;
    row->peak[MEM_GRADIENTS] = row->peak[MEM_STATE] = w / submodels;
    row->peak[MEM_ACTIVATIONS] = 5 * mib;
    row->peak[MEM_BUFFERS] = row->peak[MEM_CACHE] = row->peak[MEM_WORKSPACE] = 0;
    row->peak[MEM_ROLES] = 8 * mib + 2 * w / submodels;
    row->closed_form = w * (1 + 2.0 / submodels);
    row->curve = calloc(SAMPLE_STEPS, sizeof *row->curve);
    row->evaluation = calloc(4, sizeof *row->evaluation);
    if (!row->curve || !row->evaluation) abort();
    for (int s = 0; s < SAMPLE_STEPS; s++)
        row->curve[s] = (CurveRow){.step = (uint64_t)s + 1,
                                   .samples = 32 * ((uint64_t)s + 1),
                                   .loss = 3 * exp(-rate * (s + 1)),
                                   .lr = 0.1,
                                   .submodel = s / 20 % submodels,
                                   .seconds = row->seconds * (s + 1) / SAMPLE_STEPS};
    for (int e = 0; e < 4; e++)
        row->evaluation[e] = (EvaluationRow){.step = 50 * ((uint64_t)e + 1),
                                             .loss = 1 - 0.07 * e,
                                             .accuracy = 0.5 + 0.07 * e,
                                             .perplexity = exp(1 - 0.07 * e)};
    row->switches = calloc(2, sizeof *row->switches);
    if (!row->switches) abort();
    row->switches[0] = (SwitchRow){0, 0, 0, "start", NAN, NAN};
    row->switches[1] = (SwitchRow){20, 1 % submodels, 1, "after 20 steps", 2.5, 2.25};
    row->switch_rows = 2;
    row->curve_rows = SAMPLE_STEPS;
    row->evaluation_rows = 4;
    return row;
}

Study sample_study(void) {
    Study study = {0};
    sample_training(&study, "resnet8", true, 1, 0.02);
    sample_training(&study, "resnet8", true, 3, 0.01);
    sample_training(&study, "gpt:layers=2,width=64,heads=2,context=32", false, 1, 0.005);
    sample_training(&study, "gpt:layers=2,width=64,heads=2,context=32", false, 3, 0.008);
    study_converge(&study);
    return study;
}
