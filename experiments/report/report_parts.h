/* What the files that write the page share. */
#ifndef EXPERIMENTS_REPORT_PARTS_H
#define EXPERIMENTS_REPORT_PARTS_H

#include "page.h"
#include "report.h"

/* What is where: the paper's tables and figures, the other tables, the networks. */
void put_contents(Page *page, const Report *report);
/* The tables of file `number`, a section each, those that are drawn with their figure. */
void put_tables(Page *page, const Report *report, int number);
/* The curves of every case, a section each. */
void put_networks(Page *page, const Report *report);
/* Folded: all that is known of the trainings of a case.  What they have in common is told once. */
void put_details(FILE *out, const Cases *cases, const Case *item);

#endif
