/* Messages between the transports themselves, with a tag of their own. */
#pragma once

#include "pending.h"

typedef enum {
    CONTROL_ABORT,   /* the sender's transport is broken */
    CONTROL_QUERY,   /* asks for a CONTROL_REPLY */
    CONTROL_REPLY,   /* the sender runs */
    CONTROL_REPORTS, /* the sender is going to report the failure */
    CONTROL_REPORTED /* it has done so */
} ControlKind;
typedef struct {
    ControlKind kind;
    int rank;      /* CONTROL_REPLY: whom the sender waits for, or NOBODY */
    AbortLine why; /* CONTROL_ABORT */
} ControlMessage;
enum { TAG_CONTROL = CHANNELS, NOBODY = -1 };

/* Adds the message to the transfers in progress.  -1 and an error. */
int control_send(PendingTransfers *pending, int to, ControlMessage message);

/* Sends a message to all other ranks, and waits a moment until it is sent, because the process may
 * end next.  A rank that it cannot be sent to is left out. */
void control_tell_all(const Transport *transport, ControlMessage message);
