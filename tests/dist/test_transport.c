/* Transports between ranks as threads of this process. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/error.h"
#include "../test.h"
#include "transport_cases.h"

typedef struct {
    Transport *transport;
    const PlayRow *play;
    Played *played;
} Rank;

static void *run_rank(void *argument) {
    Rank *rank = argument;
    Played *played = rank->played;
    played->result = rank->play->play(rank->transport, played->seen);
    strcpy(played->error, played->result ? error_message() : "");
    rank->transport->is->free(rank->transport);
    return NULL;
}

static int capacity; /* of channels */

static void let_threads_play(Played *played, int ranks, double timeout_s, const PlayRow *play) {
    Transport *transport[MOST_RANKS];
    Rank rank[MOST_RANKS];
    pthread_t thread[MOST_RANKS];
    if (!CHECK(transport_local_create(transport, ranks, capacity, timeout_s, NULL) == 0, "%s",
               error_message()))
        return;
    for (int r = 0; r < ranks; r++) {
        rank[r] = (Rank){transport[r], play, &played[r]};
        if (pthread_create(&thread[r], NULL, run_rank, &rank[r])) abort();
    }
    for (int r = 0; r < ranks; r++) pthread_join(thread[r], NULL);
}

static void neighbours_never_block(void) {
    for (int ranks = 1; ranks <= MOST_RANKS; ranks++)
        for (capacity = 1; capacity <= 3; capacity++) transport_swaps(let_threads_play, ranks);
}

static void channels_keep_their_order(void) {
    for (capacity = 1; capacity <= 5; capacity++) transport_keeps_order(let_threads_play);
}

static void sends_go_ahead_of_receives(void) {
    capacity = 6;
    for (int ranks = 1; ranks <= MOST_RANKS; ranks++)
        transport_sends_ahead(let_threads_play, ranks);
}

static void large_messages_pass_each_other(void) {
    capacity = 2;
    transport_carries_much(let_threads_play);
}

static void wrong_lengths_are_errors(void) {
    capacity = 1;
    transport_checks_lengths(let_threads_play);
}

static void sums_are_in_the_order_of_ranks(void) {
    capacity = 1;
    for (int ranks = 1; ranks <= MOST_RANKS; ranks++) transport_sums(let_threads_play, ranks);
}

static void broadcasts_reach_all(void) {
    capacity = 1;
    for (int ranks = 1; ranks <= MOST_RANKS; ranks++) transport_broadcasts(let_threads_play, ranks);
}

static void much_is_shared_in_pieces(void) {
    capacity = 1;
    for (int ranks = 1; ranks <= 3; ranks++) transport_shares_much(let_threads_play, ranks);
}

static void groups_are_links(void) {
    capacity = 1;
    for (int ranks = 1; ranks <= MOST_RANKS; ranks++) transport_groups(let_threads_play, ranks);
}

static void missing_rank_is_named(void) {
    capacity = 1;
    transport_waits(let_threads_play, "leave");
}

/* Rank 4 waits for 3, that for 1, that for 0, which waits for none: rank 0 is missing.  In a circle
 * it is the last before the rank that asks. */
static int next_in_chain(Transport *transport, int rank) {
    static const int chain[] = {-1, 0, 4, 1, 3};
    (void)transport;
    return chain[rank];
}

static int next_in_circle(Transport *transport, int rank) { return (rank + 1) % transport->ranks; }

static void who_waits_is_not_missing(void) {
    Transport waiting = {.rank = 4, .ranks = 5};
    int chain = transport_failed_rank(&waiting, 3, next_in_chain);
    int circle = transport_failed_rank(&waiting, 0, next_in_circle);
    int unknown = transport_failed_rank(&waiting, 2, NULL);
    CHECK(chain == 0 && circle == 3 && unknown == 2, "ranks %d, %d and %d", chain, circle, unknown);
}

static void giving_up_is_told_at_once(void) {
    capacity = 1;
    transport_loses(let_threads_play, "give-up", "rank 2 gave up: bcd: the loss is nan");
}

/* ---- messages of a device -----------------------------------------------------------------------
 */

static int living;

static void *make_message(int number) {
    int *message = malloc(sizeof *message);
    if (!message) abort();
    *message = number;
    living++;
    return message;
}

static void free_message(void *message) {
    living--;
    free(message);
}

static Transfer of_message(Transfer t, int number) {
    if (t.send) t.message = make_message(number);
    return t;
}

/* They change hands as they are; who cannot give one away keeps it; the transport frees those that
 * nobody took.  (One thread for both ranks: nothing here waits.) */
static void messages_of_devices_change_hands(void) {
    Transport *transport[2];
    living = 0;
    if (!CHECK(transport_local_create(transport, 2, 3, 0.05, free_message) == 0, "%s",
               error_message()))
        return;
    Transfer sent[3], got = transport_receive(0, CHANNEL_VALUES, NULL, 4);
    for (int i = 0; i < 3; i++)
        sent[i] = of_message(transport_send(1, CHANNEL_VALUES, NULL, 4), 10 + i);
    const void *first = sent[0].message;
    CHECK(transport[0]->carries_messages, "the transport says that it carries none");
    CHECK(transport[0]->is->sendrecv(transport[0], sent, 3) == 0, "%s", error_message());
    for (int i = 0; i < 3; i++) CHECK(!sent[i].message, "message %d is still the sender's", i);
    CHECK(transport[1]->is->sendrecv(transport[1], &got, 1) == 0, "%s", error_message());
    CHECK(got.message == first && living == 3, "another message came, of %d", living);
    Transfer more[2] = {of_message(transport_send(1, CHANNEL_VALUES, NULL, 4), 13),
                        of_message(transport_send(1, CHANNEL_VALUES, NULL, 4), 14)};
    CHECK(transport[0]->is->sendrecv(transport[0], more, 2) == -1, "a channel of 3 holds 4");
    CHECK(!more[0].message && more[1].message && living == 5, "%d messages are left", living);
    free_message(got.message);
    free_message(more[1].message);
    for (int r = 0; r < 2; r++) transport[r]->is->free(transport[r]);
    CHECK(living == 0, "%d messages were never freed", living);
}

void test_transport(void) {
    RUN(neighbours_never_block);
    RUN(channels_keep_their_order);
    RUN(sends_go_ahead_of_receives);
    RUN(large_messages_pass_each_other);
    RUN(wrong_lengths_are_errors);
    RUN(sums_are_in_the_order_of_ranks);
    RUN(broadcasts_reach_all);
    RUN(much_is_shared_in_pieces);
    RUN(groups_are_links);
    RUN(missing_rank_is_named);
    RUN(who_waits_is_not_missing);
    RUN(giving_up_is_told_at_once);
    RUN(messages_of_devices_change_hands);
}
