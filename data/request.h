/* Which part of a data set to open, and how. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef enum { SPLIT_TRAIN, SPLIT_VALID, SPLIT_TEST } Split;

typedef struct {
    const char *name;
    const char *dir; /* where the files are; NULL: in $BCD_DATA, or else in "datasets" */
    Split split;
    bool whole;    /* do not split a text, but use all of it */
    int context;   /* tokens per sample (token sets) */
    bool augment;  /* pad, crop and mirror (the training split of image sets) */
    uint64_t seed; /* of the augmentation and of synthetic data */
    int limit;     /* use only the first `limit` samples; 0: all */
} DataRequest;
