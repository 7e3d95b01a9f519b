#include "interrupt.h"

#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>

static volatile sig_atomic_t caught;

static void remember(int number) { caught = number; }

void interrupt_catch(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = remember;
    action.sa_flags = (int)(SA_RESETHAND | SA_RESTART);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    /* Under nohup SIGHUP is ignored, and stays so. */
    struct sigaction before;
    if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
        sigaction(SIGHUP, &action, NULL);
}

void interrupt_ignore(void) {
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
}

void interrupt_after(double seconds) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = remember;
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, NULL);
    struct itimerval once = {.it_value = {(time_t)seconds, (suseconds_t)(fmod(seconds, 1) * 1e6)}};
    setitimer(ITIMER_REAL, &once, NULL);
}

int interrupt_status(void) {
    enum { TEMPORARY_FAILURE = 75 };
    return caught == SIGALRM ? TEMPORARY_FAILURE : 128 + caught;
}

int interrupt_signal(void) { return caught; }
