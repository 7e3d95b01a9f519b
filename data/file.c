#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../ref/base/error.h"

int path_join(char *path, const char *dir, const char *name) {
    int length = snprintf(path, PATH_BYTES, "%s/%s", dir, name);
    if (length < 0 || length >= PATH_BYTES)
        return error_set("%.60s...: the path is longer than %d bytes", dir, PATH_BYTES - 1);
    return 0;
}

bool dir_has(const char *dir, const char *name) {
    char path[PATH_BYTES];
    return *dir && !path_join(path, dir, name) && access(path, F_OK) == 0;
}

bool file_same(const char *a, const char *b) {
    struct stat x, y;
    return !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* Reads to the end without asking for the size, which is unknown for a pipe.  NULL and errno. */
static char *read_all(FILE *file, size_t *bytes) {
    char piece[1 << 14], *data = NULL;
    FILE *memory = open_memstream(&data, bytes); /* puts a zero byte behind the data */
    if (!memory) return NULL;
    size_t count;
    while ((count = fread(piece, 1, sizeof piece, file)) > 0) fwrite(piece, 1, count, memory);
    const int failed = ferror(file) || ferror(memory), cause = errno;
    if (fclose(memory) == 0 && !failed) return data;
    free(data);
    if (failed) errno = cause;
    return NULL;
}

unsigned char *file_read(const char *who, const char *path, const char *hint, size_t *bytes) {
    FILE *file = fopen(path, "rb");
    char *data = file ? read_all(file, bytes) : NULL;
    if (!data) error_set("%s: %s: %s; %s", who, path, strerror(errno), hint);
    if (file) fclose(file);
    return (unsigned char *)data;
}

unsigned char *file_read_set(const char *set, const char *path, size_t *bytes) {
    char hint[128];
    snprintf(hint, sizeof hint, "data/fetch %s downloads it; BCD_DATA can name another directory",
             set);
    return file_read(set, path, hint, bytes);
}

/* Opens and locks the temporary file that will replace `path`, or the one that a killed process
 * left behind.  Between the open and the lock, another process may rename its complete file; then
 * the locked file is no longer `temporary`, and this tries again.  Returns the descriptor, or -1
 * and an error. */
static int open_locked(const char *temporary, const char *path) {
    for (;;) {
        struct stat opened, named;
        const int descriptor = open(temporary, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        if (descriptor < 0) return error_set("%s: cannot create: %s", path, strerror(errno));
        if (flock(descriptor, LOCK_EX | LOCK_NB)) {
            const int cause = errno;
            close(descriptor);
            if (cause == EWOULDBLOCK) return error_set("%s: another process is writing it", path);
            return error_set("%s: cannot lock: %s", path, strerror(cause));
        }
        if (fstat(descriptor, &opened) == 0 && stat(temporary, &named) == 0 &&
            opened.st_ino == named.st_ino && opened.st_dev == named.st_dev)
            return descriptor;
        close(descriptor);
    }
}

/* Overwrites path[PATH_BYTES] with `name`, or if that is a symbolic link with what it points to. */
static int find_target(char *path, const char *name) {
    struct stat status;
    const bool linked = lstat(name, &status) == 0 && S_ISLNK(status.st_mode);
    char *target = linked ? realpath(name, NULL) : NULL;
    if (linked && !target) return error_set("%s: a link to nothing: %s", name, strerror(errno));
    const int length = snprintf(path, PATH_BYTES, "%s", target ? target : name);
    free(target);
    if (length >= PATH_BYTES)
        return error_set("%.60s...: the path is longer than %d bytes", name, PATH_BYTES - 1);
    if (stat(path, &status) == 0 && !S_ISREG(status.st_mode))
        return error_set("%s: not a regular file, and only those are replaced", name);
    return 0;
}

int atomic_open(AtomicFile *atomic, const char *path) {
    if (find_target(atomic->path, path)) return -1;
    snprintf(atomic->temporary, sizeof atomic->temporary, "%s.tmp", atomic->path);
    const int descriptor = open_locked(atomic->temporary, atomic->path);
    if (descriptor < 0) return -1;
    atomic->file = ftruncate(descriptor, 0) ? NULL : fdopen(descriptor, "wb");
    if (atomic->file) return 0;
    error_set("%s: cannot write: %s", atomic->temporary, strerror(errno));
    close(descriptor);
    return -1;
}

/* Returns 0, or -1 and errno. */
static int sync_path(const char *path) {
    int descriptor = open(path, O_RDONLY);
    int failed = descriptor < 0 ? -1 : fsync(descriptor), cause = errno;
    if (descriptor >= 0) close(descriptor);
    errno = cause;
    return failed;
}

/* Renames a complete file to `path`.  -1 and errno. */
static int replace(const char *path, const char *temporary) {
    char dir[PATH_BYTES];
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) + 1 : 0;
    memcpy(dir, path, length);
    strcpy(dir + length, ".");
    if (sync_path(temporary) || rename(temporary, path)) return -1;
    sync_path(dir); /* a rename survives a crash only once the directory itself is on disk */
    return 0;
}

int atomic_commit(AtomicFile *atomic) {
    FILE *file = atomic->file;
    /* It is renamed while it is locked, so no other process can have begun to write it. */
    const bool written =
        !ferror(file) && fflush(file) == 0 && replace(atomic->path, atomic->temporary) == 0;
    if (!written) {
        error_set("%s: cannot write: %s; is the disk full?", atomic->path, strerror(errno));
        remove(atomic->temporary);
    }
    fclose(file);
    atomic->file = NULL;
    return written ? 0 : -1;
}

int atomic_sync(AtomicFile *atomic) {
    FILE *file = atomic->file;
    if (!ferror(file) && fflush(file) == 0 && fsync(fileno(file)) == 0) return 0;
    return error_set("%s: cannot write: %s; is the disk full?", atomic->path, strerror(errno));
}

void atomic_abandon(AtomicFile *atomic) {
    if (!atomic->file) return;
    remove(atomic->temporary);
    fclose(atomic->file);
    atomic->file = NULL;
}

int file_write(const char *path, const void *bytes, size_t count) {
    AtomicFile file;
    if (atomic_open(&file, path)) return -1;
    fwrite(bytes, 1, count, file.file); /* a full disk shows at the commit */
    return atomic_commit(&file);
}
