/*
 * LD_PRELOAD shim that injects one fault into the file operations of a process (Linux, glibc).
 *
 *   FAIL_PATH   counts only operations on files whose path contains this text
 *   FAIL_NTH    the operation that fails: the n-th write, sync, truncation, rename, link, unlink or mkdir
 *   FAIL_WITH   what happens then:
 *                 a number     the operation fails with this errno (default EIO)
 *                 torn         a write stores the first half of its bytes and fails with EIO; any other operation fails with EIO
 *                 kill         the process dies before the operation
 *                 torn-kill    a write stores the first half of its bytes, then the process dies
 *                 power-cut    every write since the last sync of its file is undone, then the process dies
 *   FAIL_COUNT  names a file that receives the number of counted operations when the process ends
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#define REAL(name) static __typeof__(name) *real; if (!real) real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static const char *wanted, *with;
static long nth = -1, seen = 0;

__attribute__((constructor)) static void configure(void) {
  wanted = getenv("FAIL_PATH") ? getenv("FAIL_PATH") : "\n";
  with = getenv("FAIL_WITH") ? getenv("FAIL_WITH") : "5";
  nth = atol(getenv("FAIL_NTH") ? getenv("FAIL_NTH") : "0");
}

__attribute__((destructor)) static void report(void) {
  const char *file = getenv("FAIL_COUNT");
  FILE *out = file ? fopen(file, "w") : 0;
  if (!out) return;
  fprintf(out, "%ld", seen);
  fclose(out);
}

/* --- undo log for power-cut: the bytes that each unsynced write replaced, and the size of the file before it --- */
struct undo { char *path; ino_t inode; off64_t at, size; size_t length; char *old; struct undo *next; };
static struct undo *unsynced;

static int is(const char *mode) { return !strcmp(with, mode); }

static void remember(int fd, const char *path, off64_t at, size_t length) {
  struct stat file;
  if (!is("power-cut") || fstat(fd, &file) || !S_ISREG(file.st_mode)) return;
  struct undo *entry = calloc(1, sizeof *entry);
  entry->path = strdup(path), entry->inode = file.st_ino, entry->at = at, entry->size = file.st_size;
  entry->old = malloc(length ? length : 1);
  ssize_t got = at < file.st_size ? pread64(fd, entry->old, length, at) : 0;
  entry->length = got > 0 ? got : 0;
  entry->next = unsynced, unsynced = entry;
}

static void forget(int fd) {
  struct stat file;
  if (!is("power-cut") || fstat(fd, &file)) return;
  for (struct undo **entry = &unsynced; *entry;)
    if ((*entry)->inode == file.st_ino) *entry = (*entry)->next;
    else entry = &(*entry)->next;
}

static void cut_power(void) {
  ssize_t (*write_at)(int, const void *, size_t, off64_t) = dlsym(RTLD_NEXT, "pwrite64");
  int (*truncate_to)(int, off64_t) = dlsym(RTLD_NEXT, "ftruncate64");
  for (struct undo *entry = unsynced; entry; entry = entry->next) {
    struct stat file;
    int fd = open(entry->path, O_RDWR);
    if (fd < 0) continue; /* removed since */
    if (!fstat(fd, &file) && file.st_ino == entry->inode) {
      if (entry->length) write_at(fd, entry->old, entry->length, entry->at);
      truncate_to(fd, entry->size);
    }
    close(fd);
  }
}

/* Returns 1 if this operation is the one that fails; does not return if the process dies. Leaves the path in `name`. */
static int fails(int fd, const char *path, char name[4096]) {
  name[0] = 0;
  if (path) snprintf(name, 4096, "%s", path);
  else {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, name, 4095);
    if (length < 0) return 0;
    name[length] = 0;
  }
  if (!strstr(name, wanted)) { name[0] = 0; return 0; }
  if (++seen != nth) return 0;
  if (is("power-cut")) cut_power();
  if (is("kill") || is("power-cut")) kill(getpid(), SIGKILL), pause();
  return 1;
}

static int fail(void) {
  if (is("torn-kill")) kill(getpid(), SIGKILL), pause();
  int code = atoi(with);
  pthread_mutex_unlock(&lock);
  errno = code ? code : EIO;
  return -1;
}

static int tears(void) { return is("torn") || is("torn-kill"); }

#define GUARD(fd, path) char name[4096]; pthread_mutex_lock(&lock); int failing = fails(fd, path, name)
#define DONE(result) __typeof__(result) value = (result); int code = errno; pthread_mutex_unlock(&lock); errno = code; return value

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) {
  REAL(pwrite64);
  GUARD(fd, 0);
  if (failing) { if (tears()) real(fd, data, size / 2, at); return fail(); }
  if (name[0]) remember(fd, name, at, size);
  DONE(real(fd, data, size, at));
}
ssize_t pwrite(int fd, const void *data, size_t size, off_t at) { return pwrite64(fd, data, size, at); }

ssize_t write(int fd, const void *data, size_t size) {
  REAL(write);
  GUARD(fd, 0);
  if (failing) { if (tears()) real(fd, data, size / 2); return fail(); }
  off64_t at = name[0] ? lseek64(fd, 0, fcntl(fd, F_GETFL) & O_APPEND ? SEEK_END : SEEK_CUR) : -1;
  if (at >= 0) remember(fd, name, at, size);
  pthread_mutex_unlock(&lock); /* a write to a pipe may block */
  return real(fd, data, size);
}

int fsync(int fd) { REAL(fsync); GUARD(fd, 0); if (failing) return fail(); forget(fd); DONE(real(fd)); }
int fdatasync(int fd) { REAL(fdatasync); GUARD(fd, 0); if (failing) return fail(); forget(fd); DONE(real(fd)); }

int ftruncate64(int fd, off64_t size) {
  REAL(ftruncate64);
  GUARD(fd, 0);
  if (failing) return fail();
  struct stat file;
  if (name[0] && !fstat(fd, &file) && file.st_size > size) remember(fd, name, size, file.st_size - size);
  DONE(real(fd, size));
}
int ftruncate(int fd, off_t size) { return ftruncate64(fd, size); }

int rename(const char *from, const char *to) { REAL(rename); GUARD(-1, to); if (failing) return fail(); DONE(real(from, to)); }
int link(const char *from, const char *to) { REAL(link); GUARD(-1, to); if (failing) return fail(); DONE(real(from, to)); }
int unlink(const char *path) { REAL(unlink); GUARD(-1, path); if (failing) return fail(); DONE(real(path)); }
int mkdir(const char *path, mode_t mode) { REAL(mkdir); GUARD(-1, path); if (failing) return fail(); DONE(real(path, mode)); }
