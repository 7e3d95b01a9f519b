/* How ranks meet over TCP when not all is as it should be, and frames that no rank sends. */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../dist/tcp_inside.h"
#include "../../ref/error.h"
#include "../test.h"
#include "link_cases.h"
#include "port.h"

typedef struct {
    Launch launch;
    double timeout_s;
    bool met;
    char error[400];
} Comer;

static void *come(void *argument) {
    Comer *c = argument;
    Link *link = link_tcp_join(&c->launch, c->timeout_s);
    c->met = link && link_barrier(link) == 0;
    snprintf(c->error, sizeof c->error, "%s", c->met ? "" : error_message());
    if (link) link->is->free(link);
    return NULL;
}

static void all_come(Comer *comer, int count) {
    pthread_t thread[MOST_RANKS];
    for (int i = 0; i < count; i++)
        if (pthread_create(&thread[i], NULL, come, &comer[i])) abort();
    for (int i = 0; i < count; i++) pthread_join(thread[i], NULL);
}

/* Whether nobody has met, and all say `words` and where they were to meet. */
static bool all_miss(const Comer *comer, int count, const char *words) {
    char whole[200];
    snprintf(whole, sizeof whole, "link: %s did not come to %s, port", words, own_address());
    for (int i = 0; i < count; i++)
        if (comer[i].met || !strstr(comer[i].error, whole)) return false;
    return true;
}

/* Nobody has met, and all say `words`. */
static void check_refused(const Comer *comer, int count, const char *words) {
    for (int i = 0; i < count; i++)
        CHECK(!comer[i].met && strstr(comer[i].error, words), "comer %d, rank %d: \"%s\"", i,
              comer[i].launch.rank, comer[i].error);
}

/* (On a busy machine rank 2 may come too late as well: then rank 0 is to wait longer.) */
static void missing_ranks_are_named(void) {
    bool named = false;
    for (double limit_s = 0.25; limit_s < PATIENCE_S && !named; limit_s *= 4) {
        int port = free_port();
        Comer some[2] = {{.launch = here(0, 4, port), .timeout_s = limit_s},
                         {.launch = here(2, 4, port), .timeout_s = 10 * limit_s}};
        all_come(some, 2);
        named = all_miss(some, 2, "ranks 1, 3");
        test_note("\"%s\", \"%s\"", some[0].error, some[1].error);
    }
    CHECK(named, "the missing ranks are not named");
    Comer without_host = {.launch = here(1, 2, free_port()), .timeout_s = 0.2};
    all_come(&without_host, 1);
    CHECK(all_miss(&without_host, 1, "rank 0"), "\"%s\"", without_host.error);
}

static void equal_ranks_are_refused(void) {
    int port = free_port();
    Comer comer[3] = {{.launch = here(0, 3, port), .timeout_s = PATIENCE_S},
                      {.launch = here(1, 3, port), .timeout_s = PATIENCE_S},
                      {.launch = here(1, 3, port), .timeout_s = PATIENCE_S}};
    all_come(comer, 3);
    check_refused(comer, 3, "two processes say that they are rank 1");
}

static void other_sizes_are_refused(void) {
    int port = free_port();
    Comer comer[2] = {{.launch = here(0, 2, port), .timeout_s = PATIENCE_S},
                      {.launch = here(1, 3, port), .timeout_s = PATIENCE_S}};
    all_come(comer, 2);
    check_refused(comer, 2, "rank 1 was started as one of 3, rank 0 as one of 2");
}

static void ports_in_use_are_named(void) {
    int port, listener = listen_somewhere(&port);
    Comer host = {.launch = here(0, 2, port), .timeout_s = PATIENCE_S};
    char words[60];
    snprintf(words, sizeof words, "port %d is in use; set MASTER_PORT", port);
    all_come(&host, 1);
    check_refused(&host, 1, words);
    close(listener);
}

/* (A name that is too long: no server is asked about it.) */
static void unknown_hosts_are_named(void) {
    Comer c = {.launch = here(1, 2, 29500), .timeout_s = 0.2};
    memset(c.launch.address, 'x', 80);
    all_come(&c, 1);
    check_refused(&c, 1, "link: rank 0 did not come to xxxx");
}

static void ranks_may_meet_over_ipv6(void) {
    int port = free_port(), probe = socket_listen("::1", &port);
    if (probe < 0) SKIP("this host has no IPv6");
    close(probe);
    Comer comer[3];
    for (int r = 0; r < 3; r++)
        comer[r] = (Comer){.launch = {r, 3, "::1", port, "a test"}, .timeout_s = PATIENCE_S};
    all_come(comer, 3);
    for (int r = 0; r < 3; r++) CHECK(comer[r].met, "rank %d: %s", r, comer[r].error);
}

/* ---- strangers ----------------------------------------------------------------------------------
 */

static int call(int port) {
    bool refused;
    Deadline until = deadline_in(PATIENCE_S);
    int s = -1;
    while (s < 0 && !deadline_over(until)) s = socket_connect(own_address(), port, until, &refused);
    return s;
}

/* They say nothing, or something else, or hang up; the ranks meet in spite of them. */
static void strangers_are_turned_away(void) {
    static const char request[] = "GET / HTTP/1.1\r\nHost: localhost\r\nUser-Agent: none\r\n\r\n";
    int port = free_port(), stranger[100];
    Comer comer[3] = {{.launch = here(0, 3, port), .timeout_s = PATIENCE_S},
                      {.launch = here(1, 3, port), .timeout_s = PATIENCE_S},
                      {.launch = here(2, 3, port), .timeout_s = PATIENCE_S}};
    pthread_t host;
    if (pthread_create(&host, NULL, come, &comer[0])) abort();
    for (int i = 0; i < 100; i++) {
        stranger[i] = call(port);
        size_t said = i % 3 == 0 ? 0 : i % 3 == 1 ? 3 : sizeof request;
        CHECK(stranger[i] >= 0, "stranger %d cannot connect", i);
        socket_send(stranger[i], request, said, deadline_in(PATIENCE_S));
        if (i % 2) close(stranger[i]);
    }
    all_come(comer + 1, 2);
    pthread_join(host, NULL);
    for (int i = 0; i < 100; i += 2) close(stranger[i]);
    for (int r = 0; r < 3; r++) CHECK(comer[r].met, "rank %d: %s", r, comer[r].error);
}

static void *be_another_service(void *argument) {
    const int *listener = argument;
    int s = accept(*listener, NULL, NULL);
    socket_send(s, "SSH-2.0-Something\r\n", 19, deadline_in(PATIENCE_S));
    char byte;
    socket_receive(s, &byte, sizeof byte, deadline_in(PATIENCE_S));
    close(s);
    return NULL;
}

static void another_service_is_no_rank(void) {
    pthread_t thread;
    int port, listener = listen_somewhere(&port);
    Comer c = {.launch = here(1, 2, port), .timeout_s = PATIENCE_S};
    if (pthread_create(&thread, NULL, be_another_service, &listener)) abort();
    all_come(&c, 1);
    pthread_join(thread, NULL);
    close(listener);
    check_refused(&c, 1, "is no rank 0 of this program");
}

/* ---- frames that no rank sends ------------------------------------------------------------------
 */

typedef struct {
    Launch launch;
    const void *bytes;
    size_t count;
} Hostile;

/* Meets as a rank does, and then sends what it likes. */
static void *be_hostile(void *argument) {
    const Hostile *h = argument;
    int connection[2];
    char rest[1000];
    if (tcp_meet(connection, &h->launch, PATIENCE_S)) return argument;
    socket_send(connection[0], h->bytes, h->count, deadline_in(PATIENCE_S));
    shutdown(connection[0], SHUT_WR);
    while (socket_receive(connection[0], rest, 1, deadline_in(PATIENCE_S))) continue;
    close(connection[0]);
    return NULL;
}

static void check_frame(const void *bytes, size_t count, const char *words) {
    int port = free_port();
    Hostile h = {here(1, 2, port), bytes, count};
    Comer c = {.launch = here(0, 2, port), .timeout_s = PATIENCE_S};
    pthread_t thread;
    void *failed;
    if (pthread_create(&thread, NULL, be_hostile, &h)) abort();
    all_come(&c, 1);
    pthread_join(thread, &failed);
    CHECK(!failed, "the ranks did not meet");
    check_refused(&c, 1, words);
}

static void frames_must_make_sense(void) {
    static const Frame senseless[] = {
        {FRAMES, 0, 0},
        {0xffffffff, 0, 0},
        {FRAME_MESSAGE, CHANNELS, 1},
        {FRAME_MESSAGE, -1, 1},
        {FRAME_MESSAGE, 0, UINT64_MAX},
        {FRAME_MESSAGE, 0, (uint64_t)1 << 50},
        {FRAME_ASKS, 0, 1},
        {FRAME_ANSWERS, 2, 0},
        {FRAME_ANSWERS, TCP_SILENT, 0},
        {FRAME_GIVES_UP, 0, 400},
        {FRAME_GIVES_UP, 0, UINT64_MAX},
        {FRAME_LEAVES, 0, 8},
    };
    for (size_t i = 0; i < sizeof senseless / sizeof *senseless; i++)
        check_frame(&senseless[i], sizeof *senseless, "rank 1 sent what no rank sends");
    check_frame("GET / HTTP/1.1\r\n\r\n", 18, "rank 1 sent what no rank sends");
    check_frame("GET /", 5, "rank 1 has died");
}

/* More than there is memory, or ended early. */
static void frames_may_lie_about_their_length(void) {
    struct {
        Frame frame;
        char data[8];
    } f = {{FRAME_MESSAGE, CHANNEL_TOGETHER, 100}, "1234567"};
    check_frame(&f, sizeof f, "rank 1 has died");
    f.frame.bytes = (uint64_t)1 << 43;
    check_frame(&f, sizeof f, "link: ");
    f.frame = (Frame){FRAME_GIVES_UP, 0, 8};
    check_frame(&f, sizeof f, "1234567");
}

void test_tcp_meet(void) {
    RUN(missing_ranks_are_named);
    RUN(equal_ranks_are_refused);
    RUN(other_sizes_are_refused);
    RUN(ports_in_use_are_named);
    RUN(unknown_hosts_are_named);
    RUN(ranks_may_meet_over_ipv6);
    RUN(strangers_are_turned_away);
    RUN(another_service_is_no_rank);
    RUN(frames_must_make_sense);
    RUN(frames_may_lie_about_their_length);
}
