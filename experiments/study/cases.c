#include "cases.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../alloc.h"

/* ---- what is alike --------------------------------------------------------------------------- */

/* The flags of a method: how the submodels take turns; and the learning rate, whose best value
 * differs between methods.  A flag in which variants differ is in their names, with these words;
 * the first three are in "BCD-1/3 x.9" already. */
static const struct {
    const char *flag, *words;
    enum { ALWAYS, UNLESS_DEFAULT, WORDS_ALONE } shown;
} method_flags[] = {
    {"submodels", NULL, ALWAYS},
    {"fraction", NULL, ALWAYS},
    {"method", NULL, ALWAYS},
    {"switch-every", "every ", ALWAYS},
    {"order", "", UNLESS_DEFAULT},
    {"frozen-norm", "batch norms", WORDS_ALONE},
    {"lr", "rate ", ALWAYS},
    {"keep-state", "keeps state", WORDS_ALONE},
    {"switch-warmup", "switch-warmup ", UNLESS_DEFAULT},
    {"submodel-lr", "submodel-lr ", UNLESS_DEFAULT},
    {"always-active", "always-active ", UNLESS_DEFAULT},
    {"correct-above", "correct-above ", UNLESS_DEFAULT},
    {"partition", "partition ", UNLESS_DEFAULT},
    {"auto-window", "auto-window ", UNLESS_DEFAULT},
    {"auto-tolerance", "auto-tolerance ", UNLESS_DEFAULT},
    {"auto-min", "auto-min ", UNLESS_DEFAULT},
    {"auto-max", "auto-max ", UNLESS_DEFAULT},
};
enum { METHOD_FLAGS = sizeof method_flags / sizeof *method_flags };
static bool is_of_method(const char *flag) {
    for (int f = 0; f < METHOD_FLAGS; f++)
        if (strcmp(method_flags[f].flag, flag) == 0) return true;
    return false;
}

/* Compares the flags of a method, or those of a case but for the network. */
static bool same_flags(const StudyRow *a, const StudyRow *b, bool of_method) {
    for (int o = 0; option_table[o].name; o++) {
        const Option *option = &option_table[o];
        if (option->role == OPTION_FIXED && (option->commands & COMMAND_TRAIN) &&
            strcmp(option->name, "seed") && strcmp(option->name, "model") &&
            is_of_method(option->name) == of_method &&
            strcmp(options_format(&a->settings, o).text, options_format(&b->settings, o).text))
            return false;
    }
    return true;
}

bool case_settings_equal(const StudyRow *a, const StudyRow *b) {
    return !strcmp(a->provenance.device, b->provenance.device) &&
           !strcmp(a->provenance.precision, b->provenance.precision) &&
           (!strcmp(a->checksum, b->checksum) || !strcmp(a->data, "synthetic")) &&
           same_flags(a, b, false);
}

static bool same_case(const StudyRow *a, const StudyRow *b) {
    return !strcmp(a->model, b->model) && case_settings_equal(a, b);
}

static bool same_method(const StudyRow *a, const StudyRow *b) {
    return a->submodels == b->submodels && a->steps == b->steps && !strcmp(a->method, b->method) &&
           !strcmp(a->order, b->order) && !strcmp(a->switching, b->switching) &&
           same_flags(a, b, true);
}

typedef struct {
    const StudyRow *row;
    int number;              /* in the study */
    int first, method_first; /* numbers of the first rows of its case and method */
} CaseKey;

static int compare_numbers(double a, double b) { return (a > b) - (a < b); }

static int is_offload(const StudyRow *row) { return strcmp(row->method, "offload") == 0; }

static int compare_methods(const CaseKey *a, const CaseKey *b) {
    int order = compare_numbers((double)a->row->submodels, (double)b->row->submodels);
    if (!order) order = is_offload(a->row) - is_offload(b->row);
    if (!order) order = compare_numbers(b->row->settings.fraction, a->row->settings.fraction);
    return order ? order : compare_numbers(a->method_first, b->method_first);
}

static int compare_keys(const void *x, const void *y) {
    const CaseKey *a = x, *b = y;
    int order = compare_numbers(a->first, b->first);
    if (!order) order = compare_methods(a, b);
    if (!order) order = compare_numbers((double)a->row->seed, (double)b->row->seed);
    return order ? order : compare_numbers(a->number, b->number);
}

/* ---- the order ------------------------------------------------------------------------------- */

/* Returns the keys sorted by the first row of the case, method, seed. */
static CaseKey *sorted_keys(const Study *study) {
    CaseKey *key = xcalloc((size_t)study->rows + 1, sizeof *key);
    for (int r = 0; r < study->rows; r++) {
        const StudyRow *row = &study->row[r];
        int first = 0, method = 0;
        while (first < r && !(key[first].first == first && same_case(key[first].row, row))) first++;
        while (method < r && !(key[method].first == first && key[method].method_first == method &&
                               same_method(key[method].row, row)))
            method++;
        key[r] = (CaseKey){row, r, first, method};
    }
    qsort(key, (size_t)study->rows, sizeof *key, compare_keys);
    return key;
}

/* Returns true when two rows with the same settings and seed are different trainings. */
static bool differs(const StudyRow *a, const StudyRow *b) {
    if (a->curve_rows != b->curve_rows) return true;
    for (size_t i = 0; i < a->curve_rows; i++)
        if (a->curve[i].loss != b->curve[i].loss) return true;
    return false;
}

/* Makes cases and methods in a pass over the sorted rows: a row begins a case, begins a method, or
 * is another seed. */
static void fill(Cases *cases, const CaseKey *key, int rows) {
    CaseMethod *method = cases->method - 1;
    StudyCase *item = cases->item - 1;
    const StudyRow **next = cases->row;
    for (int r = 0; r < rows; r++) {
        bool other_case = r == 0 || key[r].first != key[r - 1].first;
        bool other_method = other_case || compare_methods(&key[r], &key[r - 1]) != 0;
        if (!other_method && key[r].row->seed == key[r - 1].row->seed) {
            cases->left_out += differs(key[r].row, next[-1]);
            continue;
        }
        if (other_case) *++item = (StudyCase){.method = method + 1};
        if (other_method) *++method = (CaseMethod){.of = item, .row = next};
        item->methods += other_method;
        cases->cases += other_case;
        cases->methods += other_method;
        method->seeds++;
        *next++ = key[r].row;
    }
}

void cases_make(Cases *cases, const Study *study) {
    size_t rows = (size_t)study->rows + 1;
    CaseKey *key = sorted_keys(study);
    *cases = (Cases){.study = study,
                     .item = xcalloc(rows, sizeof *cases->item),
                     .method = xcalloc(rows, sizeof *cases->method),
                     .row = xcalloc(rows, sizeof *cases->row)};
    fill(cases, key, study->rows);
    free(key);
}

void cases_free(Cases *cases) {
    free(cases->item);
    free(cases->method);
    free(cases->row);
    *cases = (Cases){0};
}

/* Returns true when `full` is a better full update to compare a row with than `best`. */
static bool fits_better(const StudyRow *full, const StudyRow *best, const StudyRow *row) {
    if (!best) return true;
    bool same_rate = full->settings.optimizer.lr == row->settings.optimizer.lr;
    if (same_rate != (best->settings.optimizer.lr == row->settings.optimizer.lr)) return same_rate;
    if (best->steps == row->steps) return false;
    return full->steps == row->steps || full->steps > best->steps;
}

const StudyRow *case_full_update(const StudyCase *item, const StudyRow *row) {
    const StudyRow *best = NULL;
    for (int m = 0; m < item->methods; m++) {
        const CaseMethod *method = &item->method[m];
        if (method->row[0]->submodels != 1 || is_offload(method->row[0])) continue;
        for (int s = 0; s < method->seeds; s++) {
            const StudyRow *full = method->row[s];
            if (full->seed == row->seed && fits_better(full, best, row)) best = full;
        }
    }
    return best;
}

bool case_is_plain(const CaseMethod *method) {
    const StudyRow *row = method->row[0];
    for (const CaseMethod *other = method->of->method; other < method; other++) {
        const StudyRow *before = other->row[0];
        if (before->submodels == row->submodels &&
            before->settings.fraction == row->settings.fraction &&
            is_offload(before) == is_offload(row))
            return false;
    }
    return true;
}

/* ---- names ----------------------------------------------------------------------------------- */

/* Returns the number behind "key=" in a specification; 0 when there is none. */
static int number_of(const char *spec, const char *key) {
    const char *at = strstr(spec, key);
    return at ? atoi(at + strlen(key)) : 0;
}

/* "resnet8", "gpt-4x128" (layers or depth, width) */
static Text network_name(const StudyRow *row) {
    int colon = (int)strcspn(row->model, ":");
    int deep = number_of(row->model, "layers=") + number_of(row->model, "depth=");
    int wide = number_of(row->model, "width=");
    Text text = text_of("%.*s", colon < 40 ? colon : 40, row->model);
    if (row->model[colon] && deep) text_add(&text, "-%d", deep);
    if (row->model[colon] && wide) text_add(&text, "x%d", wide);
    return text;
}

Text case_name(const StudyRow *row) {
    Text text = network_name(row);
    const Provenance *p = &row->provenance;
    text_add(&text, " %.24s", row->data);
    if (row->settings.limit) text_add(&text, "[:%d]", row->settings.limit); /* of the samples */
    text_add(&text, " %.8s", row->optimizer);
    if (row->settings.optimizer.schedule != LR_CONSTANT)
        text_add(&text, " %.8s", lr_names[row->settings.optimizer.schedule]);
    if (*p->device && strcmp(p->device, "cpu"))
        text_add(&text, " %.8s %.8s", p->device, p->precision);
    return text;
}

/* Returns true when variants, of the same M and part of the data, differ in a flag, or for flag -1
 * in the number of updates. */
static bool varies(const CaseMethod *method, int flag) {
    const StudyCase *item = method->of;
    const StudyRow *row = method->row[0];
    for (int m = 0; m < item->methods; m++) {
        const StudyRow *other = item->method[m].row[0];
        if (strcmp(study_method(row).text, study_method(other).text)) continue;
        if (flag < 0 ? row->steps != other->steps
                     : strcmp(options_format(&row->settings, flag).text,
                              options_format(&other->settings, flag).text))
            return true;
    }
    return false;
}

Text case_method(const CaseMethod *method) {
    const StudyRow *row = method->row[0];
    Text text = study_method(row);
    for (int f = 0; f < METHOD_FLAGS; f++) {
        int flag = options_find(method_flags[f].flag, COMMAND_TRAIN);
        const char *words = method_flags[f].words;
        bool rate = !strcmp(method_flags[f].flag, "lr");
        /* A full update never switches: only rate and length matter. */
        if (!words || !varies(method, flag) || (row->submodels == 1 && !rate)) continue;
        Text value = options_format(&row->settings, flag);
        if (method_flags[f].shown != ALWAYS && !strcmp(value.text, option_table[flag].default_text))
            continue;
        if (rate) value = text_of("%.6g", row->settings.optimizer.lr);
        text_add(&text, " %s%.30s", words, method_flags[f].shown == WORDS_ALONE ? "" : value.text);
    }
    if (varies(method, -1)) text_add(&text, ", %" PRId64 " updates", row->steps);
    return text;
}

Text case_label(const CaseMethod *method) {
    return text_of("%s %s", case_name(method->row[0]).text, case_method(method).text);
}

/* ---- means ----------------------------------------------------------------------------------- */

void mean_add(Mean *mean, double value) {
    if (!isfinite(value)) return;
    double off = value - mean->mean;
    mean->mean += off / ++mean->count;
    mean->squares += off * (value - mean->mean);
}

double mean_value(const Mean *mean) { return mean->count ? mean->mean : NAN; }

double mean_spread(const Mean *mean) {
    return mean->count > 1 ? sqrt(mean->squares / (mean->count - 1)) : NAN;
}
