/* --multiplier: a B-F multiplier of our own. */
#ifndef EXPERIMENTS_MULTIPLIER_H
#define EXPERIMENTS_MULTIPLIER_H

/* From "2.5", or from files of results ("full/run.h5,bcd/run.h5", "validity.h5"): the mean over
 * their rows of BCD in three submodels on all of the data that have a full update of the same seed
 * beside them (as in Table 2), of the first of these there are: language
 * models by Adam, by SGD, image models by Adam, by SGD.  NAN from "".  -1 and an error. */
int multiplier_read(double *multiplier, const char *text);

#endif
