/* The CPU stage with messages as a device has them. */
#ifndef TESTS_DIST_MESSAGE_STAGE_H
#define TESTS_DIST_MESSAGE_STAGE_H

#include "../../ref/stage.h"

/* As stage_ref_create; hands boundary values over in messages, which are counted. */
Stage *message_stage_create(const Model *model, StageSettings settings);
void message_stage_free(void *message);
/* Messages that were made and not freed yet, and all that were ever made. */
int message_stage_alive(void);
int message_stage_made(void);
/* The most alive at any time since the last call. */
int message_stage_most(void);

#endif
