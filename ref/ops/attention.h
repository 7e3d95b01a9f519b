/* What an attention is like, for every device. */
#ifndef REF_OPS_ATTENTION_H
#define REF_OPS_ATTENTION_H

#include <stdbool.h>

/* Rotary positions (RoFormer, Su et al. 2021): elements i and i + d/2 of a head of d at position p
 * are a pair, turned by the angle p * frequency(i).  frequency(i) = base^(-2i/d), and for a longer
 * context than a model was first trained for, scaled:
 *   linear (original 0)  every frequency is divided by factor (Chen et al. 2023)
 *   llama3               those that turn less than `low` times over `original` positions are
 *                        divided by factor, those that turn more than `high` times stay, those
 *                        between lie between (Llama 3.1: Grattafiori et al. 2024) */
typedef struct {
    double base;      /* 0: no rotary positions */
    double factor;    /* 0 or 1: as they are */
    double low, high; /* low < high */
    double original;
} Rope;

/* Attention of `heads` heads of d numbers.  Keys and values have `groups` heads, which
 * divides heads: query head h looks at h / (heads / groups) (grouped queries, Ainslie et al. 2023).
 * groups == heads: each its own (Vaswani et al. 2017). */
typedef struct {
    int heads, groups, d;
    Rope rope;
    bool causal; /* a position looks at itself and those before it; else at all */
} Attention;

#ifdef __cplusplus
extern "C" {
#endif

/* rope.c: the frequency of pair `pair` of d/2, in radians a position; rope->base > 0. */
double rope_frequency(const Rope *rope, int pair, int d);

#ifdef __cplusplus
}
#endif

#endif
