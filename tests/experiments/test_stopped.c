/* Trainings that a signal stops: nothing is lost. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

static void stops_on_ctrl_c(void) {
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
    for (int i = 0; i < 4; i++) {
        ino_t last = inode_of("stopped/checkpoint.h5");
        pid_t process = program_start(i ? "train --resume stopped"
                                        : "train " GPT ENDLESS
                                          "--eval-every 300 --save-every 1000000000 --out stopped");
        /* Waits for the save at the start.  From then on a signal stops the training after a step.
         * */
        wait_for_saves(process, "stopped/checkpoint.h5", last, 1);
        sleep_ms(30 * i);
        kill(process, signals[i]);
        int status = program_wait(process);
        CHECK(status == 128 + signals[i], "status %d", status);
        size_t count;
        char *text = read_bytes("started", &count);
        CHECK(strstr(text, "; continue with: bcd train --resume stopped\n"), "printed \"%s\"",
              text);
        free(text);
    }
    int steps = steps_beyond("stopped");
    run(0, "train --resume stopped --steps %d --quiet", steps);
    run(0, "train " GPT "--steps %d --eval-every 300 --out unstopped --quiet", steps);
    check_same_run("unstopped", "stopped");
}

/* One request to stop may come twice, at once or while the checkpoint is written: `timeout` sends
 * SIGTERM to the process and then to its group, and so do mpirun and Slurm.  Nothing may be lost.
 */
typedef struct {
    const char *name;
    int first, second;
} SignalPair;

static const SignalPair signal_pairs[] = {
    {"stops_on_two_signals TERM TERM", SIGTERM, SIGTERM},
    {"stops_on_two_signals TERM HUP", SIGTERM, SIGHUP},
    {"stops_on_two_signals HUP TERM", SIGHUP, SIGTERM},
    {"stops_on_two_signals INT TERM", SIGINT, SIGTERM},
};

static void stops_on_two_signals(const void *row) {
    static const int between_ms[] = {0, 1, 20};
    const SignalPair *pair = row;
    char dir[32], checkpoint[64];
    snprintf(dir, sizeof dir, "twice%d", (int)(pair - signal_pairs));
    snprintf(checkpoint, sizeof checkpoint, "%s/checkpoint.h5", dir);
    for (int i = 0; i < 3; i++) {
        char line[512];
        ino_t last = inode_of(checkpoint);
        if (i)
            snprintf(line, sizeof line, "train --resume %s", dir);
        else
            snprintf(line, sizeof line, "train " GPT ENDLESS "--save-every 1000000000 --out %s",
                     dir);
        pid_t process = program_start(line);
        wait_for_saves(process, checkpoint, last, 1);
        sleep_ms(20);
        kill(process, pair->first);
        sleep_ms(between_ms[i]);
        if (program_runs(process)) kill(process, pair->second);
        int status = program_wait(process);
        /* A process that did not run between the two finds both, and may take either first. */
        CHECK(status == 128 + pair->first || status == 128 + pair->second, "status %d, %d ms apart",
              status, between_ms[i]);
    }
    int steps = steps_beyond(dir);
    run(0, "train --resume %s --steps %d --quiet", dir, steps);
    run(0, "train " GPT "--steps %d --out %s-whole --quiet", steps, dir);
    snprintf(checkpoint, sizeof checkpoint, "%s-whole", dir);
    check_same_run(checkpoint, dir);
}

/* True until a signal that was sent to a process has reached it: the same one, sent again before,
 * would be lost. */
static bool is_pending(pid_t process, int number) {
    unsigned long long set, pending = 0;
    char line[256];
    FILE *status = fopen(text_of("/proc/%d/status", (int)process).text, "r");
    while (status && fgets(line, sizeof line, status))
        if (sscanf(line, "SigPnd: %llx", &set) == 1 || sscanf(line, "ShdPnd: %llx", &set) == 1)
            pending |= set;
    if (status) fclose(status);
    return pending >> (number - 1) & 1;
}

/* The second Ctrl-C does not wait for the end of a step, which here takes minutes. */
static void ends_on_two_ctrl_c(void) {
    pid_t process = program_start(
        "train --model resnet:depth=110,width=32 --data synthetic --batch 10000 --limit 10000 "
        "--accumulate 10000 --steps 9 --threads 1 --out hurry");
    wait_for_saves(process, "hurry/checkpoint.h5", 0, 1);
    kill(process, SIGINT);
    while (is_pending(process, SIGINT)) sleep_ms(1);
    kill(process, SIGINT);
    int status = program_wait(process);
    CHECK(status == -SIGINT, "status %d", status);
}

/* nohup has it ignore that the terminal is gone; another signal stops it. */
static void goes_on_without_a_terminal(void) {
    size_t count;
    const Text line = text_of("cd '%s' && trap '' HUP && { '%s' train " GPT ENDLESS
                              "--quiet --out nohup & } && while [ ! -e nohup/checkpoint.h5 ]; do "
                              "sleep 0.01; done; kill -HUP $!; sleep 0.1; kill -TERM $!; wait $!; "
                              "echo $? >ended",
                              scratch_path("."), BCD_PROGRAM);
    CHECK(system(line.text) == 0, "the shell failed");
    char *status = read_bytes("ended", &count);
    CHECK(!strcmp(status, "143\n"), "status %s", status);
    free(status);
}

/* Where what it prints is read no more, as after `head`, a training saves, and adds no error of its
 * own. */
static void stops_when_nobody_reads(void) {
    size_t count;
    const Text line = text_of("cd '%s' && { '%s' train " GPT ENDLESS
                              "--eval-every 1 --out unread 2>errors; echo $? >ended; } | head -n 1 "
                              ">first",
                              scratch_path("."), BCD_PROGRAM);
    CHECK(system(line.text) == 0, "the shell failed");
    char *status = read_bytes("ended", &count), *errors = read_bytes("errors", &count);
    CHECK(!strcmp(status, "141\n") && !*errors, "status %s, \"%s\"", status, errors);
    free(status);
    free(errors);
    const int steps = steps_beyond("unread");
    run(0, "train --resume unread --steps %d --quiet", steps);
    run(0, "train " GPT "--eval-every 1 --steps %d --out read --quiet", steps);
    check_same_run("read", "unread");
}

/* A training whose time is over does one update in each session.  The evaluation after it is cut
 * off, and done first in the next session. */
static void each_session_does_an_update(void) {
    enum { STEPS = 4 };
    for (int session = 0; session <= STEPS; session++) {
        const char *line = session ? "train --resume late --quiet"
                                   : "train " GPT "--steps 4 --eval-every 1 --out late --quiet";
        const Printed *printed = program_run_late(line);
        const int status = session < STEPS ? 75 : 0;
        CHECK(printed->status == status, "session %d: status %d: %s", session, printed->status,
              printed->error);
    }
    run(0, "train " GPT "--steps 4 --eval-every 1 --out punctual --quiet");
    check_same_run("punctual", "late");
}

/* A stop during the first pre-inference, before any update. */
static void stops_before_the_first_update(void) {
#define INFERS                                                                        \
    "train --model resnet:depth=14,width=2 --data synthetic --limit 32 --batch 4 "    \
    "--accumulate 2 --submodels 3 --order descending --always-active none --steps 6 " \
    "--pipeline local:2 --cache 1M --pre-infer --quiet --out "
    const Printed *printed = program_run_late(INFERS "early");
    CHECK(printed->status == 75, "status %d: %s", printed->status, printed->error);
    RunFile file;
    if (read_run(&file, "early")) CHECK(file.curve_rows == 0, "%zu updates", file.curve_rows);
    runfile_free(&file);
    run(0, "train --resume early --quiet");
    run(0, INFERS "whole");
    check_same_checkpoint("whole", "early");
}

void test_stopped(void) {
    make_words();
    RUN(stops_on_ctrl_c);
    for (size_t i = 0; i < sizeof signal_pairs / sizeof *signal_pairs; i++)
        RUN_ROW(signal_pairs[i].name, stops_on_two_signals, &signal_pairs[i]);
    RUN(ends_on_two_ctrl_c);
    RUN(goes_on_without_a_terminal);
    RUN(stops_when_nobody_reads);
    RUN(each_session_does_an_update);
    RUN(stops_before_the_first_update);
}
