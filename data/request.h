/* What is asked of a data set. */
#ifndef DATA_REQUEST_H
#define DATA_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

typedef enum { SPLIT_TRAIN, SPLIT_VALID, SPLIT_TEST } Split;

typedef struct {
    const char *name;
    const char *dir; /* where the files are; NULL: $BCD_DATA, else "datasets" */
    Split split;
    bool whole;    /* all of a text is this split: none is held out, or all is */
    int context;   /* tokens per sample (token sets only) */
    bool augment;  /* pad-crop-flip (image sets, training split only) */
    uint64_t seed; /* of augmentation and of synthetic data */
    int limit;     /* at most so many samples, the first; 0: all */
} DataRequest;

#endif
