/* --price: what GPUs cost per hour, as the user knows it. */
#ifndef EXPERIMENTS_PRICE_H
#define EXPERIMENTS_PRICE_H

#include "../../dist/cluster.h"

/* Overwrites *dollars with the price of a GPU per hour: that in a list such as
 * "rtx4090=0.31,a100=1.12", or else that in gpu_table, 0 if unknown.  -1 and an error if the list
 * is malformed or names an unknown GPU. */
int price_find(double *dollars, const Gpu *gpu, const char *list);

#endif
