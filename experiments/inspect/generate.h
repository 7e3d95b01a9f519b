/* The next token of a text, from a language model. */
#pragma once

#include "../../ref/stage.h"
#include "../cli/command_line.h"

/* What a model has read of a text.  It sees at most as many tokens as its context has: the
 * last ones of a longer prompt and, each time its context is full, the last half of it again. */
typedef struct {
    const Model *model;
    Stage *stage;
    size_t start; /* the first token that it sees */
    size_t read;  /* tokens that it has read, from the beginning of the text */
    real *logits; /* [outputs] */
} Generator;

/* Begins with the stage of a language model. */
void generator_open(Generator *generator, Stage *stage);
void generator_close(Generator *generator);

/* Returns the logits[outputs] of the token that follows text[count], count >= 1, which begins with
 * the text of the last call; valid until the next call.  NULL and an error. */
const real *generator_next(Generator *generator, const int *text, size_t count);

/* Returns a token below `vocabulary`, drawn from softmax(logits / temperature) with the uniform
 * number u, among those that the flags allow. */
int generator_draw(const real *logits, int vocabulary, const SampleFlags *flags, double u);
