/* The published tables of memory, time and cost, as data (those of trainings are in paper.h).  Each
 * printed cell is in exactly one place; what follows from others is computed. */
#ifndef EXPERIMENTS_PAPER_TABLES_H
#define EXPERIMENTS_PAPER_TABLES_H

#include <stdbool.h>
#include <stddef.h>

/* "N/G": nodes, and GPUs of each. */
typedef struct {
    int nodes, per_node;
} PaperGpus;

int paper_gpus(PaperGpus gpus); /* of all nodes */

/* Table 1: what it says of the two cards. */
typedef struct {
    const char *feature, *unit;
    double rtx4090, a100; /* NAN where it is no number, or two */
} PaperCard;
extern const PaperCard paper_cards[];
extern const size_t paper_card_count;

/* Table 8: the models.  ffn is 0 where the table has none. */
typedef struct {
    const char *model; /* our preset of that name */
    int gpus, layers, width, heads, ffn;
    double memory_gib; /* printed as GB */
} PaperModel;
extern const PaperModel paper_models[];
extern const size_t paper_model_count;

/* Table 3: a step with the optimizer offloaded, and of BCD-1/3, on as many RTX 4090. */
typedef struct {
    const char *model;
    int gpus;
    double offload_ms, bcd_ms;
} PaperOffload;
extern const PaperOffload paper_offload[];
extern const size_t paper_offload_count;

/* Table 4: a step and the memory of a full update over GPUs, and of BCD-1/3 on half of them. */
typedef struct {
    const char *model;
    PaperGpus full;
    double full_gib, full_ms;
    PaperGpus bcd;
    double bcd_gib, bcd_ms;
} PaperDistributed;
extern const PaperDistributed paper_distributed[];
extern const size_t paper_distributed_count;

/* Tables 15 and 16: a step of BCD-1/3, 1/4 and 1/5. */
enum { PAPER_UFPS = 3, PAPER_LEAST_UFP = 3 };
typedef struct {
    int table;
    const char *model;
    int gpus;
    double ms[PAPER_UFPS]; /* [M - PAPER_LEAST_UFP] */
} PaperUfp;
extern const PaperUfp paper_ufp[];
extern const size_t paper_ufp_count;

/* Section 4.4.2, and the GPU counts of Tables 6 and 7: a step of a full update elsewhere. */
typedef struct {
    const char *gpu; /* key of gpu_table */
    const char *model;
    PaperGpus gpus;
    double full_ms;
} PaperElsewhere;
extern const PaperElsewhere paper_elsewhere[];
extern const size_t paper_elsewhere_count;

/* Tables 5 to 7 (of cost) and 12 to 14 (of GPU hours): what BCD on RTX 4090 saves against a full
 * update on `gpu`, as fractions. */
typedef struct {
    int table;
    const char *gpu, *model;
    PaperGpus full, bcd; /* zeros in the tables of GPU hours, which print none */
    double worst, average;
} PaperReduction;
extern const PaperReduction paper_reductions[];
extern const size_t paper_reduction_count;

/* Section 4.4.1 (who = "section 4.4.1") and appendix A.4, per GPU and hour; NAN: not offered. */
typedef struct {
    const char *who;
    double rtx4090, a100, a800;
} PaperPrices;
extern const PaperPrices paper_prices[];
extern const size_t paper_price_count;

/* B-F multipliers in the text: the average one, and the worst.  (The tables follow from neither
 * alone, see paper_table_multiplier.) */
extern const double paper_average_multiplier, paper_worst_multiplier;

/* Sentences with a number in them. */
typedef struct {
    const char *where, *what;
    double value;
} PaperClaim;
typedef enum {
    CLAIM_OFFLOAD,       /* time saved against offload, as a fraction */
    CLAIM_OFFLOAD_WORST, /* faster than offload, worst case */
    CLAIM_DISTRIBUTED_WORST /* slower than distributed, worst case */,
    CLAIM_SPEEDUP_LEAST, /* of a step */
    CLAIM_SPEEDUP_MOST,
    CLAIM_SPEEDUP_MEAN,
    CLAIM_COST_4090,
    CLAIM_COST_A100,
    PAPER_CLAIMS
} PaperClaimKind;
extern const PaperClaim paper_claims[PAPER_CLAIMS];

/* ---- recomputed ------------------------------------------------------------------------------
 */

const PaperModel *paper_model(const char *model); /* NULL: not in Table 8 */

/* Milliseconds of a full update on these GPUs, from Table 4 or section 4.4.2, and of BCD-1/3 on
 * RTX 4090 (from Table 15, which prints more digits, or else Table 4).  NAN where the paper has no
 * such time. */
double paper_full_ms(const char *gpu, const char *model, PaperGpus gpus);
double paper_bcd_ms(const char *model);

/* How these GPUs were spread over nodes when that time was taken. */
PaperGpus paper_timed_gpus(const char *gpu, const char *model, PaperGpus gpus);

/* The GPUs a reduction compares: its own, or those of the table of cost for the same GPU and model.
 */
PaperGpus paper_reduction_full(const PaperReduction *reduction);
PaperGpus paper_reduction_bcd(const PaperReduction *reduction);

/* Dollars per hour of section 4.4.1; NAN for others. */
double paper_price(const char *gpu);

/* GPU time of a BCD step over that of a full one, by the published times: a reduction is
 * 1 - multiplier x ratio, of cost with the ratio of prices in it. */
double paper_time_ratio(const PaperReduction *reduction);
bool paper_is_cost(const PaperReduction *reduction);

/* The multiplier that Tables 5 to 7 and 12 to 14 were computed with: the median over their rows of
 * worst multiplier x (1 - average) / (1 - worst), in which times and prices cancel. */
double paper_table_multiplier(void);
/* That of one row. */
double paper_row_multiplier(const PaperReduction *reduction);

#endif
