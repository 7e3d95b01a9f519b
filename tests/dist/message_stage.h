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

/* Return the same of those created by the rank whose lowest block this is: of all that were ever
 * created, and the largest number that existed at once since the last call. */
int message_stage_made_by(int block);
int message_stage_peak_by(int block);
