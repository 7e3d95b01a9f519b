#include "rundir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../ref/base/error.h"
#include "settings.h"

/* Locks of directories hold for a single machine on NFS, and those of files that are replaced for
 * the old one. */
static const char LOCK[] = ".lock";

Text rundir_path(const char *dir, const char *file) { return text_of("%s/%s", dir, file); }

static bool is_directory(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

bool rundir_holds_run(const char *dir) {
    return access(rundir_path(dir, "run.h5").text, F_OK) == 0 ||
           access(rundir_path(dir, "checkpoint.h5").text, F_OK) == 0;
}

/* Says that something is not there, unless errno tells why it could not be looked for. */
static int refuse_missing(const char *dir, const char *missing) {
    if (errno == ENOENT || errno == ENOTDIR) return error_set("%s: %s", dir, missing);
    return error_set("%s: cannot look into it: %s", dir, strerror(errno));
}

int rundir_check(const char *dir) {
    return rundir_holds_run(dir) ? 0 : refuse_missing(dir, "no run in it");
}

int rundir_make(const char *dir) {
    char path[OPTION_TEXT];
    snprintf(path, sizeof path, "%s", dir);
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(path, 0777); /* a failure shows below */
        *slash = '/';
    }
    if (mkdir(path, 0777) == 0 || (errno == EEXIST && is_directory(path))) return 0;
    return error_set("%s: cannot make the directory: %s", dir, strerror(errno));
}

int rundir_make_fresh(char dir[OPTION_TEXT], const Options *options) {
    Text name = text_of("%.60s-%.60s", options->model, options->data);
    for (char *c = name.text; *c; c++)
        if (strchr("/:=, ", *c)) *c = '-';
    if (rundir_make("runs")) return -1;
    for (int n = 1; n < 1000000; n++) {
        strcpy(dir, text_of("runs/%s-%d", name.text, n).text);
        if (mkdir(dir, 0777) == 0) return 0;
        if (errno != EEXIST) break;
    }
    return error_set("%s: cannot make the directory: %s", dir, strerror(errno));
}

int rundir_lock(const char *dir) {
    const Text path = rundir_path(dir, LOCK);
    int descriptor = open(path.text, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    /* Another user's file need not be written, but on NFS. */
    if (descriptor < 0 && errno == EACCES) descriptor = open(path.text, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return error_set("%s: cannot open: %s", path.text, strerror(errno));
    if (flock(descriptor, LOCK_EX | LOCK_NB) == 0) return descriptor;
    const int cause = errno;
    close(descriptor);
    if (cause == EWOULDBLOCK)
        return error_set("%s: another bcd is training in it; wait for it, or use another --out",
                         dir);
    return error_set("%s: cannot lock: %s", path.text, strerror(cause));
}

void rundir_give_up(const char *dir, bool made) {
    if (rundir_holds_run(dir)) return;
    unlink(rundir_path(dir, LOCK).text);
    if (made) rmdir(dir); /* unless there is anything else in it */
}

int rundir_checkpoint(Text *path, const char *place) {
    *path = text_of("%s", place);
    if (!is_directory(place)) return 0;
    *path = rundir_path(place, "checkpoint.h5");
    const bool model = access(rundir_path(place, "config.json").text, F_OK) == 0;
    if (access(path->text, F_OK) == 0) return 0;
    return refuse_missing(
        place, model ? "a model and no run; it goes with --init" : "no checkpoint.h5 in it");
}

Text rundir_run(const char *place) {
    if (is_directory(place)) return rundir_path(place, "run.h5");
    const char *slash = strrchr(place, '/');
    return slash ? text_of("%.*s/run.h5", (int)(slash - place), place) : text_of("run.h5");
}

int rundir_settings(const char *place, Options *options) {
    Text path = rundir_run(place);
    if (access(path.text, F_OK))
        path = is_directory(place) ? rundir_path(place, "checkpoint.h5") : text_of("%s", place);
    return access(path.text, F_OK) ? 0 : settings_read_file(path.text, options);
}

/* ---- kept checkpoints ------------------------------------------------------------------------ */

/* Returns the step in a name checkpoint-STEP.h5, or -1. */
static long long step_of(const char *name) {
    long long step;
    int end = 0;
    if (sscanf(name, "checkpoint-%lld.h5%n", &step, &end) != 1 || !end || name[end]) return -1;
    return step;
}

static int is_kept(const struct dirent *entry) { return step_of(entry->d_name) >= 0; }

static int latest_first(const struct dirent **a, const struct dirent **b) {
    long long x = step_of((*a)->d_name), y = step_of((*b)->d_name);
    return (x < y) - (x > y);
}

/* Removes all but the last `keep` up to `step`.  Later ones are of another training. */
static int remove_old(const char *dir, uint64_t step, int keep) {
    struct dirent **list;
    int count = scandir(dir, &list, is_kept, latest_first), failed = 0;
    if (count < 0) return error_set("%s: cannot list: %s", dir, strerror(errno));
    for (int i = 0; i < count; i++) {
        const Text path = rundir_path(dir, list[i]->d_name);
        const bool old = step_of(list[i]->d_name) <= (long long)step && keep-- <= 0;
        free(list[i]);
        if (old && unlink(path.text))
            failed = error_set("%s: cannot remove: %s", path.text, strerror(errno));
    }
    free(list);
    return failed;
}

int rundir_keep(const char *dir, uint64_t step, int keep) {
    const Text from = rundir_path(dir, "checkpoint.h5");
    const Text path = text_of("%s/checkpoint-%llu.h5", dir, (unsigned long long)step);
    /* checkpoint.h5 is only ever replaced, never written into, so a link is as good as a copy.  One
     * of this name may be of another training. */
    if ((unlink(path.text) && errno != ENOENT) ||
        linkat(AT_FDCWD, from.text, AT_FDCWD, path.text, AT_SYMLINK_FOLLOW))
        return error_set(
            "%s: cannot keep the checkpoint as a hard link of this name: %s; go on with "
            "--keep-last 0",
            path.text, strerror(errno));
    return remove_old(dir, step, keep);
}
