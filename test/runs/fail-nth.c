/*
 * Makes the n-th write, sync, truncation or rename of files whose path contains a given text fail, for tests that preload it:
 * FAIL_PATH, FAIL_NTH. FAIL_WITH is the error's number, or "kill" to end the process there and then. FAIL_COUNT names a file that gets
 * the number of such calls when the process ends.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static long left = -1, seen = 0;

static int fails(int fd, const char *path) {
  static const char *wanted;
  char link[64], found[4096];
  if (!wanted) {
    wanted = getenv("FAIL_PATH");
    left = atol(getenv("FAIL_NTH") ? getenv("FAIL_NTH") : "0");
    if (!wanted) wanted = "\n";
  }
  if (!path) {
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, found, sizeof found - 1);
    if (n < 0) return 0;
    found[n] = 0;
    path = found;
  }
  if (!strstr(path, wanted)) return 0;
  seen++;
  if (left <= 0 || --left > 0) return 0;
  const char *with = getenv("FAIL_WITH");
  if (with && !strcmp(with, "kill")) kill(getpid(), SIGKILL);
  errno = with ? atoi(with) : EIO;
  return 1;
}

__attribute__((destructor)) static void tell(void) {
  const char *file = getenv("FAIL_COUNT");
  FILE *out = file ? fopen(file, "w") : 0;
  if (!out) return;
  fprintf(out, "%ld", seen);
  fclose(out);
}

#define REAL(name) static __typeof__(name) *real; if (!real) real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) { REAL(pwrite64); return fails(fd, 0) ? -1 : real(fd, data, size, at); }
ssize_t pwrite(int fd, const void *data, size_t size, off_t at) { REAL(pwrite); return fails(fd, 0) ? -1 : real(fd, data, size, at); }
ssize_t write(int fd, const void *data, size_t size) { REAL(write); return fails(fd, 0) ? -1 : real(fd, data, size); }
int fsync(int fd) { REAL(fsync); return fails(fd, 0) ? -1 : real(fd); }
int fdatasync(int fd) { REAL(fdatasync); return fails(fd, 0) ? -1 : real(fd); }
int ftruncate64(int fd, off64_t size) { REAL(ftruncate64); return fails(fd, 0) ? -1 : real(fd, size); }
int ftruncate(int fd, off_t size) { REAL(ftruncate); return fails(fd, 0) ? -1 : real(fd, size); }
int rename(const char *from, const char *to) { REAL(rename); return fails(-1, to) ? -1 : real(from, to); }
int link(const char *from, const char *to) { REAL(link); return fails(-1, to) ? -1 : real(from, to); }
int unlink(const char *path) { REAL(unlink); return fails(-1, path) ? -1 : real(path); }
int mkdir(const char *path, mode_t mode) { REAL(mkdir); return fails(-1, path) ? -1 : real(path, mode); }
