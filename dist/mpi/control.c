#include "control.h"

#include "waiting.h"

int control_send(PendingTransfers *pending, int to, ControlMessage message) {
    const Transfer t = transport_send(to, (Channel)TAG_CONTROL, &message, sizeof message);
    return pending_add(pending, &t, true);
}

void control_tell_all(const Transport *transport, ControlMessage message) {
    PendingTransfers sends = {.end = &sends.first};
    bool left = true;
    for (int r = 0; r < transport->ranks; r++)
        if (r != transport->rank) control_send(&sends, r, message);
    for (Waiting wait = waiting_start(); left && waiting_turn(&wait) < 1;) {
        left = false;
        for (PendingTransfer *m = sends.first; m; m = m->next)
            if (pending_test(transport, m) == 0) left = true;
    }
    if (!left) pending_free(&sends); /* otherwise MPI may still read them */
}
