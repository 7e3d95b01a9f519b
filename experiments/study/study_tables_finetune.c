/* Trainings that started from given weights (--init): before, by full update, by BCD; beside what
 * the second version of the paper publishes, LoRA included. */
#include <math.h>

#include "paper_finetune.h"
#include "study_tables_parts.h"

enum {
    LOSS,
    PERPLEXITY,
    UPDATES,
    SECONDS,
    TRAINED_MEMORY,
    MEMORY,
    THEIR_ACCURACY,
    THEIR_COST_A100,
    THEIR_COST_4090,
    COLUMNS
};

static const TableColumn columns[COLUMNS] = {
    [LOSS] = {.name = "validation_loss", .head = "valid. loss", .decimals = 4},
    [PERPLEXITY] = {.name = "perplexity", .head = "perplexity", .decimals = 2},
    [UPDATES] = {.name = "updates", .head = "updates", .decimals = 0},
    [SECONDS] = {.name = "seconds", .head = "training", .unit = "s", .decimals = 1},
    [TRAINED_MEMORY] = {.name = "trained_memory", .head = "P+G+S", .unit = "MiB", .decimals = 2},
    [MEMORY] = {.name = "memory", .head = "memory", .unit = "MiB", .decimals = 2},
    [THEIR_ACCURACY] = {.name = "published_accuracy",
                        .head = "accuracy",
                        .unit = "published",
                        .decimals = 1},
    [THEIR_COST_A100] = {.name = "published_cost_a100",
                         .head = "cost of 7B",
                         .unit = "A100, A800",
                         .kind = COLUMN_PERCENT,
                         .decimals = 1},
    [THEIR_COST_4090] = {.name = "published_cost_4090",
                         .head = "cost of 7B",
                         .unit = "RTX 4090",
                         .kind = COLUMN_PERCENT,
                         .decimals = 1},
};

static bool is_finetuned(const Cases *cases, const Case *item) {
    return *case_first(cases, item->method)->settings.init;
}

static void put_published(Table *table, FinetuneMethod method) {
    const PaperFinetune *paper = &paper_finetune[method];
    table_number(table, THEIR_ACCURACY, paper->accuracy, SOURCE_PUBLISHED);
    /* A full update's costs are what the others are parts of. */
    Source source = method == FINETUNE_FULL ? SOURCE_NONE : SOURCE_PUBLISHED;
    table_number(table, THEIR_COST_A100, paper->cost_a100, source);
    table_number(table, THEIR_COST_4090, paper->cost_4090, source);
}

/* What the weights could do before the first update, which all seeds and methods start from. */
static void put_before(Table *table, const StudyRow *row) {
    if (!row->evaluation_rows || row->evaluation[0].step) return;
    table_number(table, LOSS, row->evaluation[0].loss, SOURCE_MEASURED);
    table_number(table, PERPLEXITY, row->evaluation[0].perplexity, SOURCE_MEASURED);
}

static void put_after(Table *table, const Cases *cases, const CaseMethod *method) {
    Mean loss = {0}, perplexity = {0}, seconds = {0}, trained = {0}, memory = {0};
    const StudyRow *first = case_first(cases, method);
    for (int s = 0; s < method->seeds; s++) {
        const StudyRow *row = &cases->study->row[method->row[s]];
        mean_add(&loss, row->valid_loss);
        mean_add(&perplexity, row->perplexity);
        mean_add(&seconds, row->seconds);
        mean_add(&trained, study_trained_bytes(row) / MIB);
        mean_add(&memory, row->peak[MEM_ROLES] / MIB);
    }
    study_put_mean(table, LOSS, &loss, SOURCE_MEASURED);
    study_put_mean(table, PERPLEXITY, &perplexity, SOURCE_MEASURED);
    table_number(table, UPDATES, (double)first->steps, SOURCE_NONE);
    study_put_mean(table, SECONDS, &seconds, SOURCE_MEASURED);
    study_put_mean(table, TRAINED_MEMORY, &trained, SOURCE_MEASURED);
    study_put_mean(table, MEMORY, &memory, SOURCE_MEASURED);
    put_published(table, first->submodels == 1 ? FINETUNE_FULL : FINETUNE_BCD);
}

static void put_case(Table *table, const Cases *cases, const Case *item) {
    char name[CASE_NAME], way[CASE_NAME];
    const StudyRow *first = case_first(cases, item->method);
    case_name(first, name);
    table_row(table, "%s, before", name);
    put_before(table, first);
    for (int m = 0; m < item->methods; m++) {
        table_row(table, "%s, %s", name, case_method(cases, item, &item->method[m], way));
        put_after(table, cases, &item->method[m]);
    }
}

int study_add_finetuned(Tables *tables, const Cases *cases) {
    Table *table = NULL;
    for (int c = 0; c < cases->cases; c++) {
        const Case *item = &cases->item[c];
        if (!is_finetuned(cases, item)) continue;
        if (!table)
            table = tables_add(tables, "finetune",
                               "Fine-tuning by full update and by BCD; published: with LoRA",
                               "training", columns, COLUMNS);
        if (!table) return -1;
        put_case(table, cases, item);
    }
    if (!table) return 0;
    table_row(table, "LoRA (published only)");
    put_published(table, FINETUNE_LORA);
    table_note(table,
               "Trainings of one network start from the same weights.  Mean over seeds; +-: the "
               "standard deviation of a single one.  Memory: the most that was allocated; P+G+S: "
               "parameters, gradients, optimizer state.");
    table_note(table,
               "The three columns on the right are published: the second version of the paper "
               "(arXiv 2506.12037v2).  Its abstract has the costs, of training a 7B model on the "
               "same GPUs, and says that BCD is in most cases as accurate as, or more than, full "
               "update and other ways to fine-tune.  Accuracies are in its tables, which we do not "
               "have: those cells are empty, not zero.");
    return 0;
}
