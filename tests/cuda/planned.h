/* The bytes that a stage counts on the device are those planned. */
#pragma once

#include "../../ref/stage.h"

/* CHECKs them for a stage that is idle while these blocks are active; `who` is the model, and what
 * part of it. Overwrites host[] with the bytes planned on the host. */
void check_planned(size_t host[MEM_ROLES], const Stage *stage, const MemCount *counted,
                   const bool *active, const char *who);
