#include "control.h"

#include <stdio.h>

#include "../../ref/base/error.h"
#include "waiting.h"

int control_send(PendingTransfers *pending, int to, ControlMessage message) {
    const Transfer t = transport_send(to, (Channel)TAG_CONTROL, &message, sizeof message);
    return pending_add(pending, &t, true);
}

void control_tell_all(const Transport *transport, ControlMessage message) {
    PendingTransfers sends = {.end = &sends.first};
    bool left = true;
    char error[ERROR_BYTES]; /* what failed, which a rank that cannot be told must not replace */
    snprintf(error, sizeof error, "%s", error_message());
    for (int r = 0; r < transport->ranks; r++)
        if (r != transport->rank) control_send(&sends, r, message);
    for (Waiting wait = waiting_start(); left && waiting_turn(&wait) < 1;) {
        left = false;
        for (PendingTransfer *m = sends.first; m; m = m->next)
            if (pending_test(transport, m) == 0) left = true;
    }
    if (!left) pending_free(&sends); /* otherwise MPI may still read them */
    error_set("%s", error);
}
