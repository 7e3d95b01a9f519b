#include "paper_finetune.h"

#include <math.h>

/* "we reduce the training cost of a 7B model to 33% on A100/A800 and only 2.6% on RTX 4090". */
const PaperFinetune paper_finetune[FINETUNE_METHODS] = {
    [FINETUNE_FULL] = {NAN, 1, 1}, /* what the costs are parts of */
    [FINETUNE_BCD] = {NAN, 0.33, 0.026},
    [FINETUNE_LORA] = {NAN, NAN, NAN},
};
