/* What the experiments memory and timing measure here: small networks, or those of --models. */
#ifndef EXPERIMENTS_MEASURED_H
#define EXPERIMENTS_MEASURED_H

#include "paper.h"

typedef struct {
    const char *model, *data, *optimizer, *batch;
} MeasuredNetwork;

/* Sets the options of a training of a network.  Returns -1 with an error set. */
int measured_options(Options *o, const Options *asked, const MeasuredNetwork *network,
                     int submodels);

/* Calls `add` for each network, numbered from 1: those of the preset, which model NULL ends, or
 * those of --models, on generated images or on the project's text, with the batch of the preset's
 * network for the same data (or of its last one).  Returns -1 with an error set. */
typedef int AddNetwork(Tables *tables, const Options *asked, const MeasuredNetwork *network,
                       int number);
int measured_for_each(Tables *tables, const Options *asked, const MeasuredNetwork *preset,
                      AddNetwork *add);

/* The networks of a preset; the tables of a network: its submodels against the full update, and its
 * pipelines. */
const MeasuredNetwork *timing_networks(int preset);
AddNetwork paper_add_shares, paper_add_pipelines;
/* Sets the cell's value to the median of value[repeats], and the spread of a measured cell to their
 * standard deviation.  Sorts `value`.  repeats >= 2. */
void timing_take_median(Cell *cell, double *value, int repeats);
/* Adds Figure 3: --cache in long phases.  Returns -1 with an error set. */
int paper_add_figure3(Tables *tables, const Options *asked);

#endif
