/* Transports between ranks as threads of this process. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/base/error.h"
#include "../test.h"
#include "transport_cases.h"

typedef struct {
    Transport *transport;
    const Scenario *scenario;
    Outcome *outcome;
} Rank;

static void *run_rank(void *argument) {
    Rank *rank = argument;
    Outcome *outcome = rank->outcome;
    outcome->result = rank->scenario->run(rank->transport, outcome->results);
    strcpy(outcome->error, outcome->result ? error_message() : "");
    transport_free(rank->transport);
    return NULL;
}

static void run_on_threads(Outcome *outcome, int ranks, double timeout_s,
                           const Scenario *scenario) {
    Transport *transport[MAX_RANKS];
    Rank rank[MAX_RANKS];
    pthread_t thread[MAX_RANKS];
    if (!CHECK(transport_local_create(transport, ranks, timeout_s, NULL) == 0, "%s",
               error_message()))
        return;
    for (int r = 0; r < ranks; r++) {
        rank[r] = (Rank){transport[r], scenario, &outcome[r]};
        if (pthread_create(&thread[r], NULL, run_rank, &rank[r])) abort();
    }
    for (int r = 0; r < ranks; r++) pthread_join(thread[r], NULL);
}

static void neighbours_never_block(void) {
    for (int ranks = 1; ranks <= MAX_RANKS; ranks++) transport_swaps(run_on_threads, ranks);
}

static void channels_keep_their_order(void) { transport_keeps_order(run_on_threads); }

static void sends_go_ahead_of_receives(void) {
    for (int ranks = 1; ranks <= MAX_RANKS; ranks++) transport_sends_ahead(run_on_threads, ranks);
}

static void large_messages_pass_each_other(void) { transport_carries_much(run_on_threads); }

static void wrong_lengths_are_errors(void) { transport_checks_lengths(run_on_threads); }

static void sums_are_in_the_order_of_ranks(void) {
    for (int ranks = 1; ranks <= MAX_RANKS; ranks++) transport_sums(run_on_threads, ranks);
}

static void broadcasts_reach_all(void) {
    for (int ranks = 1; ranks <= MAX_RANKS; ranks++) transport_broadcasts(run_on_threads, ranks);
}

static void large_data_are_sent_in_pieces(void) {
    for (int ranks = 1; ranks <= 3; ranks++) transport_shares_much(run_on_threads, ranks);
}

static void groups_are_transports(void) {
    for (int ranks = 1; ranks <= MAX_RANKS; ranks++) transport_groups(run_on_threads, ranks);
}

static void missing_rank_is_named(void) {
    transport_names_silent_rank(run_on_threads, "leave", "it has died or hangs");
}

/* Rank 4 waits for 3, 3 for 1, 1 for 0, and 0 for none, so rank 0 has failed.  If the ranks wait in
 * a circle, it is the last one before the rank that asks. */
static int next_in_chain(Transport *transport, int rank) {
    static const int chain[] = {-1, 0, 4, 1, 3};
    (void)transport;
    return chain[rank];
}

static int next_in_circle(Transport *transport, int rank) { return (rank + 1) % transport->ranks; }

static void failed_rank_waits_for_none(void) {
    Transport waiting = {.rank = 4, .ranks = 5};
    int chain = transport_failed_rank(&waiting, 3, next_in_chain);
    int circle = transport_failed_rank(&waiting, 0, next_in_circle);
    CHECK(chain == 0 && circle == 3, "ranks %d and %d", chain, circle);
}

/* As of NCCL, which joins the ranks of a group itself. */
static void errors_name_ranks_of_the_whole(void) {
    static const int member[] = {4, 6};
    Transport whole = {.rank = 6, .ranks = 8, .timeout_s = 3}, *group;
    if (!CHECK(group = transport_group(&whole, member, 2), "%s", error_message())) return;
    Transport nccl = *group;
    transport_timed_out(&nccl, 0, "to join by NCCL");
    CHECK(strstr(error_message(), "rank 6 waited 3 s for rank 4 ("), "%s", error_message());
    transport_wrong_length(&nccl, 0, 1, 2);
    CHECK(strstr(error_message(), "rank 4 sent 1 bytes where rank 6 expects 2"), "%s",
          error_message());
    transport_free(group);
}

static void abort_reaches_all_at_once(void) {
    transport_reports_failure(run_on_threads, "give-up", "rank 2 gave up: bcd: the loss is nan");
}

/* ---- memory ---- */

typedef struct {
    Transport base;
    size_t all, most; /* bytes sent, and those of one batch */
} BatchCounter;

static int count_batch(Transport *transport, Transfer *transfers, int count) {
    BatchCounter *c = (BatchCounter *)(void *)transport;
    size_t bytes = 0;
    for (int i = 0; i < count; i++) bytes += transfers[i].bytes;
    c->all += bytes;
    if (bytes > c->most) c->most = bytes;
    return 0;
}

/* The transport between threads copies a batch before it waits for the receiver. */
static void a_move_has_small_batches(void) {
    enum { BYTES = 100000007 };
    static const TransportClass class = {.sendrecv = count_batch};
    BatchCounter c = {.base = {.is = &class, .rank = 0, .ranks = 2}};
    char *data = calloc(BYTES, 1);
    if (!data) abort();
    CHECK(transport_move(&c.base, 0, 1, data, BYTES) == 0, "%s", error_message());
    CHECK(c.all == BYTES && c.most <= 1 << 24, "%zu bytes, up to %zu at a time", c.all, c.most);
    free(data);
}

/* ---- messages of a device ---- */

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

/* The receiver gets the sender's message itself; a sender keeps a message that could not be sent;
 * the transport frees those that were not received.  (One thread does both ranks, since no call
 * waits.) */
static void messages_of_devices_are_passed_on(void) {
    Transport *transport[2];
    living = 0;
    if (!CHECK(transport_local_create(transport, 2, 0.05, free_message) == 0, "%s",
               error_message()))
        return;
    Transfer sent[3], got = transport_receive(0, CHANNEL_VALUES, NULL, 4);
    for (int i = 0; i < 3; i++)
        sent[i] = of_message(transport_send(1, CHANNEL_VALUES, NULL, 4), 10 + i);
    const void *first = sent[0].message;
    CHECK(transport[0]->carries_messages, "the transport says that it carries none");
    CHECK(transport_sendrecv(transport[0], sent, 3) == 0, "%s", error_message());
    for (int i = 0; i < 3; i++) CHECK(!sent[i].message, "message %d is still the sender's", i);
    CHECK(transport_sendrecv(transport[1], &got, 1) == 0, "%s", error_message());
    CHECK(got.message == first && living == 3, "another message came, of %d", living);
    Transfer more = of_message(transport_send(1, CHANNEL_VALUES, NULL, 4), 13);
    transport_abort(transport[1], "out of memory");
    CHECK(transport_sendrecv(transport[0], &more, 1) == -1, "sent to a rank that gave up");
    CHECK(more.message && living == 4, "%d messages are left", living);
    free_message(got.message);
    free_message(more.message);
    for (int r = 0; r < 2; r++) transport_free(transport[r]);
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
    RUN(large_data_are_sent_in_pieces);
    RUN(groups_are_transports);
    RUN(missing_rank_is_named);
    RUN(failed_rank_waits_for_none);
    RUN(errors_name_ranks_of_the_whole);
    RUN(abort_reaches_all_at_once);
    RUN(a_move_has_small_batches);
    RUN(messages_of_devices_are_passed_on);
}
