/* Preloaded, it counts the calls that change a folder, and at the n-th one kills the process or makes the call fail.

   arm(root, n, mode): calls on paths under `root` are counted from here on. mode 0 only counts; 1 kills the process before
   the n-th; 2 lets the n-th and every later call that needs room fail with ENOSPC; 3 lets the n-th alone fail with EIO. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

enum { COUNT, KILL, NO_SPACE, IO_ERROR };

static char root[PATH_MAX];
static long at, calls;
static int mode, armed;

void arm(const char *path, long n, int how) {
    snprintf(root, sizeof root, "%s", path);
    at = n, mode = how, calls = 0, armed = 1;
}

long counted(void) { return calls; }

/* Is the path, relative to a folder's handle or to the working directory, under the root? */
static int under(int folder, const char *path) {
    char full[2 * PATH_MAX] = "", link[64];
    if (!armed || !path) return 0;
    if (path[0] != '/') {
        snprintf(link, sizeof link, folder == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", folder);
        ssize_t n = readlink(link, full, PATH_MAX);
        if (n < 0) return 0;
        full[n] = '/', full[n + 1] = 0;
    }
    strncat(full, path, PATH_MAX - 1);
    size_t n = strlen(root);
    return !strncmp(full, root, n) && (full[n] == '/' || !full[n]);
}

static int handle_under(int handle) {
    char link[64], full[PATH_MAX];
    if (!armed) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", handle);
    ssize_t n = readlink(link, full, sizeof full - 1);
    if (n < 0) return 0;
    full[n] = 0;
    return under(AT_FDCWD, full);
}

/* Counts a call under the root; whether it must fail, with errno set. */
static int faulty(int counts, int needs_room) {
    if (!counts) return 0;
    calls++;
    if (mode == KILL && calls == at) kill(getpid(), SIGKILL);
    if (mode == NO_SPACE && (calls == at || (calls > at && needs_room))) return errno = ENOSPC, 1;
    if (mode == IO_ERROR && calls == at) return errno = EIO, 1;
    return 0;
}

#define REAL(name, ...) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))(__VA_ARGS__)
#define CHANGES (O_CREAT | O_WRONLY | O_RDWR | O_TRUNC)
#define GIVEN_MODE                                                                                                     \
    mode_t given = 0;                                                                                                  \
    if (flags & O_CREAT) {                                                                                             \
        va_list rest;                                                                                                  \
        va_start(rest, flags);                                                                                         \
        given = va_arg(rest, mode_t);                                                                                  \
        va_end(rest);                                                                                                  \
    }

int open(const char *path, int flags, ...) {
    GIVEN_MODE
    return faulty((flags & CHANGES) && under(AT_FDCWD, path), flags & O_CREAT) ? -1 : REAL(open, path, flags, given);
}
int open64(const char *path, int flags, ...) {
    GIVEN_MODE
    return faulty((flags & CHANGES) && under(AT_FDCWD, path), flags & O_CREAT) ? -1 : REAL(open64, path, flags, given);
}
int openat(int folder, const char *path, int flags, ...) {
    GIVEN_MODE
    return faulty((flags & CHANGES) && under(folder, path), flags & O_CREAT) ? -1
                                                                             : REAL(openat, folder, path, flags, given);
}
int openat64(int folder, const char *path, int flags, ...) {
    GIVEN_MODE
    return faulty((flags & CHANGES) && under(folder, path), flags & O_CREAT)
               ? -1
               : REAL(openat64, folder, path, flags, given);
}
ssize_t write(int handle, const void *from, size_t n) {
    int counts = handle_under(handle);
    if (faulty(counts, 1)) return -1;
    if (counts && mode == KILL && calls + 1 == at && n > 1) n /= 2; /* killed in the middle of a write */
    return REAL(write, handle, from, n);
}
int fsync(int handle) { return faulty(handle_under(handle), 1) ? -1 : REAL(fsync, handle); }
int fdatasync(int handle) { return faulty(handle_under(handle), 1) ? -1 : REAL(fdatasync, handle); }
int ftruncate(int handle, off_t n) { return faulty(handle_under(handle), 0) ? -1 : REAL(ftruncate, handle, n); }
int ftruncate64(int handle, off64_t n) { return faulty(handle_under(handle), 0) ? -1 : REAL(ftruncate64, handle, n); }
int mkdir(const char *path, mode_t given) {
    return faulty(under(AT_FDCWD, path), 1) ? -1 : REAL(mkdir, path, given);
}
int rename(const char *old, const char *new) {
    return faulty(under(AT_FDCWD, old) || under(AT_FDCWD, new), 0) ? -1 : REAL(rename, old, new);
}
int renameat(int from, const char *old, int to, const char *new) {
    return faulty(under(from, old) || under(to, new), 0) ? -1 : REAL(renameat, from, old, to, new);
}
int unlink(const char *path) { return faulty(under(AT_FDCWD, path), 0) ? -1 : REAL(unlink, path); }
int unlinkat(int folder, const char *path, int flags) {
    return faulty(under(folder, path), 0) ? -1 : REAL(unlinkat, folder, path, flags);
}
int rmdir(const char *path) { return faulty(under(AT_FDCWD, path), 0) ? -1 : REAL(rmdir, path); }
