/* What the second version of the paper (arXiv 2506.12037v2, 26 September 2025) publishes about
 * fine-tuning.  Known here is its abstract; NAN is a number that stands in its tables, of which we
 * had no copy. */
#ifndef EXPERIMENTS_PAPER_FINETUNE_H
#define EXPERIMENTS_PAPER_FINETUNE_H

typedef enum { FINETUNE_FULL, FINETUNE_BCD, FINETUNE_LORA, FINETUNE_METHODS } FinetuneMethod;

typedef struct {
    double accuracy;  /* per cent, after fine-tuning */
    double cost_a100; /* of training a 7B model on the same A100 or A800, over a full update's */
    double cost_4090; /* likewise on RTX 4090 */
} PaperFinetune;

extern const PaperFinetune paper_finetune[FINETUNE_METHODS];

#endif
