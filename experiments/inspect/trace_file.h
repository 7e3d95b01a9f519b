/* bcd trace --out and --figure. */
#ifndef EXPERIMENTS_TRACE_FILE_H
#define EXPERIMENTS_TRACE_FILE_H

#include "trace_print.h"

/* Writes them to the files asked for: --out, tables (tables/table.h) `full`, `submodel_1` ...;
 * --figure, a drawing of them.  -1 and an error. */
int trace_write(const Setup *setup, const Trace *traces, int count);

#endif
