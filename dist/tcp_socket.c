#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../ref/error.h"
#include "tcp_inside.h"

static void make_ready(int socket) {
    int on = 1;
    fcntl(socket, F_SETFL, O_NONBLOCK);
    fcntl(socket, F_SETFD, FD_CLOEXEC);
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

static int find_addresses(struct addrinfo **found, const char *host, int port, int flags) {
    char service[16];
    struct addrinfo wanted = {.ai_flags = flags, .ai_socktype = SOCK_STREAM};
    snprintf(service, sizeof service, "%d", port);
    int code = getaddrinfo(host, service, &wanted, found);
    return code ? error_set("%s", gai_strerror(code)) : 0;
}

/* ---- listening ----------------------------------------------------------------------------------
 */

static int listen_at(const struct addrinfo *at) {
    int on = 1, off = 0, s = socket(at->ai_family, SOCK_STREAM, 0);
    if (s < 0) return -1;
    make_ready(s);
    setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on); /* of one that has just ended */
    if (at->ai_family == AF_INET6) setsockopt(s, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (bind(s, at->ai_addr, at->ai_addrlen) == 0 && listen(s, SOMAXCONN) == 0) return s;
    int why = errno;
    close(s);
    errno = why;
    return -1;
}

static int port_of(int s) {
    struct sockaddr_storage name;
    socklen_t size = sizeof name;
    char port[16] = "0";
    int number = 0;
    if (getsockname(s, (struct sockaddr *)&name, &size) == 0 &&
        getnameinfo((struct sockaddr *)&name, size, NULL, 0, port, sizeof port, NI_NUMERICSERV) ==
            0)
        sscanf(port, "%d", &number);
    return number;
}

static int listen_family(const char *host, int port, int family) {
    struct addrinfo *found;
    int s = -1, why = EADDRNOTAVAIL;
    if (find_addresses(&found, host, port, AI_PASSIVE)) return -1;
    for (const struct addrinfo *at = found; at && s < 0; at = at->ai_next) {
        if (family != AF_UNSPEC && at->ai_family != family) continue;
        s = listen_at(at);
        why = errno;
    }
    freeaddrinfo(found);
    errno = why;
    return s;
}

static bool is_loopback(const char *host) {
    return strncmp(host, "127.", 4) == 0 || strcmp(host, "::1") == 0;
}

/* One socket takes both kinds of addresses where this host has both. */
int socket_listen(const char *host, int *port) {
    bool here_only = is_loopback(host);
    int s = listen_family(here_only ? host : NULL, *port, here_only ? AF_UNSPEC : AF_INET6);
    if (s < 0 && !here_only && errno != EADDRINUSE) s = listen_family(NULL, *port, AF_INET);
    if (s < 0 && errno == EADDRINUSE)
        return error_set("link: port %d is in use; set MASTER_PORT to another", *port);
    if (s < 0) return error_set("link: cannot listen at port %d: %s", *port, strerror(errno));
    *port = port_of(s);
    return s;
}

int socket_accept(int listener) {
    int s = accept(listener, NULL, NULL);
    if (s >= 0) make_ready(s);
    return s;
}

/* ---- connecting ---------------------------------------------------------------------------------
 */

static bool wait_for(int s, short what, Deadline until) {
    for (;;) {
        struct pollfd p = {s, what, 0};
        int ready = poll(&p, 1, deadline_ms(until, 60000));
        if (ready > 0) return true;
        if ((ready < 0 && errno != EINTR) || deadline_over(until)) return false;
    }
}

/* The system may give a caller the very port it calls, where nobody listens: then it has connected
 * to itself. */
static bool is_own_end(int s) {
    struct sockaddr_storage here, there;
    socklen_t size = sizeof here, other = sizeof there;
    memset(&here, 0, sizeof here);
    memset(&there, 0, sizeof there);
    return getsockname(s, (struct sockaddr *)&here, &size) == 0 &&
           getpeername(s, (struct sockaddr *)&there, &other) == 0 && size == other &&
           memcmp(&here, &there, size) == 0;
}

static int connect_to(const struct addrinfo *to, Deadline until) {
    int why = 0, s = socket(to->ai_family, SOCK_STREAM, 0);
    socklen_t size = sizeof why;
    if (s < 0) return -1;
    make_ready(s);
    if (connect(s, to->ai_addr, to->ai_addrlen)) why = errno;
    if (why == EINPROGRESS || why == EINTR) {
        why = ETIMEDOUT;
        if (wait_for(s, POLLOUT, until)) getsockopt(s, SOL_SOCKET, SO_ERROR, &why, &size);
    }
    if (!why && is_own_end(s)) why = ECONNREFUSED;
    if (!why) return s;
    close(s);
    errno = why;
    return -1;
}

int socket_connect(const char *host, int port, Deadline until, bool *refused) {
    struct addrinfo *found;
    int s = -1;
    *refused = true;
    if (find_addresses(&found, host, port, 0)) return -1;
    for (const struct addrinfo *to = found; to && s < 0; to = to->ai_next)
        s = connect_to(to, until);
    if (s < 0) {
        *refused = errno != EMFILE && errno != ENFILE && errno != EACCES;
        error_set("%s", strerror(errno));
    }
    freeaddrinfo(found);
    return s;
}

Place socket_peer(int s) {
    struct sockaddr_storage name;
    socklen_t size = sizeof name;
    Place place = {"", 0};
    char host[64];
    static const char mapped[] = "::ffff:";
    size_t skip = sizeof mapped - 1;
    if (getpeername(s, (struct sockaddr *)&name, &size) ||
        getnameinfo((struct sockaddr *)&name, size, host, sizeof host, NULL, 0, NI_NUMERICHOST))
        return place;
    const char *start = strncmp(host, mapped, skip) || !strchr(host, '.') ? host : host + skip;
    if (!is_loopback(start)) snprintf(place.host, sizeof place.host, "%s", start);
    return place;
}

/* ---- whole messages -----------------------------------------------------------------------------
 */

bool socket_send(int s, const void *data, size_t bytes, Deadline until) {
    for (const char *from = data; bytes;) {
        ssize_t n = send(s, from, bytes, MSG_NOSIGNAL);
        if (n > 0) {
            from += n;
            bytes -= (size_t)n;
        } else if ((errno != EAGAIN && errno != EINTR) || !wait_for(s, POLLOUT, until)) {
            return false;
        }
    }
    return true;
}

bool socket_receive(int s, void *data, size_t bytes, Deadline until) {
    for (char *to = data; bytes;) {
        ssize_t n = recv(s, to, bytes, 0);
        if (n > 0) {
            to += n;
            bytes -= (size_t)n;
        } else if (n == 0 || (errno != EAGAIN && errno != EINTR) || !wait_for(s, POLLIN, until)) {
            return false;
        }
    }
    return true;
}
