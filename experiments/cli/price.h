/* --price: what GPUs cost per hour, as the user knows it. */
#ifndef EXPERIMENTS_PRICE_H
#define EXPERIMENTS_PRICE_H

#include "../../dist/cluster.h"

/* Dollars per hour of a GPU: as a list such as "rtx4090=0.31,a100=1.12" says, or else gpu_table (0:
 * neither does).  -1 and an error where the list is wrong or names a GPU that is not there. */
int price_find(double *dollars, const Gpu *gpu, const char *list);

#endif
