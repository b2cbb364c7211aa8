/* Faults of the disk and of memory, for a process that loads this with LD_PRELOAD.

Operations on files below one folder are counted from 0, as are allocations of tensors
(posix_memalign) and of simstate's C code (PyMem_*). A fault acts on some of them: it
fails with an errno, transfers a part, or kills the process. Nothing happens unless
shim_begin() was called. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

enum { WRITE, SYNC, OPEN, RENAME, ALLOCATE, DISK, OPERATIONS };
enum { FAIL = 1, SHORT, TORN, KILL };
enum { MAX_FAULTS = 16, MAX_FILES = 4096 };

struct fault {
  int operation, action, error;
  long first, many;
  double part;
};

static struct fault fault[MAX_FAULTS];
static int num_faults, active;
static long count[OPERATIONS], fired;
static char folder[4096];
static unsigned char watched[MAX_FILES];

void shim_begin(const char* path) {
  memset(count, 0, sizeof count);
  strncpy(folder, path, sizeof folder - 1);
  num_faults = 0;
  fired = 0;
  active = 1;
}

void shim_end(void) { active = 0; }

void shim_pause(int paused) { active = !paused; }

void shim_add(int operation, int action, int error, long first, long many, double part) {
  struct fault one = {operation, action, error, first, many, part};
  if (num_faults < MAX_FAULTS) fault[num_faults++] = one;
}

long shim_count(int operation) { return count[operation]; }

long shim_fired(void) { return fired; }

static void* next(const char* name) { return dlsym(RTLD_NEXT, name); }

static int is_below(const char* path) {
  size_t length = strlen(folder);
  return active && path && !strncmp(path, folder, length) &&
         (path[length] == '/' || !path[length]);
}

static const struct fault* find(int operation, long number) {
  for (int k = 0; k < num_faults; k++) {
    const struct fault* one = &fault[k];
    if (one->operation == operation && number >= one->first &&
        number - one->first < one->many) {
      fired++;
      return one;
    }
  }
  return NULL;
}

/* Return the fault of this operation, NULL if there is none. */
static const struct fault* meet(int operation) {
  const struct fault* found = find(operation, count[operation]++);
  if (operation != ALLOCATE) {
    const struct fault* death = find(DISK, count[DISK]++);
    if (death) kill(getpid(), SIGKILL);
  }
  return found;
}

static int fails(int operation) {
  const struct fault* found = meet(operation);
  if (!found) return 0;
  if (found->action == KILL) kill(getpid(), SIGKILL);
  errno = found->error;
  return 1;
}

static int opened(const char* path, int file) {
  if (file >= 0 && file < MAX_FILES) watched[file] = is_below(path) != 0;
  return file;
}

#define OPEN_LIKE(name)                                                     \
  int name(const char* path, int flags, ...) {                              \
    static int (*real)(const char*, int, ...);                              \
    if (!real) real = (int (*)(const char*, int, ...))next(#name);          \
    va_list rest;                                                           \
    va_start(rest, flags);                                                  \
    mode_t mode = (flags & (O_CREAT | O_TMPFILE)) ? va_arg(rest, mode_t) : 0; \
    va_end(rest);                                                           \
    if (is_below(path) && fails(OPEN)) return -1;                           \
    return opened(path, real(path, flags, mode));                           \
  }
OPEN_LIKE(open)
OPEN_LIKE(open64)

DIR* opendir(const char* path) {
  static DIR* (*real)(const char*);
  if (!real) real = (DIR * (*)(const char*)) next("opendir");
  if (is_below(path) && fails(OPEN)) return NULL;
  return real(path);
}

int close(int file) {
  static int (*real)(int);
  if (!real) real = (int (*)(int))next("close");
  if (file >= 0 && file < MAX_FILES) watched[file] = 0;
  return real(file);
}

ssize_t write(int file, const void* data, size_t size) {
  static ssize_t (*real)(int, const void*, size_t);
  if (!real) real = (ssize_t(*)(int, const void*, size_t))next("write");
  if (!active || file < 0 || file >= MAX_FILES || !watched[file] || !size)
    return real(file, data, size);
  const struct fault* found = meet(WRITE);
  if (!found) return real(file, data, size);
  size_t part = (size_t)(found->part * (double)size);
  if (found->action == SHORT) return real(file, data, part ? part : 1);
  if (found->action == TORN && part && real(file, data, part) < 0) return -1;
  if (found->action == TORN || found->action == KILL) kill(getpid(), SIGKILL);
  /* A disk that fills up takes what still fits. */
  if (found->error == ENOSPC && part && found->first == count[WRITE] - 1)
    return real(file, data, part);
  errno = found->error;
  return -1;
}

#define SYNC_LIKE(name)                                                             \
  int name(int file) {                                                              \
    static int (*real)(int);                                                        \
    if (!real) real = (int (*)(int))next(#name);                                    \
    if (active && file >= 0 && file < MAX_FILES && watched[file] && fails(SYNC))    \
      return -1;                                                                    \
    return real(file);                                                              \
  }
SYNC_LIKE(fsync)
SYNC_LIKE(fdatasync)

int rename(const char* from, const char* to) {
  static int (*real)(const char*, const char*);
  if (!real) real = (int (*)(const char*, const char*))next("rename");
  if (is_below(to) && fails(RENAME)) return -1;
  return real(from, to);
}

int posix_memalign(void** memory, size_t alignment, size_t size) {
  static int (*real)(void**, size_t, size_t);
  if (!real) real = (int (*)(void**, size_t, size_t))next("posix_memalign");
  if (active && fails(ALLOCATE)) return ENOMEM;
  return real(memory, alignment, size);
}

static int is_ours(const void* address) {
  Dl_info found;
  return active && dladdr(address, &found) && found.dli_fname &&
         (strstr(found.dli_fname, "/simstate/engine/") ||
          strstr(found.dli_fname, "/simstate/world/"));
}

void* PyMem_Malloc(size_t size) {
  static void* (*real)(size_t);
  if (!real) real = (void* (*)(size_t))next("PyMem_Malloc");
  if (is_ours(__builtin_return_address(0)) && fails(ALLOCATE)) return NULL;
  return real(size);
}

void* PyMem_Calloc(size_t number, size_t size) {
  static void* (*real)(size_t, size_t);
  if (!real) real = (void* (*)(size_t, size_t))next("PyMem_Calloc");
  if (is_ours(__builtin_return_address(0)) && fails(ALLOCATE)) return NULL;
  return real(number, size);
}
