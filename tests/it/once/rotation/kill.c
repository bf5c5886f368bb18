/* Preloaded into a process, it ends that process as kill -9 does, before the KILL_AT-th of the calls that change files or put them on
   the disk, the first that prints anything being one of them. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

static void step(void) {
    static atomic_int count;
    const char *at = getenv("KILL_AT");
    if (at && atomic_fetch_add(&count, 1) + 1 == atoi(at)) kill(getpid(), SIGKILL);
}

#define BEFORE(call, taken, given)                          \
    int call taken {                                        \
        int(*next) taken = (int(*) taken)dlsym(RTLD_NEXT, #call); \
        step();                                             \
        return next given;                                  \
    }

BEFORE(rename, (const char *from, const char *to), (from, to))
BEFORE(link, (const char *from, const char *to), (from, to))
BEFORE(linkat, (int a, const char *from, int b, const char *to, int flags), (a, from, b, to, flags))
BEFORE(unlink, (const char *path), (path))
BEFORE(fsync, (int file), (file))
BEFORE(fdatasync, (int file), (file))

ssize_t write(int file, const void *bytes, size_t length) {
    static atomic_int prints;
    ssize_t (*next)(int, const void *, size_t) = (ssize_t(*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
    if (file == 1 && atomic_fetch_add(&prints, 1) == 0) step();
    return next(file, bytes, length);
}
