/* The CPU stage with messages as a device has them. */
#pragma once

#include "../../ref/stage.h"

/* Creates a CPU stage whose block outputs can be taken as messages, as on a GPU.  Messages are
 * counted. */
Stage *message_stage_create(const Model *model, StageSettings settings);
void message_stage_free(void *message);
/* Return the number of messages that exist, and of all that were ever created. */
int message_stage_alive(void);
int message_stage_made(void);
/* Returns the largest number that existed at once since the last call. */
int message_stage_peak(void);
