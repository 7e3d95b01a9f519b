/* Opens trained models for evaluation. */
#pragma once

#include "../cli/command_line.h"
#include "setup.h"

/* Opens a trained model for evaluation: settings, model, stage and engine with the parameters, no
 * data sets.  `place` is a run's directory or a checkpoint file; flags given in `asked` (data
 * directory, batch, limit, threads ...) go over the stored ones.  -1 and an error; setup_free is
 * safe either way. */
int model_open_run(Setup *setup, const char *place, const Options *asked);

/* Checks that a command line names a model, and only one.  -1 and an error. */
int model_check_given(const CommandLine *line);

/* The same as model_open_run of what a command line names: its first file, or --init. */
int model_open(Setup *setup, const CommandLine *line);
