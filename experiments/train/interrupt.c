#include "interrupt.h"

#include <signal.h>
#include <stddef.h>
#include <unistd.h>

static volatile sig_atomic_t caught;

static void remember(int number) {
    if (!caught) caught = number;
}

static void catch_signal(int number, int flags) {
    const struct sigaction action = {.sa_handler = remember, .sa_flags = flags | (int)SA_RESTART};
    sigaction(number, &action, NULL);
}

/* A page of a mapped file is no longer there.  Nothing can be saved: the step is lost. */
static void end_at_bus_error(int number) {
    static const char line[] =
        "bcd: a data file was cut short while it was in use; put back what it had\n";
    (void)number;
    if (write(STDERR_FILENO, line, sizeof line - 1) >= 0) _exit(1);
    _exit(1);
}

static void catch_unless_ignored(int number) {
    struct sigaction before;
    if (sigaction(number, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
        catch_signal(number, 0);
}

/* Holds SIGALRM back, or lets it come. */
static void mask_alarm(int how) {
    sigset_t alarm;
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    sigprocmask(how, &alarm, NULL);
}

void interrupt_tell_bus_error(void) { signal(SIGBUS, end_at_bus_error); }

void interrupt_catch(void) {
    catch_signal(SIGINT, (int)SA_RESETHAND);
    catch_signal(SIGTERM, 0);
    catch_unless_ignored(SIGHUP); /* which nohup does */
    catch_unless_ignored(SIGPIPE);
    catch_signal(SIGALRM, 0);
    interrupt_tell_bus_error();
    mask_alarm(SIG_UNBLOCK);
}

void interrupt_ignore(void) {
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
}

int interrupt_status(void) {
    enum { TEMPORARY_FAILURE = 75 };
    return caught == SIGALRM ? TEMPORARY_FAILURE : 128 + caught;
}

int interrupt_signal(void) { return caught; }
