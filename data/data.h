/* Data sets by name; README.md lists them. */
#pragma once

#include "../ref/dataset.h"
#include "tokenizer.h"

typedef enum { SPLIT_TRAIN, SPLIT_VALID, SPLIT_TEST } Split;

/* Which part of a data set to open, and how. */
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

/* A data set, by its name or, of one in tokens, as NAME:N in the first N tokens of GPT-2's. */
typedef struct {
    const char *name;
    bool in_tokens;
    /* Below the directory of the data sets; without it the set is missing.  NULL: it needs none. */
    const char *file;
    const char *about; /* for --help; NULL: the name says it all */
    Dataset *(*open)(const DataRequest *request);
    Tokenizer *(*tokenizer)(const char *name, const char *dir); /* NULL: images */
} DataSet;

extern const DataSet data_sets[]; /* ends with name NULL */

/* Opens a data set, for dataset_free to free.  NULL and an error that says what is missing and how
 * to get it. */
Dataset *data_open(const DataRequest *request);

/* Opens the tokenizer that a token set was made with, for tokenizer_free to free.  NULL and an
 * error for image sets. */
Tokenizer *data_tokenizer(const char *name, const char *dir);
/* The same by the tokenizer's own name, which the data set need not be there for. */
Tokenizer *data_named_tokenizer(const char *tokenizer, const char *dir);

/* Returns 1 if a name is a set of token sequences, 0 if of images, -1 and an error that lists the
 * names if it is neither. */
int data_is_tokens(const char *name);
/* Returns true if a name is that of a token file, which need not be there. */
bool data_is_file(const char *name);
