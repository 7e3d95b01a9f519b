/* Files that are read whole, and files that are replaced whole or not at all.  The linker replaces
 * the calls of fsync in this program by the function below (--wrap in the Makefile). */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../data/file.h"
#include "scratch.h"

int __real_fsync(int descriptor);
int __wrap_fsync(int descriptor);

/* What has been brought to the disk, and whether the file was there under its name by then. */
static struct {
    const char *path; /* NULL: nobody watches */
    ino_t file[8];
    bool complete[8];
    int calls;
} synced;

int __wrap_fsync(int descriptor) {
    struct stat status;
    if (synced.path && synced.calls < 8 && fstat(descriptor, &status) == 0) {
        synced.file[synced.calls] = status.st_ino;
        synced.complete[synced.calls++] = file_exists(synced.path);
    }
    return __real_fsync(descriptor);
}

static ino_t inode_of(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 ? status.st_ino : 0;
}

/* Checks that a file has this text and that nothing is left behind next to it. */
static void check_file(const char *path, const char *expected) {
    char temporary[700];
    size_t bytes = 0;
    unsigned char *text = file_read("test", path, "look", &bytes);
    if (CHECK(text, "%s", error_message()))
        CHECK(bytes == strlen(expected) && memcmp(text, expected, bytes) == 0, "%s has \"%.60s\"",
              path, (const char *)text);
    free(text);
    snprintf(temporary, sizeof temporary, "%s.tmp", path);
    CHECK(!file_exists(temporary), "%s is left behind", temporary);
}

/* What cannot be read must not count as an empty file. */
static void a_directory_is_no_file(void) {
    size_t bytes;
    char directory[600];
    snprintf(directory, sizeof directory, "%s", scratch_path("folder/x"));
    *strrchr(directory, '/') = 0;
    unsigned char *text = file_read("who", directory, "a hint", &bytes);
    CHECK(!text, "it is read");
    CHECK_ERROR("who: %s: Is a directory; a hint", directory);
    free(text);
}

/* After a crash a file must not be there without its bytes, so they are on the disk before it gets
 * its name, and the name is there after it. */
static void bytes_come_before_the_name(void) {
    const char *path = scratch_path("synced/file.txt");
    char directory[600];
    snprintf(directory, sizeof directory, "%s", path);
    *strrchr(directory, '/') = 0;
    synced.calls = 0;
    synced.path = path;
    CHECK(file_write(path, "text", 4) == 0, "%s", error_message());
    synced.path = NULL;
    if (CHECK(synced.calls == 2, "%d calls of fsync", synced.calls)) {
        CHECK(synced.file[0] == inode_of(path) && !synced.complete[0], "the file comes first");
        CHECK(synced.file[1] == inode_of(directory) && synced.complete[1], "its directory is last");
    }
    check_file(path, "text");
}

static void a_path_has_1023_bytes(void) {
    char dir[PATH_BYTES], path[PATH_BYTES];
    memset(dir, 'x', sizeof dir);
    dir[PATH_BYTES - 3] = 0;
    CHECK(path_join(path, dir, "n") == 0 && strlen(path) == PATH_BYTES - 1, "%s", error_message());
    CHECK(path_join(path, dir, "no") == -1, "a longer one passes");
    CHECK_ERROR("%.60s...: the path is longer than 1023 bytes", dir);
    AtomicFile file;
    memset(path, '/', PATH_BYTES);
    memcpy(path, "/nowhere", 8);
    path[PATH_BYTES - 1] = 0;
    CHECK(atomic_open(&file, path) == -1 && strstr(error_message(), "cannot create"), "%s",
          error_message());
    char longer[PATH_BYTES + 2];
    snprintf(longer, sizeof longer, "%s/", path);
    CHECK(atomic_open(&file, longer) == -1, "a longer one is opened");
    CHECK_ERROR("%.60s...: the path is longer than 1023 bytes", longer);
}

static void a_link_stays(void) {
    char target[600], link[600];
    snprintf(target, sizeof target, "%s", scratch_text("elsewhere/target.txt", "old"));
    snprintf(link, sizeof link, "%s", scratch_path("link.txt"));
    CHECK(symlink("elsewhere/target.txt", link) == 0, "no link");
    CHECK(file_write(link, "new", 3) == 0, "%s", error_message());
    struct stat status;
    CHECK(lstat(link, &status) == 0 && S_ISLNK(status.st_mode), "the link is replaced");
    check_file(target, "new");
    CHECK(unlink(target) == 0 && file_write(link, "newer", 5) == -1, "a link to nothing passes");
    CHECK_ERROR("%s: a link to nothing: No such file or directory", link);
    CHECK(!file_exists(target), "the target is made");
}

static void only_regular_files_are_replaced(void) {
    const char *pipe = scratch_path("pipe");
    CHECK(mkfifo(pipe, 0600) == 0, "no pipe");
    CHECK(file_write(pipe, "text", 4) == -1, "a pipe is replaced");
    CHECK_ERROR("%s: not a regular file, and only those are replaced", pipe);
    struct stat status;
    CHECK(stat(pipe, &status) == 0 && S_ISFIFO(status.st_mode), "the pipe is gone");
}

/* A short text is written only at the end, by a flush, and a long one while it is handed over. */
static void a_full_disk_leaves_the_old_file(void) {
    enum { ROOM = 50, LONG = 1 << 17 };
    static const size_t lengths[] = {ROOM + 1, LONG};
    const char *path = scratch_text("kept.txt", "old");
    char *text = calloc(LONG, 1);
    struct rlimit limit, tight;
    getrlimit(RLIMIT_FSIZE, &limit);
    tight = limit;
    tight.rlim_cur = ROOM;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    for (int i = 0; i < 2; i++) {
        AtomicFile file;
        setrlimit(RLIMIT_FSIZE, &tight);
        const int failed = file_write(path, text, lengths[i]);
        setrlimit(RLIMIT_FSIZE, &limit);
        CHECK(failed == -1, "%zu bytes are written where %d fit", lengths[i], ROOM);
        CHECK_ERROR("%s: cannot write: File too large; is the disk full?", path);
        check_file(path, "old");
        if (!CHECK(atomic_open(&file, path) == 0, "%s", error_message())) break;
        setrlimit(RLIMIT_FSIZE, &tight);
        fwrite(text, 1, lengths[i], file.file);
        CHECK(atomic_sync(&file) == -1, "%zu bytes are on the disk where %d fit", lengths[i], ROOM);
        CHECK_ERROR("%s: cannot write: File too large; is the disk full?", path);
        setrlimit(RLIMIT_FSIZE, &limit);
        atomic_abandon(&file);
        check_file(path, "old");
    }
    signal(SIGXFSZ, handler);
    free(text);
}

void test_data_file(void) {
    RUN(a_directory_is_no_file);
    RUN(bytes_come_before_the_name);
    RUN(a_path_has_1023_bytes);
    RUN(a_link_stays);
    RUN(only_regular_files_are_replaced);
    RUN(a_full_disk_leaves_the_old_file);
}
