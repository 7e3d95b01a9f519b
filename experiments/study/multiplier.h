/* --multiplier: a B-F multiplier of our own. */
#ifndef EXPERIMENTS_MULTIPLIER_H
#define EXPERIMENTS_MULTIPLIER_H

/* From "2.5", or from files of results ("full/run.h5,bcd/run.h5", "validity.h5"): the mean over
 * their BCD rows that have a full update beside them, of the language models if there are any.  NAN
 * from "".  -1 and an error. */
int multiplier_read(double *multiplier, const char *text);

#endif
