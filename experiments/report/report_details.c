/* What is known of each training: settings, provenance, results. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report_parts.h"

enum { FIELD = 1280 };

/* A field of a training: its name, and its value as text, "" for none. */
typedef struct {
    char name[64], text[FIELD];
} Field;

static void column_field(Field *field, const StudyRow *row, int number) {
    const H5Column *column = &study_columns[number].column;
    const void *at = (const char *)row + column->offset;
    const char *unit = column->unit ? column->unit : "", *blank = column->unit ? " " : "";
    double value;
    snprintf(field->name, sizeof field->name, "%s", column->name);
    if (column->kind == H5_TEXT) {
        snprintf(field->text, FIELD, "%s", (const char *)at);
    } else if (column->kind == H5_INT64) {
        snprintf(field->text, FIELD, "%" PRId64 "%s%s", *(const int64_t *)at, blank, unit);
    } else {
        memcpy(&value, at, sizeof value);
        if (!isnan(value)) snprintf(field->text, FIELD, "%.6g%s%s", value, blank, unit);
    }
}

/* "start 1, steps 34": how often submodels were left for which reason; with --switch-every auto
 * also the mean losses of the two windows that decided, as far as there is room. */
static void switches_field(Field *field, const StudyRow *row) {
    size_t used = 0;
    strcpy(field->name, "switches");
    for (size_t i = 0; i < row->switch_rows; i++) {
        size_t count = 0, before = 0;
        for (size_t j = 0; j < row->switch_rows; j++) {
            bool same = strcmp(row->switches[j].reason, row->switches[i].reason) == 0;
            count += same;
            before += same && j < i;
        }
        if (!before && used < FIELD / 2)
            used += (size_t)snprintf(field->text + used, FIELD - used, "%s%s %zu", used ? ", " : "",
                                     row->switches[i].reason, count);
    }
    for (size_t i = 0; i < row->switch_rows; i++) {
        const SwitchRow *s = &row->switches[i];
        if (!isfinite(s->earlier_loss + s->window_loss)) continue;
        if (used + 80 > FIELD) {
            snprintf(field->text + used, FIELD - used, " ...");
            return;
        }
        used += (size_t)snprintf(field->text + used, FIELD - used,
                                 ", after update %" PRIu64 " (loss %.4g, then %.4g)", s->step,
                                 s->earlier_loss, s->window_loss);
    }
}

static bool is_column(const char *name) {
    for (int c = 0; c < study_column_count; c++)
        if (strcmp(study_columns[c].column.name, name) == 0) return true;
    return false;
}

static void option_field(Field *field, const StudyRow *row, int number) {
    const Option *option = &option_table[number];
    char text[OPTION_TEXT];
    if (!(option->commands & COMMAND_TRAIN) || option->role == OPTION_LOCAL) return;
    snprintf(field->name, sizeof field->name, "--%s", option->name);
    snprintf(field->text, FIELD, "%s", options_format(&row->settings, number, text));
}

/* Field `number` of a training; false behind the last. */
static bool get_field(Field *field, const StudyRow *row, int number) {
    *field->name = *field->text = 0;
    if (number < study_column_count) {
        column_field(field, row, number);
        return true;
    }
    number -= study_column_count;
    if (number < PROVENANCE_TEXTS) {
        const ProvenanceText *text = &provenance_texts[number];
        if (is_column(text->name)) return true;
        snprintf(field->name, sizeof field->name, "%s", text->name);
        snprintf(field->text, FIELD, "%s", (const char *)&row->provenance + text->offset);
        return true;
    }
    number -= PROVENANCE_TEXTS;
    if (number == 0) {
        strcpy(field->name, "specification");
        snprintf(field->text, FIELD, "%s", row->spec);
    } else if (number == 1) {
        switches_field(field, row);
    } else if (option_table[number - 2].name) {
        option_field(field, row, number - 2);
    } else {
        return false;
    }
    return true;
}

static const StudyRow *row_of(const Cases *cases, const CaseMethod *method, int seed) {
    return &cases->study->row[method->row[seed]];
}

/* Whether all trainings of the case have the same in a field. */
static bool is_common(const Cases *cases, const Case *item, int number, const Field *field) {
    Field other;
    for (int m = 0; m < item->methods; m++)
        for (int s = 0; s < item->method[m].seeds; s++) {
            get_field(&other, row_of(cases, &item->method[m], s), number);
            if (strcmp(other.text, field->text)) return false;
        }
    return true;
}

static void put_common(FILE *out, const Cases *cases, const Case *item, bool *common) {
    Field field;
    fprintf(out, "<table class=\"settings\"><tbody>\n");
    for (int f = 0; get_field(&field, case_first(cases, &item->method[0]), f); f++) {
        common[f] = is_common(cases, item, f, &field);
        if (!common[f] || !*field.text) continue;
        fprintf(out, "<tr>");
        put_element(out, "th scope=\"row\"", field.name);
        put_element(out, "td", field.text);
        fprintf(out, "</tr>\n");
    }
    fprintf(out, "</tbody></table>\n");
}

static void put_own(FILE *out, const StudyRow *row, const bool *common) {
    Field field;
    fprintf(out, "<p class=\"own\">");
    for (int f = 0; get_field(&field, row, f); f++) {
        if (common[f] || !*field.text) continue;
        fprintf(out, "<i>%s</i> ", field.name);
        put_text(out, field.text);
        fprintf(out, "; ");
    }
    fprintf(out, "</p>\n");
}

void put_details(FILE *out, const Cases *cases, const Case *item) {
    enum { FIELDS = 256 };
    bool common[FIELDS] = {false};
    char text[CASE_NAME];
    int trainings = 0;
    for (int m = 0; m < item->methods; m++) trainings += item->method[m].seeds;
    fprintf(out, "<details><summary>All of %s: settings, provenance, results</summary>\n",
            trainings > 1 ? "these trainings" : "this training");
    if (trainings > 1) fprintf(out, "<h3>The same for all</h3>\n");
    put_common(out, cases, item, common);
    for (int m = 0; m < item->methods && trainings > 1; m++)
        for (int s = 0; s < item->method[m].seeds; s++) {
            const StudyRow *row = row_of(cases, &item->method[m], s);
            fprintf(out, "<h3>");
            put_text(out, case_method(cases, item, &item->method[m], text));
            fprintf(out, ", seed %" PRId64 "</h3>\n", row->seed);
            put_own(out, row, common);
        }
    fprintf(out, "</details>\n");
}
