/* What cost, memory and timing measure here: small networks, or those of --models. */
#ifndef EXPERIMENTS_MEASURED_H
#define EXPERIMENTS_MEASURED_H

#include "paper.h"

typedef struct {
    const char *model, *data, *optimizer, *batch;
} MeasuredNetwork;

/* The options of a training of it.  -1 and an error. */
int measured_options(Options *o, const Options *asked, const MeasuredNetwork *network,
                     int submodels);

/* Calls `add` for each network, numbered from 1: those of the preset, which model NULL ends, or
 * those asked for with --models, on generated images or on the project's text, with the batch of
 * the preset's network of that kind (its last, where there is none). */
typedef int AddNetwork(Tables *tables, const Options *asked, const MeasuredNetwork *network,
                       int number);
int measured_each(Tables *tables, const Options *asked, const MeasuredNetwork *preset,
                  AddNetwork *add);

/* The networks of a preset; each one's submodels against its full update, and its pipelines. */
const MeasuredNetwork *timing_networks(int preset);
AddNetwork paper_add_shares, paper_add_pipelines;
/* The cell's number becomes the median of value[repeats], which is sorted; a measured one's spread
 * their standard deviation.  repeats >= 2. */
void timing_take_median(Cell *cell, double *value, int repeats);
int paper_add_figure3(Tables *tables, const Options *asked); /* --cache in long phases */

#endif
